package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/testkit"
)

func sweep(t testing.TB, s *Store, in time.Duration) int {
	t.Helper()
	n, err := s.Sweep(t.Context(), time.Now().Add(in))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// node-surface §4: held bytes that no live Resource references are collected 24 h after they were stored or lost their
// last reference; what another tenant or Resource has is never touched.
func TestSweep(t *testing.T) {
	s := closing(t, Options{})
	const day = Grace + time.Minute
	loose := put(t, s, "acme", []byte("loose"))
	shared := put(t, s, "acme", []byte("shared"))
	r1, r2 := bundle(t, s, "acme", "u1"), bundle(t, s, "acme", "u2")
	r3 := bundle(t, s, "rival", "u3")
	for _, r := range []Request{r1, r2, r3} {
		if _, err := s.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if n := sweep(t, s, Grace-time.Minute); n != 0 || !holds(t, s, "acme", loose) {
		t.Fatalf("%d blobs went before 24 h", n)
	}
	// Meanwhile a tenant stores one of them again: its time starts anew.
	old := time.Now()
	if err := s.db.Set(holdingKey(shared, "acme"), encodeTime(old.Add(-2*Grace)), nil); err != nil {
		t.Fatal(err)
	}
	put(t, s, "rival", []byte("shared"))
	if n := sweep(t, s, 0); n != 0 || holds(t, s, "acme", shared) || !holds(t, s, "rival", shared) {
		t.Fatalf("the old holding goes, the blob of the other tenant stays: %d", n)
	}
	if n := sweep(t, s, day); n != 2 || holds(t, s, "acme", loose) || holds(t, s, "rival", shared) {
		t.Fatalf("%d blobs went after 24 h, want 2", n)
	}
	if _, err := s.Open(loose); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a collected blob opens: %v", err)
	}
	for _, uid := range []string{"u1", "u3"} {
		if err := s.Release(uid); err != nil {
			t.Fatal(err)
		}
	}
	if n := sweep(t, s, day); n != 0 || holds(t, s, "rival", r3.Digest) || !holds(t, s, "acme", r3.Digest) {
		t.Fatalf("%d blobs went although a Resource has them", n)
	}
	if _, err := s.Acquire(t.Context(), r2); err != nil {
		t.Fatalf("the last custody is damaged: %v", err)
	}
	if err := s.Release("u2"); err != nil {
		t.Fatal(err)
	}
	if n := sweep(t, s, Grace-time.Minute); n != 0 {
		t.Fatalf("%d blobs went before 24 h without a reference", n)
	}
	if n := sweep(t, s, day); n != 3 {
		t.Fatalf("%d blobs went, want manifest and two files", n)
	}
	if left, _ := os.ReadDir(s.blobDir()); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	it, _ := s.db.NewIter(nil)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		t.Errorf("the index still has %q", it.Key())
	}
}

// A crash may leave bytes without a name, or a name without a holding; neither is ever in the way.
func TestCrashLeftovers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	orphan := digestOf([]byte("orphan"))
	if err := os.WriteFile(s.blobPath(orphan), []byte("orph"), 0o600); err != nil { // even torn: it was never synced
		t.Fatal(err)
	}
	half := filepath.Join(s.tempDir(), "123")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(s.blobDir(), "README")
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, Options{Dir: dir})
	defer s.Close()
	if _, err := os.Stat(half); err == nil {
		t.Error("a half-written file is still there after a start")
	}
	if n := sweep(t, s, time.Hour); n != 0 {
		t.Errorf("%d young orphans went", n)
	}
	put(t, s, "acme", []byte("orphan"))
	if b, _ := os.ReadFile(s.blobPath(orphan)); string(b) != "orphan" {
		t.Errorf("an upload did not replace a torn blob: %q", b)
	}
	if n := sweep(t, s, 2*Grace); n != 1 {
		t.Errorf("%d blobs went, want 1", n)
	}
	os.WriteFile(s.blobPath(orphan), []byte("orphan"), 0o600)
	if n := sweep(t, s, 2*Grace); n != 1 {
		t.Errorf("%d orphans went, want 1", n)
	}
	if _, err := os.Stat(note); err != nil {
		t.Error("a file that is not ours was removed")
	}
}

