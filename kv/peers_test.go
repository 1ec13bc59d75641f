package kv

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/fault"
	"edged/kv/gossip"
	"edged/kv/replica"
)

// kv §2: convergence is owed. Writes of all nodes, large values too, reach all others over mutual TLS; one that was stopped
// catches up; one with an empty disk reads all.
func TestFleetConverges(t *testing.T) {
	fl := newFleet(t, 3, nil)
	big := strings.Repeat("large ", 100_000)
	for i, f := range fl.nodes {
		for j := range 50 {
			mustPut(t, f.kv(), fmt.Sprintf("k%d", j), fmt.Sprintf("%d of %s", j, f.name), PutOptions{Metadata: map[string]string{"by": f.name}})
		}
		mustPut(t, f.kv(), "big"+f.name, big+f.name, PutOptions{})
		mustPut(t, f.kv(), fmt.Sprint("own", i), "x", PutOptions{})
	}
	fl.equalSoon(t)
	fl.same(t)
	if got := show(t, fl.nodes[2].kv(), "bignodea"); got != big+"nodea" {
		t.Errorf("a large value arrived with %d bytes", len(got))
	}
	fl.nodes[1].stop()
	mustPut(t, fl.nodes[0].kv(), "k1", "while away", PutOptions{})
	if err := fl.nodes[0].kv().Delete(t.Context(), "k2"); err != nil {
		t.Fatal(err)
	}
	fl.nodes[1].start(t)
	fl.introduce(t)
	fl.equalSoon(t)
	fl.same(t)
	if got := show(t, fl.nodes[1].kv(), "k1") + show(t, fl.nodes[1].kv(), "k2"); got != "while away-" {
		t.Errorf("the one that was away has %q", got)
	}
	fl.nodes[2].stop()
	fl.nodes[2].opt.FS = vfs.NewMem()
	fl.nodes[2].start(t)
	fl.introduce(t)
	fl.equalSoon(t)
	fl.same(t)
	for _, f := range fl.nodes {
		for _, m := range f.Members() {
			if result, err := f.Audit(t.Context(), m); err != nil || result != auditEqual {
				t.Errorf("audit of %s by %s: %s, %v", m.Name, f.name, result, err)
			}
		}
	}
}

// same holds all nodes to the same listing and values.
func (fl *fleet) same(t *testing.T) {
	t.Helper()
	want := listAll(t, fl.nodes[0].kv(), "", 100)
	for _, f := range fl.nodes[1:] {
		if got := listAll(t, f.kv(), "", 100); !slices.Equal(got, want) {
			t.Fatalf("%s lists %d keys, %s %d", f.name, len(got), fl.nodes[0].name, len(want))
		}
		for _, k := range want {
			if got, want := show(t, f.kv(), k), show(t, fl.nodes[0].kv(), k); got != want {
				t.Errorf("%s holds %.40q at %s, %s %.40q", f.name, got, k, fl.nodes[0].name, want)
			}
		}
	}
}

// The doorbell brings heads of members and ends a pause after a failure; a wrong key file is an error at the start.
func TestDoorbell(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	fl := newFleet(t, 3, func(_ int, f *fleetNode) {
		f.opt.Peers.Gossip = &gossip.Options{Bind: "127.0.0.1:0", KeyFile: key, Tick: 5 * time.Millisecond}
	})
	for _, f := range fl.nodes {
		eventually(t, func() bool { return f.GossipAddr() != "" })
	}
	fl.introduce(t)
	a, b := fl.nodes[0], fl.nodes[1]
	eventually(t, func() bool { return b.bell.Load().Nodes() == 3 })
	mustPut(t, a.kv(), "k", "v", PutOptions{})
	head := func() uint64 {
		b.seen.mu.Lock()
		defer b.seen.mu.Unlock()
		return b.seen.heads[a.Epoch()].Seq
	}
	eventually(t, func() bool { return head() == 1 })
	fl.equalSoon(t)

	opt := fl.nodes[2].opt
	opt.FS, opt.Node = vfs.NewMem(), "other"
	opt.Peers = &PeerOptions{Client: opt.Peers.Client, Name: opt.Peers.Name, Gossip: &gossip.Options{Bind: "127.0.0.1:0", KeyFile: key + "none"}}
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a missing key file: %v", err)
	}
}

