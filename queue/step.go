package queue

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/queue/lease"
)

// heldBack is how long an exhausted message waits for a dead-letter queue that is not here.
const heldBack = 30 * time.Second

// step is what happens to messages of one queue in one durable step: some leave for good, some wait again, some become new
// messages in another queue. It is built under the commits lock, which is held until show has run.
type step struct {
	s     *Store
	q     *queue
	now   int64 // Unix milliseconds
	batch *pebble.Batch

	gone []entry
	back []entry

	target  *queue // where moved messages go, nil if none do
	under   span
	arrived []entry

	retried, dead, discarded int64
}

func (s *Store) newStep(q *queue) *step {
	return &step{s: s, q: q, now: time.Now().UnixMilli(), batch: s.db.NewBatch()}
}

// unindex removes the entry from the due index.
func (st *step) unindex(e entry) { must(st.batch.Delete(dueKey(st.q.num, e.position), nil)) }

// remove deletes the message. as is the metric's word for what became of it.
func (st *step) remove(e entry, as string) {
	must(st.batch.Delete(messageKey(st.q.num, e.seq), nil))
	st.gone = append(st.gone, e)
	st.s.opt.Metrics.settled[as].Inc()
	if as == "dropped" || as == "expired" {
		st.discarded++
	}
}

// wait puts the entry into the due index.
func (st *step) wait(e entry) {
	setEntry(st.batch, st.q.num, e)
	st.back = append(st.back, e)
}

// retry puts entries back after a delay, or ends them where the budget is spent.
func (st *step) retry(entries []entry, rules Consumer, due int64) {
	var spent []entry
	for _, e := range entries {
		if lease.Exhausted(int(e.attempts), rules.MaxRetries) {
			spent = append(spent, e)
			continue
		}
		e.due, e.doubt = due, false
		st.wait(e)
		st.retried++
		st.s.opt.Metrics.settled["retried"].Inc()
	}
	st.exhaust(spent, rules)
}

// exhaust ends messages that may not be delivered again: they become new messages in the dead-letter queue, or are dropped
// where there is none (queue §6). One whose dead-letter queue is not here waits for it.
func (st *step) exhaust(entries []entry, rules Consumer) {
	if len(entries) == 0 {
		return
	}
	if rules.DeadLetter == "" {
		for _, e := range entries {
			st.remove(e, "dropped")
		}
		return
	}
	held := st.moveTo(st.s.find(rules.DeadLetter), entries, st.q.uid)
	for _, e := range held {
		e.due, e.doubt = st.now+heldBack.Milliseconds(), true
		st.wait(e)
	}
	if len(held) > 0 {
		st.s.opt.Metrics.unmoved.Add(float64(len(held)))
		st.s.opt.Log.Warn("dead letters wait: their queue is not here", "queue", st.q.uid, "deadLetterQueue", rules.DeadLetter, "messages", len(held))
	}
	moved := len(entries) - len(held)
	st.dead += int64(moved)
	st.s.opt.Metrics.settled["dead_letter"].Add(float64(moved))
}

// moveTo makes messages new ones in target, accepted now, and returns those that had to stay. origin is what operators will
// redrive them by. At most one move per step.
func (st *step) moveTo(target *queue, entries []entry, origin string) (held []entry) {
	if target == nil || target == st.q {
		return entries
	}
	first, err := st.s.sequences(len(entries))
	if err != nil {
		return entries
	}
	target.mu.Lock()
	gone, delay := target.gone, target.settings.DefaultDelay
	if !gone {
		st.target, st.under = target, span{first, first + uint64(len(entries)) - 1}
		target.window.begin(st.under)
	}
	target.mu.Unlock()
	if gone {
		return entries
	}
	for i, e := range entries {
		fresh := entry{position: position{st.now + delay.Milliseconds(), first + uint64(i)}, accepted: st.now, size: e.size}
		switch err := st.move(e, fresh, origin); {
		case errors.Is(err, pebble.ErrNotFound):
			st.gone = append(st.gone, e)
		case err != nil:
			st.s.unreadable(st.q, e.seq, err)
			held = append(held, e)
		default:
			st.gone, st.arrived = append(st.gone, e), append(st.arrived, fresh)
		}
	}
	return held
}

func (st *step) move(e, fresh entry, origin string) error {
	b, closer, err := st.s.db.Get(messageKey(st.q.num, e.seq))
	if err != nil {
		return err
	}
	defer closer.Close()
	m, err := readMessage(b)
	if err != nil {
		return err
	}
	m.accepted, m.nonce, m.origin = st.now, rand.Uint64(), origin
	setMessage(st.batch, st.target.num, fresh.seq, m)
	setEntry(st.batch, st.target.num, fresh)
	must(st.batch.Delete(messageKey(st.q.num, e.seq), nil))
	return nil
}

func (s *Store) unreadable(q *queue, seq uint64, err error) {
	s.opt.Metrics.corrupt.Inc()
	s.opt.Log.Error("message cannot be read", "queue", q.uid, "sequence", seq, "err", err, "do", "restore the queue from a backup; its other messages go on")
}

// apply gives the step its place in the order of commits; it is durable when settle returns.
func (st *step) apply() error { return st.s.db.ApplyNoSyncWait(st.batch, pebble.Sync) }

// settle waits until the step is durable and then shows it to the dispatchers.
func (st *step) settle(applied error) error {
	err := applied
	if err == nil {
		err = st.batch.SyncWait()
	}
	return st.show(err)
}

// applyLazily is for steps that may be lost in a crash and taken again.
func (st *step) applyLazily() error { return st.show(st.s.db.Apply(st.batch, pebble.NoSync)) }

// show brings memory to what was written. After an error nothing is known and nothing is shown: what was in flight stays there
// until the store is opened again.
func (st *step) show(err error) error {
	if st.target != nil {
		st.target.mu.Lock()
		st.target.window.finish(st.under)
		if err == nil {
			for _, e := range st.arrived {
				st.target.bytes += int64(e.size) + entryOverhead
			}
			st.target.arrivedLocked(st.arrived)
		}
		st.target.mu.Unlock()
	}
	if err == nil {
		q := st.q
		q.mu.Lock()
		for _, e := range st.gone {
			delete(q.window.flights, e.seq)
			q.bytes -= int64(e.size) + entryOverhead
		}
		for _, e := range st.back {
			delete(q.window.flights, e.seq)
		}
		q.arrivedLocked(st.back)
		q.dirty = true
		q.retries += st.retried
		q.dead += st.dead
		q.discarded += st.discarded
		q.mu.Unlock()
	}
	return errors.Join(err, st.batch.Close())
}
