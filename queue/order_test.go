package queue

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// heldLog is a disk on which syncs of the log wait while there is a gate.
func heldLog(gate *atomic.Pointer[chan struct{}]) vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if shut := gate.Load(); sync && shut != nil && strings.HasSuffix(op.Path, ".log") {
			<-*shut
		}
		return nil
	}))
}

// Queues come, change, are purged and go beside the messages of others: whoever does so waits for the disk, but not with the lock that
// every message needs. What was sent meanwhile has its place in the log already, and shares the sync.
func TestCatalogBesideMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate atomic.Pointer[chan struct{}]
		s, err := Open(Options{Dir: "q", FS: heldLog(&gate), Deliver: func(context.Context, *Batch) (Outcome, error) { return Returned, nil }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, set := t.Context(), settings()
		if err := s.Create(ctx, jobs, set); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Send(ctx, jobs, Message{Body: []byte("a")}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what   string
			fn     func() error
			exists bool // dlq, meanwhile
		}{
			{"create", func() error { return s.Create(ctx, dlq, set) }, false},
			{"update", func() error { return s.Update(ctx, dlq, set) }, true},
			{"purge", func() error { _, err := s.Purge(ctx, dlq); return err }, true},
			{"delete", func() error { return s.Delete(ctx, dlq) }, false},
			{"delete of what is not here", func() error { return s.Delete(ctx, dlq) }, false},
		} {
			shut := make(chan struct{})
			gate.Store(&shut)
			done, sent := make(chan error, 1), make(chan error, 1)
			go func() { done <- c.fn() }()
			synctest.Wait()
			if !s.commits.TryLock() { // a call would hang here
				t.Fatalf("%s waits for the disk with the lock of all messages", c.what)
			}
			s.commits.Unlock()
			if s.Exists(dlq) != c.exists {
				t.Errorf("%s: exists is %t meanwhile", c.what, !c.exists)
			}
			go func() {
				_, err := s.Send(ctx, jobs, Message{Body: []byte("b")})
				sent <- err
			}()
			synctest.Wait()
			for what, ch := range map[string]chan error{c.what: done, "send": sent} {
				select {
				case err := <-ch:
					t.Errorf("%s returned before the disk did: %v", what, err)
				default:
				}
			}
			gate.Store(nil)
			close(shut)
			if err := <-done; err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			if err := <-sent; err != nil {
				t.Errorf("send during %s: %v", c.what, err)
			}
		}
		if st, err := s.Stats(ctx, jobs); err != nil || st.Waiting != 6 {
			t.Errorf("%+v, %v", st, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
