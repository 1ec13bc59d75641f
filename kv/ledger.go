package kv

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"edged/kv/replica"
)

// ledger is the store proper: what is in Pebble and the few numbers that are kept beside it in memory. It starts nothing and
// reads no clock but through now. One caller at a time stages (under mu); reading needs no lock.
type ledger struct {
	db    *pebble.DB
	now   func() int64 // Unix milliseconds
	rules replica.Rules
	quota int64
	epoch replica.Origin // this store's origin; constant

	mu     sync.Mutex // held while a batch is staged and made visible, never while it is synced
	clock  replica.Clock
	seq    uint64 // last own sequence number
	head   uint64 // last position in the feed
	staged uint64 // batches made visible since the store was opened
	vector replica.Vector
	broken error    // a commit failed: memory and disk may differ, nothing more is written
	spaces sync.Map // uid string -> *space; written under mu

	durable   atomic.Uint64 // batches known to be on disk: the first so many of staged
	waitMu    sync.Mutex
	moved     chan struct{} // closed when durable moves; nil while nobody waits
	lost      *lostRing     // guarded by mu
	returned  atomic.Uint64 // deletes that came back; must stay 0
	onOrphans func(staged uint64, digests [][replica.DigestBytes]byte)
}

var errBroken = errors.New("an earlier commit failed; the node must restart")

func openLedger(db *pebble.DB, now func() int64, draw func() replica.Origin, quota int64, rules replica.Rules) (*ledger, error) {
	l := &ledger{db: db, now: now, quota: quota, rules: rules, vector: replica.Vector{}, lost: newLostRing()}
	if err := l.loadIdentity(draw); err != nil {
		return nil, err
	}
	if err := l.loadHead(); err != nil {
		return nil, err
	}
	if err := l.loadVector(); err != nil {
		return nil, err
	}
	return l, l.loadSpaces()
}

// get returns a copy of what a key holds, nil for nothing.
func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append([]byte{}, v...), nil
}

var identityKey = []byte("midentity")

// drawOrigin draws an origin that no store ever had.
func drawOrigin() replica.Origin {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: the runtime ends the process instead
		if o := replica.Origin(binary.BigEndian.Uint64(b[:])); o != 0 {
			return o
		}
	}
}

// loadIdentity reads this store's origin; a fresh store draws one.
func (l *ledger) loadIdentity(draw func() replica.Origin) error {
	v, err := get(l.db, identityKey)
	if err != nil {
		return err
	}
	if v == nil {
		l.epoch = draw()
		return l.db.Set(identityKey, binary.BigEndian.AppendUint64(nil, uint64(l.epoch)), pebble.Sync)
	}
	if len(v) != 8 {
		return fmt.Errorf("identity has %d bytes", len(v))
	}
	l.epoch = replica.Origin(binary.BigEndian.Uint64(v))
	return nil
}

// renew makes a new origin this store's, durably. What it wrote before stays under the old one.
func (l *ledger) renew(o replica.Origin) error {
	old, seq := l.epoch, l.seq
	b := l.db.NewBatch()
	defer b.Close()
	delete(l.vector, l.epoch)
	l.epoch, l.seq = o, 0
	err := b.Set(identityKey, binary.BigEndian.AppendUint64(nil, uint64(o)), nil)
	if seq > 0 {
		l.vector[old] = seq
		err = errors.Join(err, b.Set(numKey(nil, prefixVector, uint64(old)), binary.BigEndian.AppendUint64(nil, seq), nil))
	}
	err = errors.Join(err, b.Set([]byte(headKeyString), l.headValue(), nil))
	return errors.Join(err, b.Commit(pebble.Sync))
}

func (l *ledger) loadHead() error {
	v, err := get(l.db, []byte(headKeyString))
	if err != nil || v == nil {
		return err
	}
	be := binary.BigEndian
	if len(v) != 32 || replica.Origin(be.Uint64(v[24:])) != l.epoch {
		return errors.New("head does not belong to this store")
	}
	l.head, l.seq = be.Uint64(v), be.Uint64(v[8:])
	l.clock.See(replica.HLC(be.Uint64(v[16:])))
	return nil
}

