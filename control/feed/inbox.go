package feed

import (
	"context"
	"sync"
	"time"

	"edged/control/plan"
)

// inboxBytes bounds what is read ahead of what is taken: a session waits from then on, and is cut off by its upstream if that takes long.
const inboxBytes = 32 << 20

// arrival is one thing that a session has read.
type arrival struct {
	delta *plan.Delta
	whole *plan.Plan // in place of all before; with from
	from  position   // epoch and partial of whole
	index uint64     // of a beat
	fresh time.Time  // of a beat; zero in others
	bytes int
}

// inbox is what sessions have read and the follower has not yet taken, in order.
type inbox struct {
	mu    sync.Mutex
	items []arrival
	bytes int
	took  chan struct{} // closed when the items are taken, then replaced
	wake  chan struct{} // capacity 1
}

func (b *inbox) init() { b.took, b.wake = make(chan struct{}), make(chan struct{}, 1) }

// put adds an arrival; it waits while there is too much already.
func (b *inbox) put(ctx context.Context, a arrival) error {
	for {
		b.mu.Lock()
		if b.bytes < inboxBytes {
			if n := len(b.items); n > 0 && !a.fresh.IsZero() && !b.items[n-1].fresh.IsZero() {
				b.items = b.items[:n-1] // only the last of beats in a row counts
			}
			b.items, b.bytes = append(b.items, a), b.bytes+a.bytes
			b.mu.Unlock()
			select {
			case b.wake <- struct{}{}:
			default: // it is awake already
			}
			return nil
		}
		took := b.took
		b.mu.Unlock()
		select {
		case <-took:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *inbox) take() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items, b.bytes = nil, 0
	close(b.took)
	b.took = make(chan struct{})
	return items
}
