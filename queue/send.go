package queue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// Message is what a producer sends.
type Message struct {
	Body         []byte // at most MaxBody bytes; copied
	DelaySeconds int    // 0–MaxDelaySeconds before the first delivery, or DefaultDelay for the queue's own
}

// entryOverhead is what a message costs beside its body, for the quota.
const entryOverhead = 96

// Send stores one message and returns its id when it is durable (queue §3). Errors: message_too_large, backend_unavailable
// (nothing was stored, or a context's error before anything was written), Invalid for a delay out of range.
func (s *Store) Send(ctx context.Context, ref Ref, m Message) (string, error) {
	var ids [1]string
	err := s.send(ctx, "queue.Send", ref, []Message{m}, ids[:])
	return ids[0], err
}

// SendBatch stores 1 to MaxBatch messages, all or none, and returns their ids in order when they are durable. The first
// message that offends decides the error; errors as for Send, and batch_too_large.
func (s *Store) SendBatch(ctx context.Context, ref Ref, ms []Message) ([]string, error) {
	const op = "queue.SendBatch"
	if len(ms) > MaxBatch {
		return nil, s.refuse(ErrBatch.Newf(op, "%d messages, at most %d", len(ms), MaxBatch))
	}
	if len(ms) == 0 {
		return nil, s.refuse(fault.New(fault.Invalid, op, "an empty batch"))
	}
	ids := make([]string, len(ms))
	if err := s.send(ctx, op, ref, ms, ids); err != nil {
		return nil, err
	}
	return ids, nil
}

func (s *Store) refuse(err error) error {
	s.opt.Metrics.sends.Count(err)
	return err
}

func (s *Store) send(ctx context.Context, op string, ref Ref, ms []Message, ids []string) error {
	bytes := 0
	for i, m := range ms {
		if m.DelaySeconds < DefaultDelay || m.DelaySeconds > MaxDelaySeconds {
			return s.refuse(fault.Newf(fault.Invalid, op, "message %d: delay of %d seconds, at most %d", i, m.DelaySeconds, MaxDelaySeconds))
		}
		if len(m.Body) > MaxBody {
			return s.refuse(ErrTooLarge.Newf(op, "message %d: %d bytes, at most %d", i, len(m.Body), MaxBody))
		}
		bytes += len(m.Body) + entryOverhead
	}
	if err := ctx.Err(); err != nil {
		return s.refuse(err)
	}
	start := time.Now()
	err := s.store(op, ref, ms, ids, int64(bytes), start)
	s.opt.Metrics.sends.Count(err)
	if err != nil {
		return err
	}
	s.opt.Metrics.sendSeconds.Observe(time.Since(start).Seconds())
	s.opt.Metrics.accepted.Add(float64(len(ms)))
	return nil
}

// store writes checked messages.
func (s *Store) store(op string, ref Ref, ms []Message, ids []string, bytes int64, now time.Time) error {
	if err := s.opt.Space.Check(); err != nil {
		return ErrUnavailable.Wrap(op, err)
	}
	s.commits.RLock()
	defer s.commits.RUnlock()
	q, err := s.lookup(op, ref)
	if err != nil {
		return err
	}
	first, err := s.sequences(len(ms))
	if err != nil {
		return ErrUnavailable.Wrap(op, err)
	}
	under := span{first, first + uint64(len(ms)) - 1}
	q.mu.Lock()
	if q.bytes+bytes > s.opt.Quota {
		q.mu.Unlock()
		return ErrUnavailable.Newf(op, "queue %s is full: it may hold %d MiB", ref.UID, s.opt.Quota>>20)
	}
	standard := q.settings.DefaultDelay
	q.bytes += bytes
	q.window.begin(under)
	q.mu.Unlock()

	batch := s.db.NewBatchWithSize(int(bytes))
	defer batch.Close()
	var few [1]entry
	entries := few[:0]
	accepted := max(now.UnixMilli(), 0)
	for i, m := range ms {
		delay := standard
		if m.DelaySeconds != DefaultDelay {
			delay = time.Duration(m.DelaySeconds) * time.Second
		}
		rec := message{accepted: accepted, nonce: rand.Uint64(), body: m.Body}
		e := entry{position: position{accepted + delay.Milliseconds(), first + uint64(i)}, accepted: accepted, size: uint32(len(m.Body))}
		setMessage(batch, q.num, e.seq, rec)
		setEntry(batch, q.num, e)
		entries = append(entries, e)
		ids[i] = messageID(e.seq, rec.nonce)
	}
	err = batch.Commit(pebble.Sync)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.window.finish(under)
	if err != nil {
		q.bytes -= bytes
		return ErrUnavailable.Wrap(op, err)
	}
	q.arrivedLocked(entries)
	return nil
}

func setMessage(batch *pebble.Batch, num, seq uint64, m message) {
	d := batch.SetDeferred(17, m.encodedLen())
	copy(d.Key, messageKey(num, seq))
	m.put(d.Value)
	must(d.Finish())
}
