package queue

import (
	"cmp"
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Purge removes every waiting message of the queue in one step, durable when Purge returns, and returns about how many there were.
// What a handler holds stays and is settled as usual.
func (s *Store) Purge(ctx context.Context, ref Ref) (int64, error) {
	const op = "queue.Purge"
	q, err := s.lookup(op, ref)
	if err != nil {
		return 0, err
	}
	if err := s.count(ctx); err != nil {
		return 0, unavailable(op, err)
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	n, err := s.purge(q, batch)
	if err == nil {
		err = batch.SyncWait()
	}
	if err != nil {
		return 0, ErrUnavailable.Wrap(op, err)
	}
	return n, nil
}

// purge applies the batch that takes the waiting messages of a queue, between two messages; SyncWait of the batch says when that is
// durable.
func (s *Store) purge(q *queue, batch *pebble.Batch) (int64, error) {
	s.commits.Lock()
	defer s.commits.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	flights := make([]flight, 0, len(q.window.flights))
	var kept int64
	for _, f := range q.window.flights {
		flights = append(flights, f)
		kept += int64(f.size) + entryOverhead
	}
	keep := keysWhere(flights, func(f flight) []byte { return messageKey(q.num, f.seq) }, func(flight) bool { return true })
	deleteBetween(batch, classKey(messageClass, q.num), classEnd(messageClass, q.num), keep)
	keep = keysWhere(flights, func(f flight) []byte { return dueKey(q.num, f.position) }, func(f flight) bool { return f.indexed })
	deleteBetween(batch, classKey(dueClass, q.num), classEnd(dueClass, q.num), keep)
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		return 0, err
	}
	n := q.waiting
	q.discarded += n
	q.waiting, q.bytes = 0, kept
	q.window.ready.Clear()
	return n, nil
}

// keysWhere returns the keys of some flights in order.
func keysWhere(flights []flight, key func(flight) []byte, where func(flight) bool) [][]byte {
	var keys [][]byte
	for _, f := range flights {
		if where(f) {
			keys = append(keys, key(f))
		}
	}
	slices.SortFunc(keys, func(a, b []byte) int { return cmp.Compare(string(a), string(b)) })
	return keys
}

// deleteBetween deletes all keys from low up to high, but for those in keep, which are in order.
func deleteBetween(batch *pebble.Batch, low, high []byte, keep [][]byte) {
	for _, k := range keep {
		must(batch.DeleteRange(low, k, nil))
		low = append(slices.Clone(k), 0)
	}
	must(batch.DeleteRange(low, high, nil))
}
