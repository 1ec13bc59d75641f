package queue

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Create makes the queue of ref, durably. A queue that exists is kept with its messages and takes the settings, and the epoch
// if that is newer; an older epoch is refused with backend_unavailable. Faults in the settings are Invalid.
func (s *Store) Create(ctx context.Context, ref Ref, set Settings) error {
	const op = "queue.Create"
	if err := invalid(op, errors.Join(ref.check(), set.check())); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.catalog.Lock() // not commits: there is no message yet, or its queue stays
	defer s.catalog.Unlock()
	c := catalogRecord{epoch: ref.Epoch, Settings: set}
	q := s.find(ref.UID)
	if q != nil {
		if q.epoch.Load() > ref.Epoch {
			return missing(op, ref.UID)
		}
		c.num = q.num
	} else {
		if err := s.opt.Space.Check(); err != nil {
			return ErrUnavailable.Wrap(op, err)
		}
		num, err := s.sequences(1)
		if err != nil {
			return ErrUnavailable.Wrap(op, err)
		}
		c.num = num
	}
	if err := s.db.Set(catalogKey(ref.UID), appendCatalog(nil, c), pebble.Sync); err != nil {
		return ErrUnavailable.Wrap(op, err)
	}
	if q == nil {
		s.adopt(newQueue(ref.UID, c))
		return nil
	}
	q.epoch.Store(c.epoch)
	q.apply(set)
	return nil
}

// adopt shows a queue that has just become durable.
func (s *Store) adopt(q *queue) {
	s.mu.Lock()
	s.queues[q.uid] = q
	if c, ok := s.consumers[q.uid]; ok {
		q.setConsumer(&c)
	}
	s.mu.Unlock()
	signal(s.change)
}

// apply takes new settings: they decide about everything that is decided from now on.
func (q *queue) apply(set Settings) {
	q.mu.Lock()
	q.settings = set
	q.mu.Unlock()
	signal(q.wake)
}

// Update makes new settings of an existing queue durable (queue §1): a new retention counts for every message that waits, a new
// default delay for those accepted afterwards.
func (s *Store) Update(ctx context.Context, ref Ref, set Settings) error {
	const op = "queue.Update"
	if err := invalid(op, errors.Join(ref.check(), set.check())); err != nil {
		return err
	}
	if _, err := s.lookup(op, ref); err != nil {
		return err
	}
	return s.Create(ctx, ref, set)
}

// Exists reports whether this store serves the queue under ref's epoch.
func (s *Store) Exists(ref Ref) bool {
	_, err := s.lookup("queue.Exists", ref)
	return err == nil
}

// Delete removes the queue and all its messages in one step, which is durable when Delete returns and seen shortly before; what is
// not here is fine. An older epoch than the queue's is refused, and a disk that fails told, with backend_unavailable. Deliveries
// that still run end without effect.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	const op = "queue.Delete"
	if err := ctx.Err(); err != nil {
		return err
	}
	s.catalog.Lock()
	defer s.catalog.Unlock()
	q := s.find(ref.UID)
	if q == nil {
		return unavailable(op, s.db.LogData(nil, pebble.Sync)) // an end that was seen, but not synced, is not to be taken for one
	}
	if q.epoch.Load() > ref.Epoch {
		return missing(op, ref.UID)
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	must(batch.Delete(catalogKey(q.uid), nil))
	for _, class := range []byte{messageClass, dueClass, leaseClass} {
		must(batch.DeleteRange(classKey(class, q.num), classEnd(class, q.num), nil))
	}
	if err := s.end(q, batch); err != nil {
		return ErrUnavailable.Wrap(op, err)
	}
	signal(q.wake)
	if err := batch.SyncWait(); err != nil {
		return ErrUnavailable.Wrap(op, err)
	}
	return nil
}

// end applies the batch that ends a queue, between two messages; SyncWait of the batch says when that is durable.
func (s *Store) end(q *queue, batch *pebble.Batch) error {
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.queues, q.uid)
	s.mu.Unlock()
	q.mu.Lock()
	q.gone = true
	q.window = newWindow()
	q.mu.Unlock()
	return nil
}
