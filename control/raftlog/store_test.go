package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func open(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(Options{Dir: "raft", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func entry(index uint64, text string) *raft.Log {
	return &raft.Log{Index: index, Term: index/10 + 1, Type: raft.LogCommand, Data: []byte(text)}
}

// What raft stores it gets back, also an index that is stored twice and gaps.
func TestLog(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	if first, err := s.FirstIndex(); first != 0 || err != nil {
		t.Fatalf("first of an empty log: %d, %v", first, err)
	}
	if last, err := s.LastIndex(); last != 0 || err != nil {
		t.Fatalf("last of an empty log: %d, %v", last, err)
	}
	var l raft.Log
	if err := s.GetLog(1, &l); err != raft.ErrLogNotFound {
		t.Fatalf("got %v, want ErrLogNotFound", err)
	}
	want := []*raft.Log{
		{Index: 3, Term: 1, Type: raft.LogConfiguration, Data: []byte("three"), Extensions: []byte("x"), AppendedAt: time.Unix(5, 7)},
		{Index: 4, Term: 1, Type: raft.LogNoop},
		{Index: 300, Term: 2, Data: bytes.Repeat([]byte("z"), 1<<20)}, // big-endian: 300 is behind 4
	}
	if err := s.StoreLogs(want); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		got := raft.Log{Data: []byte("old"), Extensions: []byte("old"), AppendedAt: time.Unix(1, 1)}
		if err := s.GetLog(w.Index, &got); err != nil || !reflect.DeepEqual(&got, w) {
			t.Errorf("entry %d: got %v %v %q, %v", w.Index, got.Type, got.AppendedAt, got.Extensions, err)
		}
	}
	checkEdges(t, s, 3, 300)
	if err := s.StoreLog(entry(4, "again")); err != nil {
		t.Fatal(err)
	}
	if err := s.GetLog(4, &l); err != nil || string(l.Data) != "again" {
		t.Errorf("got %q, %v", l.Data, err)
	}
}

func checkEdges(t *testing.T, s *Store, first, last uint64) {
	t.Helper()
	f, ferr := s.FirstIndex()
	l, lerr := s.LastIndex()
	if f != first || l != last || ferr != nil || lerr != nil {
		t.Errorf("edges are %d and %d (%v, %v), want %d and %d", f, l, ferr, lerr, first, last)
	}
}

func TestDeleteRange(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	if err := s.Set([]byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 100; i++ {
		if err := s.StoreLog(entry(i, "x")); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ lo, hi, first, last uint64 }{
		{1, 50, 51, 100}, {91, 100, 51, 90}, {60, 61, 51, 90}, {70, 60, 51, 90}, {200, 300, 51, 90}, {51, 1<<64 - 1, 0, 0},
	} {
		if err := s.DeleteRange(step.lo, step.hi); err != nil {
			t.Fatal(err)
		}
		checkEdges(t, s, step.first, step.last)
	}
	if v, err := s.Get([]byte("k")); string(v) != "v" || err != nil {
		t.Errorf("deleting entries took raft's own values: %q, %v", v, err)
	}
}

// raft asks for keys it never stored and expects emptiness, not an error.
func TestStable(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	if v, err := s.Get([]byte("none")); len(v) != 0 || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	if n, err := s.GetUint64([]byte("none")); n != 0 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if err := s.SetUint64([]byte("CurrentTerm"), 1<<63); err != nil {
		t.Fatal(err)
	}
	if n, err := s.GetUint64([]byte("CurrentTerm")); n != 1<<63 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if err := s.Set([]byte("CurrentTerm"), []byte("odd")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetUint64([]byte("CurrentTerm")); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
}

// A crash at any instant loses nothing acknowledged, and an append that was cut off is there whole or not at all.
func TestCrash(t *testing.T) {
	rng := testkit.Rand(t)
	fs := vfs.NewCrashableMem()
	s := open(t, fs)
	model := map[uint64]string{}
	next, low := uint64(1), uint64(1)
	term := uint64(0)
	for round := range 30 {
		for range rng.IntN(20) {
			switch rng.IntN(4) {
			case 0, 1:
				var logs []*raft.Log
				for range 1 + rng.IntN(5) {
					text := fmt.Sprintf("%d.%d", round, next)
					logs = append(logs, entry(next, text))
					model[next] = text
					next++
				}
				if err := s.StoreLogs(logs); err != nil {
					t.Fatal(err)
				}
			case 2:
				if hi := low + uint64(rng.IntN(4)); hi < next {
					if err := s.DeleteRange(low, hi); err != nil {
						t.Fatal(err)
					}
					for ; low <= hi; low++ {
						delete(model, low)
					}
				}
			case 3:
				term++
				if err := s.SetUint64([]byte("term"), term); err != nil {
					t.Fatal(err)
				}
			}
		}
		// What the disk holds if the machine stops now, any unsynced write being kept or lost.
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		fs = crashed
		s = open(t, fs)
		if n, err := s.GetUint64([]byte("term")); n != term || err != nil {
			t.Fatalf("term is %d, %v, want %d", n, err, term)
		}
		for i := uint64(1); i < next+2; i++ {
			var l raft.Log
			err := s.GetLog(i, &l)
			want, ok := model[i]
			if ok && (err != nil || string(l.Data) != want) || !ok && err != raft.ErrLogNotFound {
				t.Fatalf("round %d, entry %d: %q, %v, want %q %t", round, i, l.Data, err, want, ok)
			}
		}
	}
	s.Close()
}

// node-surface §3: private files, a newer format is refused.
func TestOpenOnFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "control")
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StoreLog(entry(1, "x")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v", info.Mode())
	}
	if s, err = Open(Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	checkEdges(t, s, 1, 1)
	s.Close()
	os.WriteFile(filepath.Join(dir, "format"), []byte("raftlog 99\n"), 0o600)
	if _, err := Open(Options{Dir: dir}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := Open(Options{}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no directory: %v", err)
	}
}

func TestSnapshotsArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	store, err := OpenSnapshots(dir, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v", info.Mode())
	}
	for i := range uint64(3) {
		sink, err := store.Create(raft.SnapshotVersionMax, i+1, 1, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		sink.Write([]byte("state"))
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := store.List(); err != nil || len(list) != 2 || list[0].Index != 3 {
		t.Errorf("got %v, %v, want the newest two", list, err)
	}
}

// A damaged entry is an error, never a panic or another entry.
func FuzzEntry(f *testing.F) {
	f.Add(appendEntry(nil, &raft.Log{Index: 1, Term: 2, Data: []byte("d"), Extensions: []byte("e"), AppendedAt: time.Unix(1, 2)}))
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, b []byte) {
		var l, again raft.Log
		if err := readEntry(b, &l); err != nil {
			if !errors.Is(err, errEntry) {
				t.Fatal(err)
			}
			return
		}
		if out := appendEntry(nil, &l); !bytes.Equal(out, b) {
			t.Fatalf("%x became %x", b, out)
		}
		if err := readEntry(appendEntry(nil, &l), &again); err != nil || !reflect.DeepEqual(l, again) {
			t.Fatalf("%+v became %+v (%v)", l, again, err)
		}
	})
}

// What the log adds to bare synced Pebble writes of the same keys and values.
func BenchmarkStore(b *testing.B) {
	data := bytes.Repeat([]byte("c"), 300)
	for _, n := range []int{1, 64} {
		for _, impl := range []string{"ours", "pebble"} {
			b.Run(fmt.Sprintf("entries=%d/impl=%s", n, impl), func(b *testing.B) {
				s, err := Open(Options{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				logs := make([]*raft.Log, n)
				next := uint64(1)
				b.ReportAllocs()
				for b.Loop() {
					batch := s.db.NewBatch()
					for i := range logs {
						logs[i] = &raft.Log{Index: next, Term: 1, Data: data}
						if err := batch.Set(logKey(next), data, nil); err != nil {
							b.Fatal(err)
						}
						next++
					}
					if impl == "ours" {
						err = s.StoreLogs(logs)
					} else {
						err = batch.Commit(pebble.Sync)
					}
					if err := errors.Join(err, batch.Close()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
