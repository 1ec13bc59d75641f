package sandbox

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// pace is what a guest is to the others that wait for a slot.
type pace uint8

const (
	quick pace = iota // little work behind it, and seldom much before it
	slow              // works long
)

// turns hands out the slots that guests run in. Who waits gets one in the order in which they came, but the quick before the slow,
// except that every few slots one goes to a slow one: those that work long share what is left over and do not hold up the short
// ones, and nobody waits for ever. While quick ones come, the slow leave one slot to them, so that such a one finds it free at once; when
// none has come for a while, the slow have all.
type turns struct {
	size    int
	waiting atomic.Int32 // how many wait

	mu     sync.Mutex // guards the fields below
	free   int
	slow   int          // slots that slow ones hold
	queues [2]list.List // of chan struct{}, by pace
	row    int          // how many slots in a row went to quick ones while slow ones waited
	guard  int          // ends of slow ones' turns until they may have every slot
}

const (
	quickInARow = 4 // slots that go to quick ones for one that goes to a slow
	guardTurns  = 8 // per slot: with turns of 2 ms, some 16 ms
)

func newTurns(size int) *turns { return &turns{size: size, free: size} }

// try takes a slot if one is free.
func (t *turns) try(p pace) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mayLocked(p) {
		return false
	}
	t.takeLocked(p)
	return true
}

// mayLocked reports whether there is a slot for one of this pace.
func (t *turns) mayLocked(p pace) bool {
	if p == slow && t.guard > 0 && t.size > 1 && t.slow >= t.size-1 {
		return false
	}
	return t.free > 0
}

func (t *turns) takeLocked(p pace) {
	t.free--
	if p == slow {
		t.slow++
	} else {
		t.guard = guardTurns * t.size
	}
}

// place is a place in the queue. ready gets a value when the place has become a slot.
type place struct {
	ready chan struct{}
	pace  pace
	at    *list.Element // nil: the slot was given
}

// line takes a slot, or a place in the queue for one. The place must be left by leave or have its ready received.
func (t *turns) line(p pace) *place {
	at := &place{ready: make(chan struct{}, 1), pace: p}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mayLocked(p) {
		t.takeLocked(p)
		at.ready <- struct{}{}
		return at
	}
	if p == quick {
		t.guard = guardTurns * t.size
	}
	at.at = t.queues[p].PushBack(at)
	t.waiting.Add(1)
	return at
}

// leave gives up a place, or the slot that it has become.
func (t *turns) leave(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.at == nil {
		t.giveLocked(p.pace)
		return
	}
	t.queues[p.pace].Remove(p.at)
	p.at = nil
	t.waiting.Add(-1)
}

// give gives a slot back that was taken at this pace.
func (t *turns) give(p pace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveLocked(p)
}

func (t *turns) giveLocked(p pace) {
	t.free++
	if p == slow {
		t.slow--
		t.guard = max(0, t.guard-1)
	}
	for t.passLocked() {
	}
}

// passLocked hands a slot to the next in line and reports whether it did.
func (t *turns) passLocked() bool {
	short := t.queues[quick].Len() > 0 && t.mayLocked(quick)
	long := t.queues[slow].Len() > 0 && t.mayLocked(slow)
	if !short && !long {
		return false
	}
	p := quick
	switch {
	case !short, long && t.row == quickInARow:
		p, t.row = slow, 0
	case long:
		t.row++
	}
	next := t.queues[p].Remove(t.queues[p].Front()).(*place)
	next.at = nil
	t.waiting.Add(-1)
	t.takeLocked(p)
	next.ready <- struct{}{}
	return true
}

// taken returns how many slots are taken.
func (t *turns) taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size - t.free
}
