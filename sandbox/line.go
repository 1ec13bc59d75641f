package sandbox

import (
	"container/list"
	"context"
	"time"

	"edged/sandbox/event"
)

// queues are where the guests of one version wait, by pace; the lock of turns guards them. The zero value is empty.
type queues [numPaces]queue

type queue struct {
	first, last *place        // oldest first
	at          *list.Element // in turns.queues; nil while empty
	since       uint64        // turns.lines when it went to the end there
}

// place is a place in a queue. What ready gets is its end: nil when it has become a slot.
type place struct {
	ready chan error
	pace  pace
	until until

	queue      *queue
	next, prev *place
}

// until is what else ends a wait; the zero value is nothing.
type until struct {
	gone     context.Context // the client's
	kill     <-chan struct{}
	deadline time.Time
}

// come returns why the wait is over at now, nil while it is not.
func (u *until) come(now time.Time) error {
	if u.gone != nil && u.gone.Err() != nil {
		return errClient
	}
	select {
	case <-u.kill:
		return errShutdown
	default:
	}
	if !u.deadline.IsZero() && !now.Before(u.deadline) {
		return event.ErrWall
	}
	return nil
}

// wait waits for a slot in the queue of who asks, and takes it. The error is why it was given up; that is looked at every few
// milliseconds, by one for all: a timer and four channels to listen to would cost each wait more than all else of it.
func (t *turns) wait(who *queues, as pace, end until) error {
	p := t.line(who, as, end)
	err := <-p.ready
	p.until = until{}
	t.places.Put(p)
	return err
}

// line takes a slot, or a place in the queue of who asks. Either way ready tells how it ended.
func (t *turns) line(who *queues, as pace, end until) *place {
	p, _ := t.places.Get().(*place)
	if p == nil {
		p = &place{ready: make(chan error, 1)}
	}
	p.pace, p.until = as, end
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mayLocked(as) {
		t.takeLocked(as)
		p.ready <- nil
		return p
	}
	if as != slow {
		t.guard = guardTurns * t.size
	}
	q := &who[as]
	p.queue, p.prev = q, q.last
	if q.last != nil {
		q.last.next = p
	} else {
		q.first = p
		q.at = t.queues[as].PushBack(q)
		t.lines++
		q.since = t.lines
	}
	q.last = p
	t.waiting.Add(1)
	if !t.sweeps {
		t.sweepLaterLocked()
	}
	return p
}

// removeLocked takes a place out of its queue, and the queue out of line if that was all of it.
func (t *turns) removeLocked(p *place) {
	q := p.queue
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		q.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		q.last = p.prev
	}
	p.queue, p.next, p.prev = nil, nil, nil
	if q.first == nil {
		t.queues[p.pace].Remove(q.at)
		q.at = nil
	}
	t.waiting.Add(-1)
}

// sweepEvery is how long a wait may outlast what ends it.
const sweepEvery = 5 * time.Millisecond

func (t *turns) sweepLaterLocked() {
	t.sweeps = true
	if t.sweeper == nil {
		t.sweeper = time.AfterFunc(sweepEvery, t.sweep)
		return
	}
	t.sweeper.Reset(sweepEvery)
}

// sweep ends the waits that have to end, and comes again while others go on.
func (t *turns) sweep() {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.queues {
		for at := t.queues[i].Front(); at != nil; {
			q := at.Value.(*queue)
			at = at.Next() // the queue may go
			for p := q.first; p != nil; {
				next := p.next
				if err := p.until.come(now); err != nil {
					t.removeLocked(p)
					p.ready <- err
				}
				p = next
			}
		}
	}
	if t.sweeps = t.waiting.Load() > 0; t.sweeps {
		t.sweepLaterLocked()
	}
}
