package feed

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A follower that starts with the newest plan has nothing to take into use; it says once that this plan is the newest, and not before an
// upstream that knows it has said so.
func TestConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut atomic.Bool // the voter has not heard of the leader
		p := newPair(t, ServerOptions{Fresh: func() time.Time {
			if cut.Load() {
				return time.Time{}
			}
			return time.Now()
		}})
		p.change(t)
		p.n.start()
		level(t, p.n, p.src.plan, time.Second)
		p.n.stop()
		if p.n.sure != 1 {
			t.Errorf("%d confirmations of a plan that was taken into use, want 1", p.n.sure)
		}

		cut.Store(true)
		p.n.start()
		time.Sleep(time.Minute)
		p.n.mu.Lock()
		sure := p.n.sure
		p.n.mu.Unlock()
		if sure != 1 {
			t.Error("confirmed by a voter that is cut off")
		}
		cut.Store(false)
		time.Sleep(stall)
		p.n.stop()
		if p.n.sure != 2 {
			t.Errorf("%d confirmations after a restart with the newest plan, want one more", p.n.sure)
		}
		p.lose()
	})
}