// Lag is seen and waited for; alone there is nothing to wait for.
func TestLagAndWait(t *testing.T) {
	fl := newFleet(t, 2, nil)
	a, b := fl.nodes[0], fl.nodes[1]
	mustPut(t, a.kv(), "k", "v", PutOptions{})
	origin, seq := a.Position()
	if err := b.Wait(t.Context(), origin, seq); err != nil {
		t.Fatal(err)
	}
	if got := show(t, b.kv(), "k"); got != "v" {
		t.Errorf("after the wait: %q", got)
	}
	l := b.Lag()
	if len(l.Peers) != 1 || l.Alone || l.Resurrected != 0 {
		t.Fatalf("%+v", l)
	}
	if p := l.Peers[0]; p.Name != "nodea" || !p.Pulled || !p.Known || p.Records != 0 || p.Behind != 0 {
		t.Errorf("%+v", p)
	}
	if s := l.Spaces; len(s) != 1 || s[0].Records != 1 || s[0].Newest.IsZero() || s[0].Watermark[origin].IsZero() {
		t.Errorf("%+v", s)
	}
	if !newRig(t, nil).Lag().Alone {
		t.Error("a store without members is not alone")
	}
}

// Whoever is not a member under its name and epoch gets nothing, and nobody takes anything from it.
func TestStrangersAreRefused(t *testing.T) {
	fl := newFleet(t, 2, nil)
	a, b := fl.nodes[0], fl.nodes[1]
	m := Member{Name: a.name, Epoch: a.Epoch(), URL: a.server.URL}
	mustPut(t, a.kv(), "k", "v", PutOptions{})
	fl.equalSoon(t)
	ask := func(f *fleetNode, m Member) error {
		_, err := f.ask(t.Context(), m, pathVector, 1000)
		return err
	}
	if err := ask(b, m); err != nil {
		t.Fatal("a member is refused:", err)
	}
	c := &fleetNode{name: "stranger", opt: Options{Dir: "/kv", FS: vfs.NewMem(), Node: "stranger"}}
	fl.equip(t, c)
	c.start(t)
	if err := ask(c, m); err == nil {
		t.Error("a stranger is answered")
	}
	if err := ask(b, Member{Name: a.name, Epoch: a.Epoch() + 1, URL: m.URL}); err == nil {
		t.Error("a request for another epoch is answered")
	}
	imposter := &fleetNode{name: "imposter", opt: Options{Dir: "/kv", FS: vfs.NewMem(), Node: "imposter", draw: func() replica.Origin { return b.Epoch() }}}
	fl.equip(t, imposter)
	imposter.start(t)
	if err := ask(imposter, m); err == nil {
		t.Error("a member's epoch under another certificate is answered")
	}
	fl.nodes = fl.nodes[:1] // b is forgotten
	fl.introduce(t)
	if err := ask(b, m); err == nil {
		t.Error("a forgotten member is answered")
	}
	_, err := b.pullOnce(t.Context(), m)
	if err == nil {
		t.Error("a forgotten member is fed")
	}
	plain, err := http.Post(m.URL+pathFeed, "", nil)
	if err == nil {
		plain.Body.Close()
		t.Error("a client without a certificate is answered")
	}
}

// Bad peers: garbage instead of frames, a feed that stops inside one, records from the future. The session ends, the metric
// counts, nothing is applied, and it heals.
func TestBadFeeds(t *testing.T) {
	var bad atomic.Pointer[[]byte]
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		if i == 0 {
			f.wrap = func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if b := bad.Load(); b != nil && r.URL.Path == pathFeed {
						w.Write(*b)
						return
					}
					h.ServeHTTP(w, r)
				})
			}
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	mustPut(t, a.kv(), "k", "v", PutOptions{})
	fl.equalSoon(t)
	m, _ := b.member(a.Epoch())
	future := replica.Record{Version: replica.Version{HLC: replica.At(time.Now().Add(time.Hour).UnixMilli()), Origin: 77, Seq: 1}, LSeq: 1, Flags: replica.Deleted}
	rec := replica.AppendChange(nil, "u", "k", future.Append(nil))
	live := replica.AppendMark(nil, replica.Mark{Live: true, Vector: replica.Vector{77: 1}})
	for _, tt := range []struct {
		what   string
		b      []byte
		reason string
	}{
		{"garbage", bytes.Repeat([]byte{0xff}, 1000), endFrame},
		{"zeros", make([]byte, 1000), endFrame},
		{"cut", rec[:20], endNetwork},
		{"unknown frame", []byte{0, 0, 0, 1, 99}, endFrame},
		{"a record of garbage", append([]byte{0, 0, 0, 100, replica.FrameRecord}, bytes.Repeat([]byte{7}, 99)...), endFrame},
		{"a vector of garbage", append(bytes.Clone(live[:len(live)-1]), make([]byte, 40)...), endFrame},
		{"a gap", replica.AppendMark(nil, replica.Mark{Prev: 1 << 40, Next: 1 << 41}), endFrame},
		{"the future", append(rec, live...), endSkew},
	} {
		bad.Store(&tt.b)
		if _, err := b.pullOnce(t.Context(), m); err == nil || endOf(err) != tt.reason {
			t.Errorf("%s: %v, reason %s, want %s", tt.what, err, endOf(err), tt.reason)
		}
	}
	bad.Store(nil)
	if v, _ := b.ledger.covers(); v[77] != 0 || show(t, b.kv(), "k") != "v" {
		t.Error("something of it was applied")
	}
	mustPut(t, a.kv(), "k", "v2", PutOptions{})
	fl.equalSoon(t)
	if got := show(t, b.kv(), "k"); got != "v2" {
		t.Errorf("afterwards: %q", got)
	}
}

