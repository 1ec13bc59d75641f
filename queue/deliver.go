package queue

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
	"edged/queue/lease"
)

// serve leases a batch, hands it to a handler and makes its end durable.
func (s *Store) serve(ctx, work context.Context, q *queue, d decision) {
	defer q.served()
	var size int64
	for _, e := range d.batch {
		size += int64(e.size)
	}
	if s.loaded.Acquire(ctx, size) != nil {
		q.giveBack(d.batch)
		return
	}
	defer s.loaded.Release(size)
	s.held.Add(1) // before the lease: from then on the announced end is kept ahead
	defer s.held.Add(-1)
	b, err := s.lease(q, d)
	if err != nil {
		s.opt.Log.Error("batch could not be leased", "queue", q.uid, "err", err, "do", fault.CheckDisk)
		return
	}
	if b == nil {
		return
	}
	o := NotReached
	if len(b.Messages) > 0 {
		o = s.hand(work, b)
	} else {
		q.outcome(o, time.Now())
	}
	if err := b.finish(o); err != nil {
		s.opt.Log.Error("end of a batch could not be stored", "queue", q.uid, "batch", b.ID, "err", err,
			"do", fault.CheckDisk)
	}
}

// served ends a running batch.
func (q *queue) served() {
	q.mu.Lock()
	q.running--
	q.mu.Unlock()
	signal(q.wake)
}

// lease makes the batch durable as being delivered, attempts counted, and reads its bodies meanwhile. It returns nil if the
// queue has gone.
func (s *Store) lease(q *queue, d decision) (*Batch, error) {
	s.commits.RLock()
	defer s.commits.RUnlock()
	if q.isGone() {
		return nil, nil
	}
	num, err := s.sequences(1)
	if err != nil {
		q.giveBack(d.batch)
		return nil, err
	}
	b := &Batch{
		ID: messageID(num, rand.Uint64()), Queue: q.uid, Name: d.name, Worker: d.consumer.Worker,
		store: s, queue: q, num: num, entries: d.batch,
	}
	write := s.db.NewBatch()
	defer write.Close()
	for i := range b.entries {
		must(write.Delete(dueKey(q.num, b.entries[i].position), nil))
		b.entries[i].attempts++
	}
	must(write.Set(leaseKey(q.num, num), appendLease(nil, b.entries), nil))
	leaseEnd := s.extend(write)
	if err := s.db.ApplyNoSyncWait(write, pebble.Sync); err != nil {
		return nil, err
	}
	unread, readErr := b.read()
	if err := write.SyncWait(); err != nil {
		return nil, err
	}
	s.alive.Store(leaseEnd)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dirty = true
	q.window.unindexed(b.entries)
	for _, e := range unread {
		delete(q.window.flights, e.seq)
	}
	if readErr != nil { // nobody sees the batch: its lease is taken back
		s.opt.Log.Error("batch cannot be read", "queue", q.uid, "batch", b.ID, "err", readErr, "do", "restore the queue from a backup; its other messages go on")
		b.Messages, b.state = nil, lease.NewBatch(make([]string, len(b.entries)))
	}
	return b, nil
}

// extend adds a later end of all leases to a write if the one on disk is near, and returns the end that holds once the write
// is durable.
func (s *Store) extend(write *pebble.Batch) int64 {
	now, leaseEnd := time.Now(), s.alive.Load()
	if leaseEnd < now.Add(s.opt.Lease*2/3).UnixMilli() {
		leaseEnd = now.Add(s.opt.Lease).UnixMilli()
		must(write.Set(leaseEndKey, appendNumber(uint64(leaseEnd)), nil))
	}
	return leaseEnd
}

// read fills the batch's messages, all bodies in one buffer. A message that cannot be read leaves the batch: it is returned, and
// stays on the disk as it is. The error is about the whole batch, which is then unchanged.
func (b *Batch) read() (unread []entry, err error) {
	inOrder := slices.Clone(b.entries) // of the disk
	slices.SortFunc(inOrder, func(x, y entry) int { return cmp.Compare(x.seq, y.seq) })
	num, size := b.queue.num, 0
	for _, e := range inOrder {
		size += int(e.size)
	}
	it, err := b.store.db.NewIter(&pebble.IterOptions{
		LowerBound: messageKey(num, inOrder[0].seq), UpperBound: messageKey(num, inOrder[len(inOrder)-1].seq+1)})
	if err != nil {
		return nil, err
	}
	var good []entry
	var messages []Delivered
	var ids []string
	buf := make([]byte, 0, size)
	it.First()
	for _, e := range inOrder {
		if !at(it, e.seq) {
			it.SeekGE(messageKey(num, e.seq))
		}
		m, err := message{}, error(pebble.ErrNotFound)
		if at(it, e.seq) {
			m, err = readMessage(it.Value())
		}
		if err != nil {
			if it.Error() == nil {
				b.store.unreadable(b.queue, e.seq, err)
			}
			unread = append(unread, e)
			continue
		}
		from := len(buf)
		buf = append(buf, m.body...)
		id := messageID(e.seq, m.nonce)
		good, ids = append(good, e), append(ids, id)
		messages = append(messages, Delivered{ID: id, TimestampMillis: m.accepted, Attempts: int(e.attempts), Body: buf[from:len(buf):len(buf)]})
		it.Next()
	}
	if err := closing(it.Error(), it); err != nil {
		return nil, err
	}
	b.entries, b.Messages, b.state = good, messages, lease.NewBatch(ids)
	return unread, nil
}

func at(it *pebble.Iterator, want uint64) bool {
	if !it.Valid() {
		return false
	}
	seq, ok := readSeqKey(it.Key())
	return ok && seq == want
}

// hand calls Deliver and counts how it ended. A panic is an end that nobody knows.
func (s *Store) hand(ctx context.Context, b *Batch) (o Outcome) {
	start := time.Now()
	m := s.opt.Metrics
	m.delivered.Add(float64(len(b.Messages)))
	defer func() {
		if p := recover(); p != nil {
			m.panics.Inc()
			s.opt.Log.Error("bug in a delivery", "queue", b.Queue, "batch", b.ID, "panic", p, "stack", string(debug.Stack()), "do", fault.ReportBug)
			o = Unknown
		}
		m.seconds.Observe(time.Since(start).Seconds())
		m.batches[o.String()].Inc()
		b.queue.outcome(o, time.Now())
	}()
	o, err := s.opt.Deliver(ctx, b)
	if o == Threw || o == Unknown {
		s.failed(b, o, err)
	}
	return o
}

// outcome slows a queue down whose handlers cannot be reached.
func (q *queue) outcome(o Outcome, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o != NotReached {
		q.misses = 0
		return
	}
	q.pause = now.Add(min(missPause<<min(q.misses, 10), missLongest))
	q.misses++
}

// failed tells which messages a handler failed on, never their bodies.
func (s *Store) failed(b *Batch, o Outcome, err error) {
	ids := make([]any, 0, len(b.Messages))
	for _, m := range b.Messages {
		ids = append(ids, slog.Int(m.ID, m.Attempts))
	}
	s.opt.Log.Warn("delivery failed", "queue", b.Queue, "worker", b.Worker, "batch", b.ID, "outcome", o.String(), "err", err,
		slog.Group("attempts", ids...))
}
