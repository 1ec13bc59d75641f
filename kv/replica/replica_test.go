package replica

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var anyVersion = rapid.Custom(func(t *rapid.T) Version {
	return Version{HLC(rapid.Uint64Range(1, 4).Draw(t, "hlc")), Origin(rapid.Uint64Range(1, 3).Draw(t, "origin")), rapid.Uint64Range(1, 3).Draw(t, "seq")}
})

// Merge is a maximum over a total order: commutative, associative, idempotent.
func TestMergeLaws(t *testing.T) {
	merge := func(a, b Version) Version {
		if (Rules{}).Admit(&a, b, false, false) == Take {
			return b
		}
		return a
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyVersion.Draw(t, "a"), anyVersion.Draw(t, "b"), anyVersion.Draw(t, "c")
		if merge(a, b) != merge(b, a) || merge(a, merge(b, c)) != merge(merge(a, b), c) || merge(a, a) != a {
			t.Fatal("a law does not hold")
		}
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatal("the order is not total")
		}
	})
}

// A clock gives out ever greater times, whatever the wall clock does, above what the key holds and what it saw.
func TestClockIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Clock
		var last HLC
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now, floor := rapid.Int64Range(1, 1<<40).Draw(t, "now"), HLC(rapid.Uint64Range(0, 1<<55).Draw(t, "floor"))
			if rapid.Bool().Draw(t, "see") {
				c.See(floor)
				last = max(last, floor)
				continue
			}
			h := c.Next(now, floor)
			if h <= last || h <= floor || h.Millis() < now {
				t.Fatalf("%d after %d, floor %d, now %d", h, last, floor, now)
			}
			last = h
		}
	})
}

var anyRecord = rapid.Custom(func(t *rapid.T) Record {
	r := Record{Version: Version{HLC(rapid.Uint64Min(1).Draw(t, "hlc")), Origin(rapid.Uint64Min(1).Draw(t, "o")), rapid.Uint64Min(1).Draw(t, "s")},
		LSeq: rapid.Uint64Min(1).Draw(t, "l")}
	bytes := func(n int) []byte { return rapid.SliceOfN(rapid.Byte(), 0, n).Draw(t, "bytes") }
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		r.Flags = Deleted
		return r
	case 1:
		r.Flags, r.Expires = Gone|Expires, 1+rapid.Int64Range(0, 1<<50).Draw(t, "x")
		return r
	case 2:
		r.Flags, r.Size = Blob, rapid.Uint64Range(MaxInlineBytes+1, MaxValueBytes).Draw(t, "size")
		copy(r.Digest[:], bytes(32))
	default:
		r.Value = bytes(100)
		r.Size = uint64(len(r.Value))
	}
	if rapid.Bool().Draw(t, "meta") {
		r.Flags, r.Meta = r.Flags|Meta, bytes(50)
	}
	if rapid.Bool().Draw(t, "expires") {
		r.Flags, r.Expires = r.Flags|Expires, 1+rapid.Int64Range(0, 1<<50).Draw(t, "x")
	}
	return r
})

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord.Draw(t, "record")
		got, err := ParseRecord(r.Append(nil))
		if err != nil || !bytes.Equal(got.Append(nil), r.Append(nil)) || got.Size != r.Size || got.Version != r.Version {
			t.Fatalf("%v, %v", got, err)
		}
	})
}

func TestFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := anyRecord.Draw(t, "record")
		m := Mark{Prev: 3, Next: rapid.Uint64Min(3).Draw(t, "next"), Count: 7, Now: 12, Head: 99, Live: rapid.Bool().Draw(t, "live")}
		if m.Live {
			m.Vector = Vector{}
			for range rapid.IntRange(0, 5).Draw(t, "n") {
				m.Vector[Origin(rapid.Uint64Min(1).Draw(t, "o"))] = rapid.Uint64Min(1).Draw(t, "s")
			}
		}
		uid, key := rapid.StringN(1, 20, MaxUIDBytes).Draw(t, "uid"), rapid.StringN(1, 50, MaxKeyBytes).Draw(t, "key")
		in := bufio.NewReader(bytes.NewReader(AppendMark(AppendChange(nil, uid, key, rec.Append(nil)), m)))
		kind, body, err := ReadFrame(in)
		if err != nil || kind != FrameRecord {
			t.Fatal(kind, err)
		}
		c, err := ParseChange(body)
		if err != nil || c.UID != uid || c.Key != key || !bytes.Equal(c.Record.Append(nil), rec.Append(nil)) {
			t.Fatalf("%v, %v", c, err)
		}
		kind, body, err = ReadFrame(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseMark(kind, body); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%v, %v, want %v", got, err, m)
		}
		if _, _, err := ReadFrame(in); err != io.EOF {
			t.Fatal(err)
		}
	})
}

