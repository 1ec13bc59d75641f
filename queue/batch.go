package queue

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
	"edged/queue/lease"
)

// Delivered is one message of a batch (queue §2).
type Delivered struct {
	ID              string
	TimestampMillis int64 // when it was accepted, Unix milliseconds; the same at every delivery
	Attempts        int   // this delivery included: 1 on the first
	Body            []byte
}

// Batch is what a handler gets. Its settlement methods are safe for concurrent use, take effect in the order of the calls and
// return when the settlement is durable; their errors are already_settled, unknown_message, unknown_batch (the delivery has
// ended) and backend_unavailable (queue §5).
type Batch struct {
	ID       string // unique, of this delivery alone
	Queue    string // UID of the queue
	Name     string // the queue Resource's name
	Worker   string // the consumer's
	Messages []Delivered

	store   *Store
	queue   *queue
	num     uint64
	entries []entry // as Messages

	mu    sync.Mutex   // orders settlements; taken before the queue's lock
	state *lease.Batch // guarded by mu
}

// Acknowledge settles one message as delivered.
func (b *Batch) Acknowledge(id string) error {
	return b.settle("queue.Acknowledge", func() ([]int, error) { return one(b.state.Acknowledge(id)) }, nil)
}

// AcknowledgeAll settles every unsettled message as delivered; it succeeds if there is none.
func (b *Batch) AcknowledgeAll() error {
	return b.settle("queue.AcknowledgeAll", func() ([]int, error) { return b.state.AcknowledgeAll() }, nil)
}

// Retry sends one message back to the queue: it is due after delaySeconds (0–MaxDelaySeconds, or DefaultDelay for the
// consumer's), or ended if its budget is spent. A delay out of range is Invalid.
func (b *Batch) Retry(id string, delaySeconds int) error {
	return b.settle("queue.Retry", func() ([]int, error) { return one(b.state.Retry(id)) }, &delaySeconds)
}

// RetryAll sends every unsettled message back, as Retry does; it succeeds if there is none.
func (b *Batch) RetryAll(delaySeconds int) error {
	return b.settle("queue.RetryAll", func() ([]int, error) { return b.state.RetryAll() }, &delaySeconds)
}

func one(i int, err error) ([]int, error) { return []int{i}, err }

// settle decides in the order of the calls and waits for the disk outside of it. retry is the delay, nil acknowledges.
func (b *Batch) settle(op string, decide func() ([]int, error), retry *int) error {
	if retry != nil && (*retry < DefaultDelay || *retry > MaxDelaySeconds) {
		return fault.Newf(fault.Invalid, op, "delay of %d seconds, at most %d", *retry, MaxDelaySeconds)
	}
	b.store.commits.RLock()
	defer b.store.commits.RUnlock()
	b.mu.Lock()
	places, err := decide()
	if err != nil || len(places) == 0 || b.queue.isGone() {
		b.mu.Unlock()
		if err == nil { // what was settled before is durable too once this returns
			err = b.store.db.LogData(nil, pebble.Sync)
		}
		return unavailable(op, err)
	}
	st := b.store.newStep(b.queue)
	if retry == nil {
		b.acknowledge(st, places)
	} else {
		rules := b.queue.rules()
		delay := time.Duration(*retry) * time.Second
		if *retry == DefaultDelay {
			delay = rules.RetryDelay
		}
		st.retry(b.pick(places), rules, st.now+delay.Milliseconds())
	}
	b.record(st, retry != nil)
	applied := st.apply()
	b.mu.Unlock()
	return unavailable(op, st.settle(applied))
}

// unavailable gives an error that has no name of the contract the one for a failed store.
func unavailable(op string, err error) error {
	if err == nil || fault.NamedOf(err) != nil {
		return err
	}
	return ErrUnavailable.Wrap(op, err)
}

func (b *Batch) acknowledge(st *step, places []int) {
	for _, e := range b.pick(places) {
		st.remove(e, "acknowledged")
	}
}

func (b *Batch) pick(places []int) []entry {
	out := make([]entry, len(places))
	for i, p := range places {
		out[i] = b.entries[p]
	}
	return out
}

// record brings the lease on disk to what is still open. What was acknowledged may stay in it: its message is gone, and that is
// how recovery knows. What waits again may not.
func (b *Batch) record(st *step, retried bool) {
	switch {
	case b.state.Open() == 0:
		must(st.batch.Delete(leaseKey(b.queue.num, b.num), nil))
	case retried:
		must(st.batch.Set(leaseKey(b.queue.num, b.num), appendLease(nil, b.pick(b.state.Unsettled())), nil))
	}
}

// finish ends the batch as the outcome says, durably.
func (b *Batch) finish(o Outcome) error {
	b.store.commits.RLock()
	defer b.store.commits.RUnlock()
	b.mu.Lock()
	ending := b.state.End(o)
	if len(ending.Places) == 0 || b.queue.isGone() {
		b.mu.Unlock()
		return nil
	}
	st := b.store.newStep(b.queue)
	entries := b.pick(ending.Places)
	rules := b.queue.rules()
	switch ending.Do {
	case lease.Acknowledge:
		b.acknowledge(st, ending.Places)
	case lease.Retry:
		st.retry(entries, rules, st.now+rules.RetryDelay.Milliseconds())
	case lease.Doubt:
		st.retry(entries, rules, max(st.now, b.store.alive.Load()))
	case lease.Return:
		for _, e := range entries {
			e.attempts--
			st.wait(e)
			b.store.opt.Metrics.settled["returned"].Inc()
		}
	}
	b.record(st, false)
	applied := st.apply()
	b.mu.Unlock()
	return st.settle(applied)
}

func (q *queue) isGone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gone
}

func (q *queue) rules() Consumer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rulesLocked()
}
