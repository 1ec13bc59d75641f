package control

import (
	"context"
	"sync"
	"time"
)

// defaultSettleWait is how long a mutation waits for the runner to end its Operation before it is answered as unfinished. What
// the runner does in milliseconds then costs the client no second request, which it may send a second later at best.
const defaultSettleWait = 300 * time.Millisecond

// endings tells who waits for an Operation that it ended.
type endings struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by Operation; closed once by tell
}

func (e *endings) init() { e.waiting = map[string]chan struct{}{} }

// expect returns a channel that is closed when the Operation ends. It comes before the command that makes the Operation,
// so that no end is missed; forget is called when nobody waits any more.
func (e *endings) expect(id string) (ended <-chan struct{}, forget func()) {
	ch := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[id] = ch
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, id)
	}
}

func (e *endings) tell(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ch, ok := e.waiting[id]; ok {
		close(ch)
		delete(e.waiting, id)
	}
}

// settle waits for an end, within most and ctx. Whoever waits looks at the Operation either way: it may have moved on.
func settle(ctx context.Context, ended <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}
