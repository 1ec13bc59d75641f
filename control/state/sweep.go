package state

import "edged/control/form"

// sweepBatch bounds the work of one sweep, so that retention never holds up mutations for long.
const sweepBatch = 256

// sweep forgets terminal Operations whose retention ended, with their idempotency records and, for deletes, tombstones.
func (s *State) sweep(c *Command) Outcome {
	var due []string
	end := key(ordered(uint64(c.At)))
	more := false
	s.retained.Scan(func(k, id string) bool {
		if k >= end {
			return false
		}
		more = len(due) == sweepBatch
		if !more {
			due = append(due, id)
		}
		return !more
	})
	for _, id := range due {
		op, ok := s.operations.Delete(id)
		if !ok {
			continue
		}
		s.retained.Delete(retainKey(op))
		if rec, ok := s.replays.Get(op.Key); ok && rec.Operation == id {
			s.replays.Delete(op.Key)
		}
		if op.Action == form.Delete && op.Status == Succeeded {
			s.tombs.Delete(op.Resource)
		}
	}
	return Outcome{More: more}
}

// Due reports whether a sweep at this time (Unix ms) would forget anything.
func (s *State) Due(now int64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first, _, ok := s.retained.Min()
	return ok && first < key(ordered(uint64(now)))
}
