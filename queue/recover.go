package queue

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// recover turns every lease on disk into waiting entries whose last delivery is in doubt: the process that held them is
// dead. They are due at the end of its lease. A message that is gone was settled.
func (s *Store) recover(now int64) error {
	leaseEnd, err := s.number(leaseEndKey)
	if err != nil {
		return err
	}
	due := min(max(int64(leaseEnd), now), now+s.opt.Lease.Milliseconds()) // the clock may have been set back
	n := 0
	for _, q := range s.queues {
		messages, err := s.recoverQueue(q, due)
		if err != nil {
			return fmt.Errorf("leases of queue %s: %w", q.uid, err)
		}
		n += messages
	}
	if n > 0 {
		s.opt.Log.Warn("messages were in delivery when the last process died", "messages", n)
	}
	return nil
}

func (s *Store) recoverQueue(q *queue, due int64) (int, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: classKey(leaseClass, q.num), UpperBound: classEnd(leaseClass, q.num)})
	if err != nil {
		return 0, err
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	n := 0
	for it.First(); it.Valid(); it.Next() {
		entries, err := readLease(it.Value())
		if err != nil {
			return 0, closing(err, it)
		}
		for _, e := range entries {
			_, closer, err := s.db.Get(messageKey(q.num, e.seq))
			if errors.Is(err, pebble.ErrNotFound) {
				continue
			}
			if err != nil {
				return 0, closing(err, it)
			}
			closer.Close()
			e.due, e.doubt = due, true
			setEntry(batch, q.num, e)
			n++
		}
		if err := batch.Delete(it.Key(), nil); err != nil {
			return 0, closing(err, it)
		}
	}
	if err := closing(it.Error(), it); err != nil || batch.Empty() {
		return 0, err
	}
	return n, batch.Commit(pebble.Sync)
}

// setEntry writes an entry into the due index. Writing into a batch in memory cannot fail.
func setEntry(batch *pebble.Batch, num uint64, e entry) {
	must(batch.Set(dueKey(num, e.position), appendEntry(make([]byte, 0, 24), e), nil))
}

// must is for writes into a batch in memory, which fail only when the batch is used wrongly.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("queue: write into a batch: %v", err))
	}
}
