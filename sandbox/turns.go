package sandbox

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// turns hands out the slots that guests run in. Versions that wait take turns, and the guests of one get theirs in the order in
// which they came: one version's rush delays its own. Those with little work behind them (quick) go before those with much, except
// that every few slots one goes to the latter: guests that work long share what is left over and do not hold up the short ones, and
// nobody waits for ever.
type turns struct {
	size    int
	waiting atomic.Int32 // how many wait

	mu     sync.Mutex // guards the fields below
	free   int
	queues [2]list.List // of *queue that are not empty, the next first: the quick ones, the others
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

// queues are where the guests of one version wait, the quick ones and the others; the lock of turns guards them. The zero value
// is empty.
type queues [2]queue

type queue struct {
	places list.List     // of *place, oldest first
	class  int           // in which of turns.queues
	at     *list.Element // there; nil while empty
}

// place is a place in a queue. ready gets a value when the place has become a slot.
type place struct {
	ready chan struct{}
	queue *queue
	at    *list.Element // nil: the slot was given
}

// line takes a slot, or a place in one of the queues of who asks. The place must be left by leave or have its ready received.
func (t *turns) line(who *queues, quick bool) *place {
	p := &place{ready: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		p.ready <- struct{}{}
		return p
	}
	class := 1
	if quick {
		class = 0
	}
	p.queue = &who[class]
	p.at = p.queue.places.PushBack(p)
	if p.queue.at == nil {
		p.queue.class, p.queue.at = class, t.queues[class].PushBack(p.queue)
	}
	t.waiting.Add(1)
	return p
}

// removeLocked takes a place out of its queue, and the queue out of line if that was all of it.
func (t *turns) removeLocked(p *place) {
	q := p.queue
	q.places.Remove(p.at)
	p.at = nil
	if q.places.Len() == 0 {
		t.queues[q.class].Remove(q.at)
		q.at = nil
	}
	t.waiting.Add(-1)
}

// leave gives up a place, or the slot that it has become.
func (t *turns) leave(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.at == nil {
		t.passLocked()
		return
	}
	t.removeLocked(p)
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
	q := from.Front().Value.(*queue)
	from.MoveToBack(q.at)
	p := q.places.Front().Value.(*place)
	t.removeLocked(p)
	p.ready <- struct{}{}
}

// taken returns how many slots are taken.
func (t *turns) taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size - t.free
}
