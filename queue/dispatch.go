package queue

import (
	"context"
	"sync"
	"time"

	"edged/internal/fault"
	"edged/queue/lease"
)

const (
	recheck     = 30 * time.Second // a dispatcher looks at least that often: the wall clock may have jumped
	retireMax   = 1 << 10          // messages that end without a delivery, per step
	missPause   = 100 * time.Millisecond
	missLongest = 10 * time.Second
)

// Run delivers what is due until ctx is done. Then no batch is leased any more, deliveries that run may finish for
// Options.Drain, and are cancelled after it. One Run at a time.
func (s *Store) Run(ctx context.Context) error {
	if s.opt.Deliver == nil {
		return fault.New(fault.Invalid, "queue.Run", "Deliver is missing")
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var keepers, dispatchers sync.WaitGroup
	keepers.Go(func() { s.keepLeases(work) })
	keepers.Go(func() { s.keepHouse(ctx) })
	for ctx.Err() == nil {
		for _, q := range s.all() {
			if q.startLoop() {
				dispatchers.Go(func() { s.dispatch(ctx, work, q) })
			}
		}
		select {
		case <-ctx.Done():
		case <-s.change:
		}
	}
	late := time.AfterFunc(s.opt.Drain, cancel)
	dispatchers.Wait()
	late.Stop()
	cancel()
	keepers.Wait()
	return context.Cause(ctx)
}

// startLoop reports whether the queue needs a dispatcher and has none; the caller starts it.
func (q *queue) startLoop() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.loop || q.consumer == nil || q.gone {
		return false
	}
	q.loop = true
	return true
}

// dispatch is the loop of one queue. It ends with ctx, or with the queue.
func (s *Store) dispatch(ctx, work context.Context, q *queue) {
	var deliveries sync.WaitGroup
	defer func() {
		deliveries.Wait()
		q.mu.Lock()
		q.loop = false
		q.mu.Unlock()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		d := s.decide(q, time.Now())
		switch {
		case d.ended:
			return
		case d.batch != nil:
			deliveries.Go(func() { s.serve(ctx, work, q, d) })
			continue
		case d.spent != nil || d.expired != nil:
			s.retire(q, d)
			continue
		}
		timer.Reset(min(d.wait, recheck))
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-timer.C:
		}
	}
}

// decision is what a dispatcher does next. The entries in it are in flight.
type decision struct {
	ended    bool
	batch    []entry // deliver these
	spent    []entry // whose last permitted delivery ended in doubt: end these
	expired  []entry // past their retention: discard these
	consumer Consumer
	name     string
	wait     time.Duration // else look again then, or when woken
}

func (s *Store) decide(q *queue, now time.Time) decision {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return decision{ended: true}
	}
	c := q.consumer
	if c == nil || c.Undeployed || q.running >= c.MaxConcurrency {
		return decision{wait: recheck}
	}
	if now.Before(q.pause) {
		return decision{wait: q.pause.Sub(now)}
	}
	if q.window.wantsMore() {
		if err := q.refillLocked(s.db); err != nil {
			s.opt.Log.Error("due index cannot be read", "queue", q.uid, "err", err, "do", fault.CheckDisk)
			return decision{wait: recheck}
		}
	}
	d := q.pickLocked(now)
	d.consumer, d.name = *c, q.settings.Name
	if d.batch != nil {
		q.running++
	}
	return d
}

// pickLocked takes the entries to act on now, or says how long there is nothing to do.
func (q *queue) pickLocked(now time.Time) decision {
	var d decision
	ms, c := now.UnixMilli(), q.consumer
	d.wait = recheck
	if q.window.wantsMore() && q.window.ready.Len() == 0 {
		d.wait = 0 // all that was read is under way, more follows
	}
	q.window.ready.Scan(func(e entry) bool {
		switch {
		case e.due > ms:
			d.wait = time.Duration(e.due-ms) * time.Millisecond
			return false
		case e.doubt && lease.Exhausted(int(e.attempts), c.MaxRetries):
			d.spent = append(d.spent, e)
		case lease.Expired(e.accepted, ms, q.settings.Retention):
			d.expired = append(d.expired, e)
		default:
			d.batch = append(d.batch, e)
		}
		return len(d.batch) < c.MaxBatchSize && len(d.spent)+len(d.expired) < retireMax
	})
	switch {
	case d.spent != nil || d.expired != nil:
		d.batch = nil // they come again
		q.takeLocked(d.spent)
		q.takeLocked(d.expired)
	case len(d.batch) == 0:
	case len(d.batch) < c.MaxBatchSize && now.Before(time.UnixMilli(d.batch[0].due).Add(c.MaxBatchTimeout)):
		d.wait = min(d.wait, time.UnixMilli(d.batch[0].due).Add(c.MaxBatchTimeout).Sub(now))
		d.batch = nil
	default:
		q.takeLocked(d.batch)
	}
	return d
}

// retire ends messages that are delivered no more.
func (s *Store) retire(q *queue, d decision) {
	s.commits.RLock()
	defer s.commits.RUnlock()
	st := s.newStep(q)
	for _, e := range d.expired {
		st.unindex(e)
		st.remove(e, "expired")
	}
	for _, e := range d.spent {
		st.unindex(e)
	}
	st.exhaust(d.spent, d.consumer)
	if err := st.settle(st.apply()); err != nil {
		s.opt.Log.Error("messages could not be retired", "queue", q.uid, "err", err, "do", fault.CheckDisk)
	}
}
