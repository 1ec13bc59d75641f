package queue

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
	"edged/queue/lease"
)

const (
	houseEvery = time.Minute // between sweeps and trims
	sweepMax   = 1 << 10     // messages per step of a sweep
)

// keepLeases moves the announced end of all leases ahead while any batch is held.
func (s *Store) keepLeases(ctx context.Context) {
	tick := time.NewTicker(s.opt.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.held.Load() == 0 {
			continue
		}
		leaseEnd := time.Now().Add(s.opt.Lease).UnixMilli()
		if err := s.db.Set(leaseEndKey, appendNumber(uint64(leaseEnd)), pebble.Sync); err != nil {
			s.opt.Log.Error("leases could not be renewed", "err", err, "do", fault.CheckDisk)
			continue
		}
		s.alive.Store(leaseEnd)
	}
}

// keepHouse counts what was there at the start, then discards what is past its retention and trims what was passed.
func (s *Store) keepHouse(ctx context.Context) {
	if err := s.count(ctx); err != nil && ctx.Err() == nil {
		s.opt.Log.Error("messages could not be counted", "err", err, "do", fault.CheckDisk)
	}
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	for {
		for _, q := range s.all() {
			if err := s.sweep(ctx, q); err != nil {
				s.opt.Log.Error("retention could not be enforced", "queue", q.uid, "err", err,
					"do", fault.CheckDisk)
			}
		}
		if err := s.trim(); err != nil {
			s.opt.Log.Error("due index could not be trimmed", "err", err, "do", fault.CheckDisk)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep discards waiting messages that are past the retention, consumer or not. An entry is due no earlier than it was
// accepted, so those at the head of the index are enough; one with a long delay goes when that has passed, or when a
// dispatcher meets it. Messages in doubt are left to the dispatcher, which knows their budget.
func (s *Store) sweep(ctx context.Context, q *queue) error {
	for ctx.Err() == nil {
		more, err := s.sweepStep(q, time.Now().UnixMilli())
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (s *Store) sweepStep(q *queue, now int64) (more bool, err error) {
	s.commits.RLock()
	defer s.commits.RUnlock()
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		return false, nil
	}
	cutoff := now - q.settings.Retention.Milliseconds()
	left := end
	claimed, next, err := q.claimLocked(s.db, q.swept, sweepMax, func(e entry) (take, stop bool) {
		if e.doubt && e.before(left) {
			left = e.position
		}
		return !e.doubt && lease.Expired(e.accepted, now, q.settings.Retention), e.due > cutoff
	})
	if err == nil {
		q.swept = next
		if left.before(next) {
			q.swept = left
		}
	}
	q.mu.Unlock()
	if err != nil || len(claimed) == 0 {
		return false, err
	}
	st := s.newStep(q)
	for _, e := range claimed {
		st.unindex(e)
		st.remove(e, "expired")
	}
	return left == end && next.due <= cutoff, st.applyLazily()
}

// trim drops the tombstones that dispatchers left behind, so that nothing ever reads through them.
func (s *Store) trim() error {
	batch := s.db.NewBatch()
	defer batch.Close()
	s.commits.Lock()
	defer s.commits.Unlock()
	for _, q := range s.all() {
		q.mu.Lock()
		if q.dirty && !q.gone {
			low := q.window.low(q.swept)
			must(batch.DeleteRange(dueKey(q.num, position{}), dueKey(q.num, low), nil))
			q.dirty = false
		}
		q.mu.Unlock()
	}
	if batch.Empty() {
		return nil
	}
	return s.db.Apply(batch, pebble.NoSync)
}
