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
	brief pace = iota // as a rule over before others have waited for long
	quick             // little work behind it, and seldom much before it
	slow              // works long

	numPaces
)

// paceOf is that of one that uses so much CPU time.
func paceOf(cpu time.Duration) pace {
	switch {
	case cpu < briefCPU:
		return brief
	case cpu < quickCPU:
		return quick
	}
	return slow
}

const (
	briefCPU = 500 * time.Microsecond
	quickCPU = 10 * time.Millisecond
)

// turns hands out the slots that guests run in. Versions that wait take turns, and the guests of one get theirs in the order in
// which they came: one version's rush delays its own. The brief and the quick go before the slow, except that every few slots one goes
// to a slow one: those that work long share what is left over and do not hold up the short ones, and nobody waits for ever. While quick ones come, the slow
// leave one slot to them, so that such a one finds it free at once; when none has come for a while, the slow have all. There are more
// slots, for the brief alone: to wait for another brief one costs more than to run beside it. Those are the first that they fill, so that
// others who wait get the next of theirs.
type turns struct {
	size    int          // slots for all
	more    int          // slots for the brief
	waiting atomic.Int32 // how many wait
	places  sync.Pool    // of *place that nobody waits in: under load many an invocation waits

	mu     sync.Mutex // guards the fields below
	free   int
	slow   int                 // slots that slow ones hold
	brief  int                 // slots that brief ones hold
	queues [numPaces]list.List // *queue that are not empty, the next first
	lines  uint64              // how often a queue went to the end of its list
	inARow int                 // how many slots in a row went to others while slow ones waited
	guard  int                 // ends of slow ones' turns until they may have every slot

	sweeper *time.Timer // nil until somebody first waits
	sweeps  bool        // it is set: at most once in each sweepEvery, however often somebody begins to wait
}

const (
	quickInARow = 4 // slots that go to quick ones for one that goes to another
	guardTurns  = 8 // per slot: with turns of 2 ms, some 16 ms
)

func newTurns(size, more int) *turns { return &turns{size: size, more: more, free: size + more} }

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
	if p == brief {
		return t.free > 0
	}
	return t.free > max(0, t.more-t.brief)
}

func (t *turns) takeLocked(p pace) {
	t.free--
	t.holdLocked(p, 1)
	if p != slow {
		t.guard = guardTurns * t.size
	}
}

// holdLocked counts d more slots that are held at this pace.
func (t *turns) holdLocked(p pace, d int) {
	switch p {
	case brief:
		t.brief += d
	case slow:
		t.slow += d
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
	t.holdLocked(p, -1)
	if p == slow {
		t.guard = max(0, t.guard-1)
	}
	for t.passLocked() {
	}
}

// passLocked hands a slot to the next in line and reports whether it did.
func (t *turns) passLocked() bool {
	short, long := t.nextLocked(brief), t.nextLocked(slow)
	if p := t.nextLocked(quick); short == nil || p != nil && p.queue.since < short.queue.since {
		short = p
	}
	if short == nil && long == nil {
		return false
	}
	p := short
	switch {
	case short == nil, long != nil && t.inARow == quickInARow:
		p, t.inARow = long, 0
	case long != nil:
		t.inARow++
	}
	t.queues[p.pace].MoveToBack(p.queue.at)
	t.lines++
	p.queue.since = t.lines
	t.removeLocked(p)
	t.takeLocked(p.pace)
	p.ready <- nil
	return true
}

// nextLocked returns the next of a pace if there is a slot for it.
func (t *turns) nextLocked(p pace) *place {
	first := t.queues[p].Front()
	if first == nil || !t.mayLocked(p) {
		return nil
	}
	return first.Value.(*queue).first
}

// taken returns how many slots are taken, those for the brief included.
func (t *turns) taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size + t.more - t.free
}
