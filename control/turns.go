package control

import (
	"context"
	"sync"
)

// turns shares a few slots between tenants: however many of one tenant wait, another waits for one slot to become free
// at most. A tenant that is alone has them all.
type turns struct {
	slots chan struct{} // capacity: how many may be at work; those who wait get it in the order in which they came

	mu      sync.Mutex
	tenants map[string]*queue // of those with somebody at work or waiting
}

// queue is one tenant's: as many of it as there are slots are at work or next in line, the others wait here.
type queue struct {
	inLine chan struct{}
	users  int // guarded by turns.mu
}

func (t *turns) init(slots int) {
	t.slots, t.tenants = make(chan struct{}, slots), map[string]*queue{}
}

// take waits for a slot, which done gives back. The error is that of ctx.
func (t *turns) take(ctx context.Context, tenant string) (done func(), err error) {
	q := t.join(tenant)
	select {
	case q.inLine <- struct{}{}:
	case <-ctx.Done():
		t.leave(tenant, q)
		return nil, ctx.Err()
	}
	goOn := func() {
		<-q.inLine
		t.leave(tenant, q)
	}
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots; goOn() }, nil
	case <-ctx.Done():
		goOn()
		return nil, ctx.Err()
	}
}

func (t *turns) join(tenant string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.tenants[tenant]
	if q == nil {
		q = &queue{inLine: make(chan struct{}, cap(t.slots))}
		t.tenants[tenant] = q
	}
	q.users++
	return q
}

func (t *turns) leave(tenant string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.tenants, tenant)
	}
}
