package sandbox

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// pace is what a guest is to the others that wait for a slot.
type pace uint8

const (
	quick pace = iota // little work behind it, and seldom much before it
	slow              // works long
)

// turns hands out the slots that guests run in. Versions that wait take turns, and the guests of one get theirs in the order in
// which they came: one version's rush delays its own. The quick go before the slow, except that every few slots one goes to a slow one: those
// that work long share what is left over and do not hold up the short ones, and nobody waits for ever. While quick ones come, the slow
// leave one slot to them, so that such a one finds it free at once; when none has come for a while, the slow have all.
type turns struct {
	size    int
	waiting atomic.Int32 // how many wait
	places  sync.Pool    // of *place that nobody waits in: under load nearly every invocation waits

	mu     sync.Mutex // guards the fields below
	free   int
	slow   int          // slots that slow ones hold
	queues [2]list.List // by pace: *queue that are not empty, the next first
	row    int          // how many slots in a row went to quick ones while slow ones waited
	guard  int          // ends of slow ones' turns until they may have every slot

	sweeper *time.Timer // runs while somebody waits; nil before
}

const (
	quickInARow = 4 // slots that go to quick ones for one that goes to another
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
	as := quick
	switch {
	case !short, long && t.row == quickInARow:
		as, t.row = slow, 0
	case long:
		t.row++
	}
	q := t.queues[as].Front().Value.(*queue)
	t.queues[as].MoveToBack(q.at)
	p := q.first
	t.removeLocked(p)
	t.takeLocked(as)
	p.ready <- nil
	return true
}

// taken returns how many slots are taken.
func (t *turns) taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size - t.free
}
