package queue

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// queue is one queue in memory.
type queue struct {
	uid   string
	num   uint64
	epoch atomic.Uint64
	wake  chan struct{} // capacity 1: something changed that the dispatcher decides by

	counted bool // what Open found is in the counters; guarded by the store's lock for counting

	mu       sync.Mutex // guards the fields below; never held while a handler runs or a sync is awaited
	gone     bool       // deleted: nothing more is written
	settings Settings
	consumer *Consumer // nil while detached; the pointee is never changed
	last     Consumer  // the last consumer there was: a detached one's deliveries end by its rules
	window   window
	running  int       // batches of the consumer in flight
	loop     bool      // a dispatcher exists
	pause    time.Time // no delivery before it: handlers were not reached
	misses   int       // deliveries in a row that reached no handler
	swept    position  // nothing of the index before it is alive
	dirty    bool      // index entries were deleted since the last trim

	waiting, bytes           int64 // messages in the index, bytes of all messages; relative to Open until counted
	retries, dead, discarded int64 // since Open
}

func newQueue(uid string, c catalogRecord) *queue {
	q := &queue{uid: uid, num: c.num, settings: c.Settings, wake: make(chan struct{}, 1), window: newWindow()}
	q.epoch.Store(c.epoch)
	return q
}

// arrivedLocked shows entries that have just become durable and waiting.
func (q *queue) arrivedLocked(entries []entry) {
	for _, e := range entries {
		q.window.add(e)
		if e.before(q.swept) {
			q.swept = e.position
		}
	}
	q.waiting += int64(len(entries))
	if q.consumer != nil {
		signal(q.wake)
	}
}

// takeLocked moves waiting entries into flight.
func (q *queue) takeLocked(entries []entry) {
	for _, e := range entries {
		q.window.take(e)
	}
	q.waiting -= int64(len(entries))
}

// giveBack ends flights of which nothing was written.
func (q *queue) giveBack(entries []entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		delete(q.window.flights, e.seq)
	}
	q.arrivedLocked(entries)
}

// refillLocked reads the next part of the index into the window.
func (q *queue) refillLocked(db pebble.Reader) error {
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: dueKey(q.num, q.window.horizon), UpperBound: classEnd(dueClass, q.num)})
	if err != nil {
		return err
	}
	n := 0
	for it.First(); it.Valid() && n < refillMax; it.Next() {
		e, err := readIndexed(it)
		if err != nil {
			return closing(err, it)
		}
		n++
		q.window.horizon = e.next()
		if !q.window.underWay(e.seq) {
			q.window.ready.Set(e)
		}
	}
	done := !it.Valid()
	if err := closing(it.Error(), it); err != nil {
		return err
	}
	if done {
		q.window.horizon = end
	}
	return nil
}

// claimLocked takes up to limit waiting entries that want accepts, in the order of the index from a position on, into flight. It
// returns them and where a next call goes on; end after the last. want returns stop to end the scan before the entry.
func (q *queue) claimLocked(db pebble.Reader, from position, limit int, want func(entry) (take, stop bool)) ([]entry, position, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: dueKey(q.num, from), UpperBound: classEnd(dueClass, q.num)})
	if err != nil {
		return nil, from, err
	}
	var out []entry
	next := end
	seen := 0
	for it.First(); it.Valid(); it.Next() {
		e, err := readIndexed(it)
		if err != nil {
			return nil, from, closing(err, it)
		}
		if seen++; len(out) == limit || seen > refillMax {
			next = e.position
			break
		}
		if q.window.underWay(e.seq) {
			continue
		}
		take, stop := want(e)
		if stop {
			next = e.position
			break
		}
		if take {
			out = append(out, e)
		}
	}
	if err := closing(it.Error(), it); err != nil {
		return nil, from, err
	}
	q.takeLocked(out)
	return out, next, nil
}

func readIndexed(it *pebble.Iterator) (entry, error) {
	at, ok := readDueKey(it.Key())
	if !ok {
		return entry{}, errRecord
	}
	return readEntry(at, it.Value())
}

func closing(err error, it *pebble.Iterator) error {
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}

func appendNumber(n uint64) []byte { return binary.AppendUvarint(nil, n) }