// A value file that is cut off goes on where it stopped; a damaged one is thrown away; neither is ever visible.
func TestBlobFetchResumes(t *testing.T) {
	var mode atomic.Int32 // 1: cut after half, 2: one byte wrong
	var resumed atomic.Int64
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		if i == 0 {
			f.wrap = func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasPrefix(r.URL.Path, pathBlob) {
						h.ServeHTTP(w, r)
						return
					}
					if r.Header.Get("Range") != "" {
						resumed.Add(1)
					}
					h.ServeHTTP(&faultyWriter{ResponseWriter: w, mode: mode.Load()}, r)
				})
			}
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	for m := range int32(3) {
		mode.Store(m)
		value := make([]byte, 3_000_000)
		rand.NewChaCha8([32]byte{byte(m)}).Read(value)
		key := fmt.Sprint("big", m)
		mustPut(t, a.kv(), key, string(value), PutOptions{})
		if m > 0 {
			target, _ := b.member(a.Epoch())
			b.pullOnce(t.Context(), target)
			if got := show(t, b.kv(), key); got != "-" {
				t.Errorf("mode %d: %d bytes are visible", m, len(got))
			}
			mode.Store(0)
		}
		fl.equalSoon(t)
		if got := show(t, b.kv(), key); got != string(value) {
			t.Errorf("mode %d: %d bytes arrived", m, len(got))
		}
	}
	if resumed.Load() == 0 {
		t.Error("no fetch went on where it had stopped")
	}
}

type faultyWriter struct {
	http.ResponseWriter
	mode int32
	sent int
}

// Unwrap lets a response controller through.
func (w *faultyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *faultyWriter) Write(p []byte) (int, error) {
	if w.mode == 1 && w.sent > 1_000_000 {
		panic(http.ErrAbortHandler)
	}
	if w.mode == 2 && w.sent == 0 {
		p = append([]byte{p[0] ^ 1}, p[1:]...)
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += n
	return n, err
}

// A store whose disk went back in time is noticed by what its peers know, and stops writing.
func TestRolledBackDisk(t *testing.T) {
	fl := newFleet(t, 2, nil)
	a := fl.nodes[0]
	mustPut(t, a.kv(), "k", "1", PutOptions{})
	old := vfs.NewMem()
	stopped := func() {
		a.stop()
	}
	stopped()
	if _, err := vfs.Clone(a.opt.FS, old, "/kv", "/kv"); err != nil {
		t.Fatal(err)
	}
	a.start(t)
	fl.introduce(t)
	mustPut(t, a.kv(), "k", "2", PutOptions{})
	fl.equalSoon(t)
	a.stop()
	a.opt.FS = old
	a.start(t)
	fl.introduce(t)
	eventually(t, func() bool {
		a.ledger.mu.Lock()
		defer a.ledger.mu.Unlock()
		return a.ledger.broken != nil
	})
	wantName(t, "put", a.kv().Put(t.Context(), "k", []byte("3"), PutOptions{}), "backend_unavailable")

	// It is remembered: after a restart, with nobody to ask, it writes nothing and still reads.
	a.stop()
	fl.nodes[1].stop()
	s, err := Open(a.opt)
	if err != nil {
		t.Fatal(err)
	}
	wantName(t, "put", s.Namespace("u").Put(t.Context(), "k", []byte("3"), PutOptions{}), "backend_unavailable")
	if got := show(t, s.Namespace("u"), "k"); got != "1" {
		t.Errorf("it reads %q", got)
	}
	// A backup of it that is restored is a new store, and writes.
	if err := s.Backup("/backup"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	a.opt.Dir = "/backup"
	if s, err = Open(a.opt); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustPut(t, s.Namespace("u"), "k", "3", PutOptions{})
}
