package objects

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// gate is a disk on which syncs of some files wait.
type gate struct {
	mu   sync.Mutex
	shut func(path string) bool // what waits, nil for nothing
	open chan struct{}          // closed to let them go on
}

func (g *gate) fs() vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData && op.Kind != errorfs.OpFileSyncTo {
			return nil
		}
		g.mu.Lock()
		wait := g.shut != nil && g.shut(op.Path)
		open := g.open
		g.mu.Unlock()
		if wait {
			<-open
		}
		return nil
	}))
}

func (g *gate) hold(what func(path string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.open = what, make(chan struct{})
}

func isLog(path string) bool { return strings.HasSuffix(path, ".log") }

func isBodyFolder(path string) bool {
	return strings.Contains(path, "blobs/") && !strings.Contains(path, draftFolder)
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = nil
	close(g.open)
}

// gated runs fn in a bubble with a store on a disk whose syncs can be held up.
func gated(t *testing.T, fn func(t *testing.T, w *world, g *gate)) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		w := newWorld(t, func(o *Options) { o.FS, o.Grace, o.OrphanAge = g.fs(), 1, 1 })
		fn(t, w, g)
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The file of a replaced body stays until the replacement is durable, although it is visible already.
func TestFileStaysUntilItsLossIsDurable(t *testing.T) {
	gated(t, func(t *testing.T, w *world, g *gate) {
		w.put("k", pattern(inlineBytes+1))
		g.hold(isLog)
		var calls sync.WaitGroup
		calls.Go(func() { w.put("k", pattern(1)) })
		synctest.Wait()
		if got, _, _ := w.get("k", GetOptions{}); len(got) != 1 {
			t.Errorf("the new body is not visible: %d bytes", len(got))
		}
		calls.Go(func() {
			if err := w.s.garbage.collect(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if n := w.files(); n != 1 {
			t.Errorf("%d files, want the one that a crash of now still needs", n)
		}
		g.pass()
		calls.Wait()
		if n := w.files(); n != 0 {
			t.Errorf("%d files after it was durable", n)
		}
	})
}

// No call returns before what it did, or found done, is durable.
func TestCallsWaitForTheDisk(t *testing.T) {
	gated(t, func(t *testing.T, w *world, g *gate) {
		w.put("k", pattern(1))
		ctx, b := t.Context(), w.bucket()
		g.hold(isLog)
		var calls sync.WaitGroup
		var mu sync.Mutex
		var returned []string
		call := func(name string, fn func() error) {
			calls.Go(func() {
				if err := fn(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				returned = append(returned, name)
			})
			synctest.Wait()
		}
		call("delete", func() error { return b.Delete(ctx, "k") })
		call("delete of what is deleted", func() error { return b.Delete(ctx, "k") })
		call("put", func() error {
			_, err := b.Put(ctx, "l", bytes.NewReader(nil), PutOptions{})
			return err
		})
		call("upload", func() error {
			_, err := b.CreateMultipartUpload(ctx, "l", "")
			return err
		})
		mu.Lock()
		if len(returned) != 0 {
			t.Errorf("returned before the disk did: %v", returned)
		}
		mu.Unlock()
		g.pass()
		calls.Wait()
	})
}

// A bucket is made and ended while the others are at work: whoever does so waits for the disk, readers of other buckets do not. A new
// one is not seen before it is durable.
func TestBucketsComeAndGoBesideRequests(t *testing.T) {
	gated(t, func(t *testing.T, w *world, g *gate) {
		w.put("k", pattern(7))
		ctx := t.Context()
		for _, c := range []struct {
			what  string
			fn    func() error
			there bool // meanwhile; the opposite of which holds afterwards
		}{
			{"create", func() error { return w.s.Create(ctx, "bucket-3", 1) }, false},
			{"delete", func() error { return w.s.Delete(ctx, "bucket-3") }, true},
		} {
			g.hold(isLog)
			done := make(chan error, 1)
			go func() { done <- c.fn() }()
			synctest.Wait()
			if !w.s.mu.TryLock() { // a call would hang here
				t.Fatalf("%s waits for the disk with the lock of all calls", c.what)
			}
			w.s.mu.Unlock()
			if got, _, _ := w.get("k", GetOptions{}); len(got) != 7 {
				t.Errorf("%s: another bucket's object has %d bytes", c.what, len(got))
			}
			if w.s.Exists("bucket-3") != c.there {
				t.Errorf("%s is seen before it is durable", c.what)
			}
			select {
			case err := <-done:
				t.Errorf("%s returned before the disk did: %v", c.what, err)
			default:
			}
			g.pass()
			if err := <-done; err != nil || w.s.Exists("bucket-3") == c.there {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	})
}

// A file that has its name and not yet its metadata is no orphan, however old it is.
func TestBodyOnItsWayIsNoOrphan(t *testing.T) {
	gated(t, func(t *testing.T, w *world, g *gate) {
		g.hold(isBodyFolder)
		var calls sync.WaitGroup
		calls.Go(func() { w.put("k", pattern(inlineBytes+1)) })
		synctest.Wait()
		if n := w.files(); n != 1 {
			t.Errorf("%d files have a name, want 1", n)
		}
		w.ms.Store(time.Now().Add(time.Hour).UnixMilli())
		if err := w.s.garbage.orphans(t.Context()); err != nil {
			t.Error(err)
		}
		g.pass()
		calls.Wait()
		if got, _, _ := w.get("k", GetOptions{}); len(got) != inlineBytes+1 {
			t.Errorf("the object has %d bytes", len(got))
		}
	})
}