// A crash loses no holding and no reference that was acknowledged, at whatever instant it comes: the index is taken as
// the disk would hold it.
func TestIndexSurvivesCrashes(t *testing.T) {
	rng := testkit.Rand(t)
	dir := t.TempDir()
	fs := vfs.NewCrashableMem()
	s := open(t, Options{Dir: dir, FS: fs})
	type holder struct {
		tenant string
		blob   int
	}
	held := map[holder]bool{}
	custody := map[string]Request{}
	for round := range 25 {
		for range rng.IntN(6) {
			switch n := rng.IntN(4); rng.IntN(3) {
			case 0:
				tenant := fmt.Sprintf("t%d", rng.IntN(2))
				put(t, s, tenant, fmt.Appendf(nil, "blob %d", n))
				held[holder{tenant, n}] = true
			case 1:
				req := bundle(t, s, "t0", fmt.Sprintf("u%d", n))
				if _, err := s.Acquire(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				custody[req.UID] = req
			case 2:
				uid := fmt.Sprintf("u%d", n)
				if err := s.Release(uid); err != nil {
					t.Fatal(err)
				}
				delete(custody, uid)
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		s.Close()
		fs = crashed
		s = open(t, Options{Dir: dir, FS: fs})
		for h := range held {
			if !holds(t, s, h.tenant, digestOf(fmt.Appendf(nil, "blob %d", h.blob))) {
				t.Fatalf("round %d: %+v is no longer held", round, h)
			}
		}
		for n := range 4 {
			uid := fmt.Sprintf("u%d", n)
			_, want := custody[uid]
			if _, ok, err := s.Custody(uid); ok != want || err != nil {
				t.Fatalf("round %d: custody of %s is %t (%v), want %t", round, uid, ok, err, want)
			}
			if live, err := s.any(blobsOfPrefix(uid)); live != want || err != nil {
				t.Fatalf("round %d: references of %s: %t (%v), want %t", round, uid, live, err, want)
			}
		}
		// Whatever is swept, what is in custody stays whole.
		sweep(t, s, 0)
		for _, req := range custody {
			if _, err := s.Acquire(t.Context(), req); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	s.Close()
}

// A release that a crash cut off is completed by repeating it.
func TestReleaseIsRepeatable(t *testing.T) {
	s := closing(t, Options{})
	req := bundle(t, s, "acme", "u1")
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if err := s.unrefer("acme", "u1", req.Digest, time.Now()); err != nil { // the crash comes after the first reference
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Release("u1"); err != nil {
			t.Fatal(err)
		}
	}
	if live, err := s.any(blobsOfPrefix("u1")); live || err != nil {
		t.Errorf("references are left (%v)", err)
	}
	if live, err := s.any([]byte{referencePrefix}); live || err != nil {
		t.Errorf("references are left (%v)", err)
	}
}

// Uploads, acquisitions, releases and sweeps of the same bytes at once: nobody who was told that it holds something loses
// it. The sweeper's clock is a day ahead, so that every idle holding is due.
func TestSweepBesideEverything(t *testing.T) {
	s := closing(t, Options{})
	req := bundle(t, s, "acme", "keeper")
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var sweeper, workers sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := s.Sweep(t.Context(), time.Now().Add(2*Grace)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for w := range 4 {
		workers.Go(func() {
			for i := range 20 {
				tenant := fmt.Sprintf("t%d", w%2)
				text := fmt.Appendf(nil, "blob %d", i%3)
				if _, err := s.Put(t.Context(), tenant, digestOf(text), bytes.NewReader(text)); err != nil {
					t.Error(err)
				}
				r := req
				r.Tenant, r.UID = "acme", fmt.Sprintf("u%d", w)
				if _, err := s.Acquire(t.Context(), r); err != nil {
					t.Errorf("worker %d: %v", w, err)
				}
				if err := s.Release(r.UID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	sweeper.Wait()
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Errorf("the keeper's custody is damaged: %v", err)
	}
}

// What is listed as idle may be needed again before its turn comes: it is asked once more under the blob's lock.
func TestSweepAsksAgain(t *testing.T) {
	s := closing(t, Options{})
	later := time.Now().Add(2 * Grace)
	req := bundle(t, s, "acme", "u1")
	idle, err := s.idleHoldings(t.Context(), later)
	if err != nil || len(idle) != 3 {
		t.Fatalf("%d idle, %v, want 3", len(idle), err)
	}
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for _, h := range idle {
		if n, err := s.collect(h, later); n != 0 || err != nil || !holds(t, s, "acme", h.digest) {
			t.Errorf("a blob that got a reference went: %d, %v", n, err)
		}
	}
	if idle, err = s.idleHoldings(t.Context(), later); err != nil || len(idle) != 0 {
		t.Errorf("%d idle, %v, want none", len(idle), err)
	}
	put(t, s, "acme", []byte("x"))
	if n, err := s.collect(holding{digestOf([]byte("x")), "acme"}, time.Now()); n != 0 || err != nil {
		t.Errorf("a blob that was stored again went: %d, %v", n, err)
	}
}

// A nearly full disk refuses new bytes with the disk's own name; what is there can be read and collected.
func TestFullDisk(t *testing.T) {
	free := uint64(1 << 40)
	space := disk.NewSpace(disk.SpaceOptions{Free: func(string) (uint64, error) { return free, nil }})
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Space: space})
	d := put(t, s, "acme", []byte("x"))
	s.Close()
	free = 1
	s = closing(t, Options{Dir: dir, Space: disk.NewSpace(disk.SpaceOptions{Free: func(string) (uint64, error) { return free, nil }})})
	_, err := s.Put(t.Context(), "acme", digestOf([]byte("y")), bytes.NewReader([]byte("y")))
	if fault.CodeOf(err) != fault.Unavailable || fault.NameOf(err) != "disk_full" || errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if !holds(t, s, "acme", d) {
		t.Error("reads stopped")
	}
	if n := sweep(t, s, 2*Grace); n != 1 {
		t.Errorf("collection stopped: %d", n)
	}
}
