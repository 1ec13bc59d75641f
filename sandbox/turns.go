package sandbox

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// turns hands out the slots that guests run in. Who waits gets one in the order in which they came, but those with little work
// behind them (quick) before those with much, except that every few slots one goes to the latter: guests that work long share
// what is left over and do not hold up the short ones, and nobody waits for ever.
type turns struct {
	size    int
	waiting atomic.Int32 // how many wait

	mu     sync.Mutex // guards the fields below
	free   int
	queues [2]list.List // of chan struct{}: the quick ones, the others
	quick  int          // how many slots in a row went to quick ones while others waited
}

// quickInARow is how many slots go to quick ones for one that goes to another.
const quickInARow = 4

func newTurns(size int) *turns { return &turns{size: size, free: size} }

// try takes a slot if one is free.
func (t *turns) try() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		return false
	}
	t.free--
	return true
}

// place is a place in the queue. ready gets a value when the place has become a slot.
type place struct {
	ready chan struct{}
	queue *list.List
	at    *list.Element // nil: the slot was given
}

// line takes a slot, or a place in the queue for one. The place must be left by leave or have its ready received.
func (t *turns) line(quick bool) *place {
	p := &place{ready: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		p.ready <- struct{}{}
		return p
	}
	p.queue = &t.queues[1]
	if quick {
		p.queue = &t.queues[0]
	}
	p.at = p.queue.PushBack(p)
	t.waiting.Add(1)
	return p
}

// leave gives up a place, or the slot that it has become.
func (t *turns) leave(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.at == nil {
		t.passLocked()
		return
	}
	p.queue.Remove(p.at)
	p.at = nil
	t.waiting.Add(-1)
}

// give gives a slot back.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passLocked()
}

// passLocked hands a slot to the next in line.
func (t *turns) passLocked() {
	quick, others := &t.queues[0], &t.queues[1]
	from := quick
	switch {
	case quick.Len() == 0 && others.Len() == 0:
		t.free++
		return
	case quick.Len() == 0, others.Len() > 0 && t.quick == quickInARow:
		from, t.quick = others, 0
	case others.Len() > 0:
		t.quick++
	}
	p := from.Remove(from.Front()).(*place)
	p.at = nil
	t.waiting.Add(-1)
	p.ready <- struct{}{}
}

// taken returns how many slots are taken.
func (t *turns) taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size - t.free
}