// headValue says which origin the sequence number belongs to, so that a change of epoch cannot mistake it.
func (l *ledger) headValue() []byte {
	be := binary.BigEndian
	b := be.AppendUint64(make([]byte, 0, 32), l.head)
	b = be.AppendUint64(b, l.seq)
	b = be.AppendUint64(b, uint64(l.clock.Last()))
	return be.AppendUint64(b, uint64(l.epoch))
}

func (l *ledger) loadVector() error {
	err := scan(l.db, []byte{prefixVector}, nil, func(k, v []byte) (bool, error) {
		if len(k) != 9 || len(v) != 8 {
			return false, errors.New("vector entry is malformed")
		}
		o := replica.Origin(binary.BigEndian.Uint64(k[1:]))
		l.vector[o] = max(l.vector[o], binary.BigEndian.Uint64(v))
		return true, nil
	})
	if l.seq > 0 {
		l.vector[l.epoch] = l.seq
	}
	return err
}

// scan calls fn for every key that begins with prefix and is at or above from, in order, until fn says no. The slices are
// valid during the call.
func scan(r pebble.Reader, prefix, from []byte, fn func(k, v []byte) (bool, error)) error {
	lower := prefix
	if from != nil {
		lower = from
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(prefix)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := fn(it.Key(), v); err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// stage runs the changes in one transaction and makes them visible. commit hands the batch to Pebble; the caller makes it
// durable and then says so with synced(last). A change that fails leaves nothing behind; its error is in errs.
func (l *ledger) stage(fns []func(*tx) error, commit func(*pebble.Batch) error) (b *pebble.Batch, last uint64, errs []error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, 0, nil, l.broken
	}
	t := newTx(l)
	errs = make([]error, len(fns))
	for i, fn := range fns {
		errs[i] = fn(t)
	}
	if t.b.Empty() {
		t.b.Close()
		return nil, l.staged, errs, nil
	}
	if err := t.finish(); err != nil {
		return nil, 0, nil, l.breakLocked(err)
	}
	if err := commit(t.b); err != nil {
		return nil, 0, nil, l.breakLocked(err)
	}
	l.staged++
	if len(t.orphans) > 0 && l.onOrphans != nil {
		l.onOrphans(l.staged, t.orphans)
	}
	return t.b, l.staged, errs, nil
}

func (l *ledger) breakLocked(err error) error {
	l.broken = errors.Join(errBroken, err)
	l.wakeWaiters()
	return l.broken
}

// synced notes that the first last batches are on disk.
func (l *ledger) synced(last uint64) {
	for {
		d := l.durable.Load()
		if d >= last {
			return
		}
		if l.durable.CompareAndSwap(d, last) {
			break
		}
	}
	l.wakeWaiters()
}

// wait blocks until the first last batches are durable or ctx is done.
func (l *ledger) wait(ctx context.Context, last uint64) error {
	for {
		moved := l.waiter(last)
		if moved == nil {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settleEmpty waits until position last is durable, or the ledger broke before that.
func (l *ledger) settleEmpty(last uint64) error {
	for {
		l.mu.Lock()
		broken := l.broken
		l.mu.Unlock()
		if broken != nil {
			return broken
		}
		moved := l.waiter(last)
		if moved == nil {
			return nil
		}
		<-moved
	}
}

// waiter returns nil when the first last batches are durable, else a channel that is closed when durable moves or the ledger breaks.
func (l *ledger) waiter(last uint64) <-chan struct{} {
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	if l.durable.Load() >= last {
		return nil
	}
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	return l.moved
}

func (l *ledger) wakeWaiters() {
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

// view is the state at one instant.
type view struct {
	snap   *pebble.Snapshot
	staged uint64 // batches that it shows
	head   uint64
	vector replica.Vector
	clock  replica.HLC
}

// view pins the state of now. What it shows may not be durable yet: wait(staged) first if that matters. Close its snap.
func (l *ledger) view() view {
	l.mu.Lock()
	defer l.mu.Unlock()
	return view{snap: l.db.NewSnapshot(), staged: l.staged, head: l.head, vector: l.vector.Clone(), clock: l.clock.Last()}
}

// covers returns the vector and own sequence number of now.
func (l *ledger) covers() (replica.Vector, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.vector.Clone(), l.seq
}