// A frame that is cut, too long or empty is an error; its length is checked before anything is allocated.
func TestBadFrames(t *testing.T) {
	whole := AppendMark(nil, Mark{Live: true, Vector: Vector{1: 1}})
	for n := 1; n < len(whole); n++ {
		if _, _, err := ReadFrame(bufio.NewReader(bytes.NewReader(whole[:n]))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for _, head := range [][]byte{{0, 0, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 1}, {0, 0x10, 0, 0, 1}} {
		if _, _, err := ReadFrame(bufio.NewReader(bytes.NewReader(head))); !errors.Is(err, errFrame) {
			t.Errorf("head %v: %v", head, err)
		}
	}
}

func FuzzFrames(f *testing.F) {
	rec := Record{Version: Version{1, 2, 3}, LSeq: 4, Flags: Meta | Expires, Expires: 5, Meta: []byte("{}"), Value: []byte("v")}
	f.Add(AppendMark(AppendChange(nil, "u", "k", rec.Append(nil)), Mark{Next: 4, Count: 1, Live: true, Vector: Vector{2: 3}}))
	f.Add([]byte{0, 0, 0, 1, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bufio.NewReader(bytes.NewReader(b))
		p := NewPuller(1, 2, 0, Rules{})
		for {
			kind, body, err := ReadFrame(in)
			if err != nil {
				return
			}
			if kind == FrameRecord {
				c, err := ParseChange(body)
				if err != nil {
					continue
				}
				if again := AppendChange(nil, c.UID, c.Key, c.Record.Append(nil))[5:]; !bytes.Equal(again, body) {
					t.Fatalf("%x reads as %x", body, again)
				}
				p.Record(c, len(body), 1)
			} else if m, err := ParseMark(kind, body); err == nil {
				if again := AppendMark(nil, m)[5:]; !bytes.Equal(again, body) {
					t.Fatalf("%x reads as %x", body, again)
				}
				p.Mark(m, 0)
			}
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add((&Record{Version: Version{1, 2, 3}, Flags: Deleted}).Append(nil))
	f.Add((&Record{Version: Version{1, 2, 3}, Flags: Blob, Size: MaxValueBytes}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRecord(b)
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Errorf("%x reads as %x", b, r.Append(nil))
		}
	})
}

func FuzzVector(f *testing.F) {
	f.Add(Vector{1: 2, 3: 4}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseVector(b)
		if err == nil && !bytes.Equal(v.Append(nil), b) {
			t.Errorf("%x reads as %x", b, v.Append(nil))
		}
	})
}

// A puller takes what follows, and nothing from the future, out of place, or without bound.
func TestPullerRefuses(t *testing.T) {
	const now = 1_000_000
	rec := func(ms int64) Change {
		return Change{"u", "k", Record{Version: Version{At(ms), 2, 1}, LSeq: 1, Flags: Deleted}}
	}
	start := func() *Puller { return NewPuller(1, 2, 10, Rules{}) }
	if err := start().Record(rec(now+MaxSkew.Milliseconds()), 10, now); err != nil {
		t.Error(err)
	}
	if err := start().Record(rec(now+MaxSkew.Milliseconds()+1), 10, now); !errors.Is(err, ErrSkew) {
		t.Error(err)
	}
	for _, m := range []Mark{{Prev: 9, Next: 20, Count: 1}, {Prev: 10, Next: 20}, {Prev: 10, Next: 20, Count: 2}} {
		p := start()
		p.Record(rec(now), 10, now)
		if _, err := p.Mark(m, 0); !errors.Is(err, ErrContinuity) {
			t.Errorf("%v: %v", m, err)
		}
	}
	if _, err := start().Mark(Mark{Prev: 10, Next: 20, Live: true, Vector: Vector{1: 6}}, 5); !errors.Is(err, ErrRolledBack) {
		t.Error(err)
	}
	for _, n := range []int{1, 100_000} {
		p := start()
		var err error
		took := 0
		for ; err == nil && took < 10_000; took++ {
			err = p.Record(rec(now), n, now)
		}
		if !errors.Is(err, ErrTooMuch) || took > MaxChunkRecords+1 || took*n > MaxChunkBytes+2*MaxFrameBytes+2*n {
			t.Errorf("records of %d bytes: took %d, %v", n, took, err)
		}
	}
}

// Tombstones wait for every member and for every open session.
func TestCoverage(t *testing.T) {
	v := Version{1, 7, 5}
	c := NewCoverage(Rules{})
	want := func(what string, covered bool) {
		t.Helper()
		if c.Covered(v) != covered {
			t.Errorf("%s: %t", what, !covered)
		}
	}
	want("members unknown", false)
	c.SetMembers(nil)
	want("no members", true)
	c.SetMembers([]Origin{2, 3})
	want("nobody advertised", false)
	c.Advertised(2, Vector{7: 5})
	c.Advertised(3, Vector{7: 4})
	c.Advertised(9, Vector{7: 9})
	want("one is behind", false)
	c.Advertised(3, Vector{7: 6})
	want("all have it", true)
	c.Advertised(3, Vector{7: 1})
	want("vectors only grow", true)
	s := c.Open()
	want("a session is open", false)
	c.Live(s, 2, Vector{7: 4})
	want("its mark was too early", false)
	c.Live(s, 2, Vector{7: 5})
	want("it passed a mark", true)
	s2 := c.Open()
	want("another is open", false)
	c.Close(s2)
	want("it is over", true)
	c.SetMembers([]Origin{2, 3, 4})
	want("a member was added", false)
	c.SetMembers([]Origin{2})
	want("it was struck", true)
}

// A mesh up to 16 members, then 6 neighbours: connected whatever is drawn, and not those that failed.
func TestNeighbours(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 16, 17, 40, 100} {
		var all []Origin
		for i := range n {
			all = append(all, Origin(i*10+5))
		}
		reach := map[Origin]bool{all[0]: true}
		next := map[Origin][]Origin{}
		for _, o := range all {
			others := slices.DeleteFunc(slices.Clone(all), func(x Origin) bool { return x == o })
			next[o] = Neighbours(o, others, map[Origin]bool{all[n/2]: true}, rng)
			want := min(n-1, Fanout)
			if n <= MeshSize {
				want = n - 1
			}
			if len(next[o]) != want || slices.Contains(next[o], o) || n > MeshSize && slices.Contains(next[o], all[n/2]) {
				t.Errorf("%d members: %v pulls from %v", n, o, next[o])
			}
		}
		for todo := []Origin{all[0]}; len(todo) > 0; todo = todo[1:] {
			for _, o := range next[todo[0]] {
				if !reach[o] {
					reach[o] = true
					todo = append(todo, o)
				}
			}
		}
		if n <= MeshSize && len(reach) != n || n > MeshSize && len(reach) < n-1 {
			t.Errorf("%d members: %d are reached", n, len(reach))
		}
	}
}

func TestHLC(t *testing.T) {
	h := At(1_700_000_000_123) + 9
	if h.Millis() != 1_700_000_000_123 || !h.Time().Equal(time.UnixMilli(1_700_000_000_123)) {
		t.Error(h.Millis(), h.Time())
	}
}
