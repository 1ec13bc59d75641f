package queue

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/semaphore"

	"edged/internal/disk"
	"edged/internal/fault"
)

// format is the version of everything below the store's directory.
const format = 1

// sequenceBlock is how many sequences one durable reservation covers.
const sequenceBlock = 1 << 32

// maxLoaded bounds the bytes of bodies that are in delivery at once. One batch always fits.
const maxLoaded = 256 << 20

// Store holds the queues of a node. All methods but Close are safe for concurrent use.
type Store struct {
	opt    Options // set by Open, then constant
	db     *pebble.DB
	loaded *semaphore.Weighted // bytes of bodies in delivery
	change chan struct{}       // capacity 1: a queue may need a dispatcher
	alive  atomic.Int64        // the lease end on disk, Unix milliseconds
	held   atomic.Int64        // batches that are leased now

	// catalog makes Create and Delete one after the other; held while they wait for the disk. Taken before commits.
	catalog sync.Mutex

	// commits is held shared from before a message's state is decided until memory shows what was written, and
	// exclusively by whatever must see no message in between: trim, purge, the end of a queue. Whoever holds it exclusively
	// stops all queues, and never waits for the disk. Taken before mu and before any queue's lock.
	commits sync.RWMutex

	seqMu    sync.Mutex
	seq      uint64 // the last sequence given out; guarded by seqMu
	reserved uint64 // sequences below it are reserved on disk; guarded by seqMu

	mu        sync.RWMutex // guards the fields below
	queues    map[string]*queue
	consumers map[string]Consumer // by queue UID, also of queues that are not here yet
	counting  *pebble.Snapshot    // the state Open left, until it was counted

	counted sync.Mutex // held while counting
}

// Open opens or makes the store in opt.Dir. Batches that a dead process held are owed again from the end of its lease, as
// deliveries whose end is unknown. A newer format is refused with a Conflict.
func Open(opt Options) (*Store, error) {
	opt, err := opt.complete()
	if err != nil {
		return nil, fault.New(fault.Invalid, "queue.Open", err.Error())
	}
	if opt.FS == nil { // the format file stands on the real filesystem only
		if err := disk.Prepare(opt.Dir); err != nil {
			return nil, err
		}
		if _, err := disk.CheckFormat(opt.Dir, "queue", format); err != nil {
			return nil, err
		}
	}
	db, err := disk.OpenPebble(disk.PebbleOptions{
		Dir: opt.Dir + "/store", FS: opt.FS, Log: opt.Log,
		MemSize: 32 << 20, // a few batches of the largest bodies
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		opt: opt, db: db, loaded: semaphore.NewWeighted(maxLoaded), change: make(chan struct{}, 1),
		queues: make(map[string]*queue), consumers: make(map[string]Consumer),
	}
	if err := s.load(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, "queue.Open", errors.Join(err, db.Close()))
	}
	s.counting = db.NewSnapshot()
	opt.Metrics.attach(s)
	return s, nil
}

// Close frees the store; it is called after Run has returned and nothing else is at work.
func (s *Store) Close() error {
	s.opt.Metrics.attach(nil)
	var err error
	if s.counting != nil {
		err = s.counting.Close()
	}
	return fault.Wrap(fault.Unavailable, "queue.Close", errors.Join(err, s.db.Close()))
}

// load reads the catalog, reserves sequences and turns the leases of the dead into doubtful entries.
func (s *Store) load() error {
	reserved, err := s.number(reservedKey)
	if err != nil {
		return err
	}
	s.seq, s.reserved = reserved, reserved
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{catalogClass}, UpperBound: []byte{catalogClass + 1}})
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		c, err := readCatalog(it.Value())
		if err != nil {
			return errors.Join(fmt.Errorf("queue %q: %w", it.Key()[1:], err), it.Close())
		}
		uid := string(it.Key()[1:])
		s.queues[uid] = newQueue(uid, c)
	}
	if err := it.Close(); err != nil {
		return err
	}
	return s.recover(time.Now().UnixMilli())
}

// number reads a number of the whole store, 0 if there is none.
func (s *Store) number(key []byte) (uint64, error) {
	b, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	r := reader{b, true}
	v := r.uvarint(1<<64 - 1)
	return v, r.end()
}

// sequences returns the first of n sequences that were never given out before, by no process.
func (s *Store) sequences(n int) (uint64, error) {
	s.seqMu.Lock()
	defer s.seqMu.Unlock()
	if s.seq+uint64(n) >= s.reserved {
		next := s.reserved + sequenceBlock
		if err := s.db.Set(reservedKey, appendNumber(next), pebble.Sync); err != nil {
			return 0, err
		}
		s.reserved = next
	}
	first := s.seq + 1
	s.seq += uint64(n)
	return first, nil
}

// lookup returns the queue of ref, backend_unavailable if this store does not serve it under that epoch.
func (s *Store) lookup(op string, ref Ref) (*queue, error) {
	s.mu.RLock()
	q := s.queues[ref.UID]
	s.mu.RUnlock()
	if q == nil || q.epoch.Load() != ref.Epoch {
		return nil, missing(op, ref.UID)
	}
	return q, nil
}

func (s *Store) find(uid string) *queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.queues[uid]
}

// all returns the queues of now, in no order.
func (s *Store) all() []*queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*queue, 0, len(s.queues))
	for _, q := range s.queues {
		out = append(out, q)
	}
	return out
}

// signal leaves a token in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
