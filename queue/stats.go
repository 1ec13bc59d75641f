package queue

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Stats is the state of a queue at one moment.
type Stats struct {
	UID, Name string
	Waiting   int64         // messages that wait, delayed ones included
	InFlight  int64         // messages in a handler's hands
	Bytes     int64         // of all messages, with what they cost beside their bodies
	Oldest    time.Time     // acceptance of the message that has been due longest, zero if none waits
	Lag       time.Duration // how long that message has been due, 0 if it is not due yet
	Retries   int64         // redeliveries decided, since the store was opened
	Dead      int64         // messages moved to the dead-letter queue, since then
	Discarded int64         // messages dropped or past their retention, since then
	Consumed  bool          // a consumer is attached and deployed
}

// Stats returns the state of one queue. The first call after Open counts what is stored, about a second for two million messages,
// unless Run has done so.
func (s *Store) Stats(ctx context.Context, ref Ref) (Stats, error) {
	q, err := s.lookup("queue.Stats", ref)
	if err != nil {
		return Stats{}, err
	}
	if err := s.count(ctx); err != nil {
		return Stats{}, unavailable("queue.Stats", err)
	}
	st, err := s.stats(q, time.Now())
	return st, unavailable("queue.Stats", err)
}

func (s *Store) stats(q *queue, now time.Time) (Stats, error) {
	q.mu.Lock()
	st := Stats{
		UID: q.uid, Name: q.settings.Name, Waiting: max(q.waiting, 0), InFlight: int64(len(q.window.flights)), Bytes: max(q.bytes, 0),
		Retries: q.retries, Dead: q.dead, Discarded: q.discarded, Consumed: q.consumer != nil && !q.consumer.Undeployed,
	}
	first, ok := q.window.ready.Min()
	loaded := q.window.horizon != position{}
	from := q.swept
	q.mu.Unlock()
	if !ok && !loaded {
		var err error
		if first, ok, err = s.head(q, from); err != nil {
			return Stats{}, err
		}
	}
	if ok {
		st.Oldest = time.UnixMilli(first.accepted)
		st.Lag = max(now.Sub(time.UnixMilli(first.due)), 0)
	}
	return st, nil
}

// head reads the first entry of an index that nobody consumes.
func (s *Store) head(q *queue, from position) (entry, bool, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: dueKey(q.num, from), UpperBound: classEnd(dueClass, q.num)})
	if err != nil {
		return entry{}, false, err
	}
	if !it.First() {
		return entry{}, false, closing(it.Error(), it)
	}
	e, err := readIndexed(it)
	return e, err == nil, closing(err, it)
}

// count adds what Open found to the counters of every queue, once.
func (s *Store) count(ctx context.Context) error {
	s.counted.Lock()
	defer s.counted.Unlock()
	if s.counting == nil {
		return nil
	}
	for _, q := range s.all() {
		if err := s.countQueue(ctx, q); err != nil {
			return err
		}
	}
	snap := s.counting
	s.counting = nil
	return snap.Close()
}

func (s *Store) countQueue(ctx context.Context, q *queue) error {
	if q.counted {
		return nil
	}
	it, err := s.counting.NewIter(&pebble.IterOptions{LowerBound: classKey(dueClass, q.num), UpperBound: classEnd(dueClass, q.num)})
	if err != nil {
		return err
	}
	var waiting, bytes int64
	for it.First(); it.Valid(); it.Next() {
		e, err := readIndexed(it)
		if err != nil {
			return closing(err, it)
		}
		waiting++
		bytes += int64(e.size) + entryOverhead
		if waiting%4096 == 0 && ctx.Err() != nil {
			return closing(ctx.Err(), it)
		}
	}
	if err := closing(it.Error(), it); err != nil {
		return err
	}
	q.mu.Lock()
	q.waiting += waiting
	q.bytes += bytes
	q.mu.Unlock()
	q.counted = true
	return nil
}
