package queue

import (
	"context"
	"time"

	"edged/internal/fault"
)

// RedriveOptions says which messages of a queue are moved to where, and how fast.
type RedriveOptions struct {
	To     string    // UID of the queue that gets them; "" means each message's origin, and leaves those without one
	Origin string    // only messages that this queue gave up, "" all
	After  time.Time // only messages accepted at or after it, the zero time all
	Before time.Time // only messages accepted before it, the zero time means the start of the call
	Max    int       // messages, 0 all
	Rate   int       // messages per second, 0 means 1000
}

// Redriven says what a redrive did.
type Redriven struct {
	Moved int // new messages in their queues now
	Left  int // matched, but their queue is not here or they have no origin
}

// Redrive moves waiting messages, usually dead letters, into another queue, each in one durable step: there it is a new
// message with a new id and all attempts before it. It goes once through what waited when it began, and ends early with ctx; what
// it moved until then is in the result.
func (s *Store) Redrive(ctx context.Context, ref Ref, opt RedriveOptions) (Redriven, error) {
	const op = "queue.Redrive"
	q, err := s.lookup(op, ref)
	if err != nil {
		return Redriven{}, err
	}
	if opt.Max < 0 || opt.Rate < 0 || opt.To == ref.UID {
		return Redriven{}, fault.New(fault.Invalid, op, "Max and Rate are not negative, and a queue is not redriven into itself")
	}
	if opt.Rate == 0 {
		opt.Rate = 1000
	}
	if now := time.Now().Add(time.Millisecond); opt.Before.IsZero() || opt.Before.After(now) {
		opt.Before = now // what it moves and fails again would go round for ever
	}
	chunk := min(max(opt.Rate/10, 1), MaxBatch)
	pace := time.NewTicker(time.Second * time.Duration(chunk) / time.Duration(opt.Rate))
	defer pace.Stop()
	var done Redriven
	for at := (position{}); at != end; {
		limit := chunk
		if opt.Max > 0 {
			limit = min(limit, opt.Max-done.Moved)
		}
		if limit == 0 {
			break
		}
		var some Redriven
		if some, at, err = s.redriveSome(q, at, limit, opt); err != nil {
			return done, unavailable(op, err)
		}
		done.Moved, done.Left = done.Moved+some.Moved, done.Left+some.Left
		if some.Moved == 0 && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-pace.C:
		}
	}
	return done, nil
}

// redriveSome moves up to limit messages found from a position on and returns where to go on.
func (s *Store) redriveSome(q *queue, from position, limit int, opt RedriveOptions) (Redriven, position, error) {
	if err := s.opt.Space.Check(); err != nil {
		return Redriven{}, from, err
	}
	s.commits.RLock()
	defer s.commits.RUnlock()
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		return Redriven{}, end, nil
	}
	claimed, next, err := q.claimLocked(s.db, from, limit, func(e entry) (take, stop bool) {
		at := time.UnixMilli(e.accepted)
		return !at.Before(opt.After) && at.Before(opt.Before), false
	})
	q.mu.Unlock()
	if err != nil {
		return Redriven{}, from, err
	}
	targets := map[string][]entry{}
	var back []entry
	left := 0
	for _, e := range claimed {
		w, err := readWaiting(s.db, q.num, e, false)
		to := opt.To
		if to == "" {
			to = w.Origin
		}
		switch {
		case err != nil || opt.Origin != "" && opt.Origin != w.Origin:
			back = append(back, e)
		case to == "" || to == q.uid || s.find(to) == nil:
			back = append(back, e)
			left++
		default:
			targets[to] = append(targets[to], e)
		}
	}
	q.giveBack(back)
	moved := 0
	for to, entries := range targets {
		st := s.newStep(q)
		held := st.moveTo(s.find(to), entries, "")
		for _, e := range st.gone {
			st.unindex(e)
		}
		if err := st.settle(st.apply()); err != nil {
			return Redriven{}, from, err
		}
		q.giveBack(held)
		moved += len(st.arrived)
		left += len(held)
	}
	s.opt.Metrics.settled["redriven"].Add(float64(moved))
	return Redriven{moved, left}, next, nil
}
