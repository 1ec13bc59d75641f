package queue

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"edged/internal/fault"
)

// queue §5: a handler that returns without settling acknowledges everything.
func TestReturnAcknowledges(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.run()
		l.consume(consumer())
		l.send("a", "b")
		l.expect(time.Second, "a#1 b#1")
		l.expect(2*time.Hour, "")
		l.empty(jobs)
	})
}

// queue §2: bodies are exact bytes; id and timestamp stay through redeliveries, attempts count 1, 2, 3.
func TestRedeliveryKeepsTheMessage(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		body := make([]byte, 256)
		for i := range body {
			body[i] = byte(i)
		}
		accepted := time.Now().UnixMilli()
		id, err := l.s.Send(t.Context(), jobs, Message{Body: body, DelaySeconds: 5})
		l.check(err)
		var got []Delivered
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			if b.Name != "jobs" || b.Worker != "r-worker" || b.Queue != jobs.UID || b.ID == "" {
				t.Errorf("batch %+v", b)
			}
			got = append(got, b.Messages...)
			return Threw, nil
		})
		l.run()
		l.consume(consumer())
		l.saw(time.Hour)
		if len(got) != 3 {
			t.Fatalf("%d deliveries, want 3", len(got))
		}
		for i, m := range got {
			if m.ID != id || m.TimestampMillis != accepted || m.Attempts != i+1 || !bytes.Equal(m.Body, body) {
				t.Errorf("delivery %d: %s %d %d %x", i, m.ID, m.TimestampMillis, m.Attempts, m.Body)
			}
		}
		l.empty(jobs) // the third was the last, and there is no dead-letter queue
	})
}

// queue §6: maxRetries 0 is one delivery.
func TestNoRetries(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.handle(throws)
		l.run()
		c := consumer()
		c.MaxRetries = 0
		l.consume(c)
		l.send("a")
		l.expect(2*time.Hour, "a#1")
		l.empty(jobs)
	})
}

// queue §5, D-29: after a throw acknowledgements stand, an explicit retry comes once and after its own delay, the rest after
// retryDelaySeconds.
func TestThrowBringsBackWhatIsNotAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ids := l.send("a", "b", "c")
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			l.handle(returns)
			l.check(settled(b.Acknowledge(ids[0])))
			l.check(settled(b.Retry(ids[1], 60)))
			return Threw, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize = 10
		l.consume(c)
		l.expect(time.Second, "a#1 b#1 c#1")
		l.expect(8*time.Second, "")
		l.expect(2*time.Second, "c#2")
		l.expect(48*time.Second, "")
		l.expect(2*time.Second, "b#2")
		l.expect(2*time.Hour, "")
		l.empty(jobs)
	})
}

// queue §5: retryAll after one acknowledgement brings back the others only; a retry without a delay takes the consumer's.
func TestRetryAllSkipsSettled(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ids := l.send("a", "b", "c")
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			l.handle(returns)
			l.check(settled(b.Acknowledge(ids[1])))
			l.check(settled(b.RetryAll(DefaultDelay)))
			l.check(settled(b.RetryAll(7))) // none is left, which is fine
			l.check(settled(b.AcknowledgeAll()))
			return Returned, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize = 10
		l.consume(c)
		l.expect(9*time.Second, "a#1 b#1 c#1")
		l.expect(2*time.Second, "a#2 c#2")
		l.expect(2*time.Hour, "")
		l.empty(jobs)
	})
}

// queue §5: what a settlement is refused for.
func TestSettlementErrors(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ids := l.send("a", "b")
		var kept *Batch
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			kept = b
			l.check(settled(b.Acknowledge(ids[0])))
			for i, err := range []error{settled(b.Acknowledge(ids[0])), settled(b.Retry(ids[0], 1))} {
				if !errors.Is(err, ErrSettled) {
					t.Errorf("second settlement %d: %v", i, err)
				}
			}
			if err := settled(b.Acknowledge("another")); !errors.Is(err, ErrUnknownMessage) {
				t.Errorf("foreign id: %v", err)
			}
			for _, delay := range []int{-2, MaxDelaySeconds + 1} {
				if err := settled(b.Retry(ids[1], delay)); fault.CodeOf(err) != fault.Invalid {
					t.Errorf("delay %d: %v", delay, err)
				}
			}
			return Returned, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize = 2
		l.consume(c)
		l.expect(time.Second, "a#1 b#1")
		for i, err := range []error{settled(kept.Acknowledge(ids[1])), settled(kept.Retry(ids[1], 0)), settled(kept.AcknowledgeAll()), settled(kept.RetryAll(0))} {
			if !errors.Is(err, ErrUnknownBatch) {
				t.Errorf("use %d after the end: %v", i, err)
			}
		}
		l.expect(2*time.Hour, "")
		l.empty(jobs)
	})
}

// queue §5, D-18: a settlement of an older delivery changes nothing about the newer one of the same message.
func TestOldBatchSettlesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		id := l.send("a")[0]
		var old *Batch
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			if old == nil {
				old = b
				return Threw, nil
			}
			if err := settled(old.Acknowledge(id)); !errors.Is(err, ErrUnknownBatch) {
				t.Errorf("got %v", err)
			}
			return Threw, nil
		})
		l.run()
		l.consume(consumer())
		l.expect(time.Hour, "a#1 a#2 a#3")
	})
}

// queue §6: an exhausted message arrives in the dead-letter queue as a new one, by that queue's delay.
func TestDeadLetter(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.check(l.s.Create(t.Context(), dlq, Settings{Name: "dead", Retention: time.Hour, DefaultDelay: 30 * time.Second}))
		c := consumer()
		c.MaxRetries, c.DeadLetter = 1, dlq.UID
		d := consumer()
		d.Queue = dlq.UID
		id := l.send("a")[0]
		var dead []Delivered
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			if b.Queue == dlq.UID {
				dead = append(dead, b.Messages...)
				return Returned, nil
			}
			return Threw, nil
		})
		start := time.Now()
		l.run()
		l.consume(c, d)
		l.expect(11*time.Second, "a#1 a#2")
		l.empty(jobs) // in one step: not in both queues
		if n := l.stats(dlq).Waiting; n != 1 {
			t.Errorf("%d dead letters", n)
		}
		l.expect(28*time.Second, "")
		l.expect(2*time.Second, "a#1")
		if m := dead[0]; m.ID == id || m.Attempts != 1 || m.TimestampMillis != start.Add(10*time.Second).UnixMilli() {
			t.Errorf("dead letter %+v of %s", m, id)
		}
		if st := l.stats(jobs); st.Dead != 1 || st.Retries != 1 {
			t.Errorf("counters %+v", st)
		}
		l.empty(dlq)
	})
}

// A message whose dead-letter queue is not here is neither lost nor delivered again.
func TestDeadLetterWaitsForItsQueue(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		c := consumer()
		c.MaxRetries, c.DeadLetter = 0, dlq.UID
		l.handle(throws)
		l.run()
		l.consume(c)
		l.send("a")
		l.expect(time.Hour, "a#1")
		l.check(l.s.Create(t.Context(), dlq, settings()))
		l.expect(time.Minute, "")
		if n := l.stats(dlq).Waiting; n != 1 {
			t.Errorf("%d dead letters", n)
		}
		l.empty(jobs)
	})
}

// queue §6, D-53: a delivery that reached no handler does not count, and is not tried again in a tight loop.
func TestNotReachedDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		n := 0
		l.handle(func(context.Context, *Batch) (Outcome, error) {
			n++
			return NotReached, nil
		})
		l.run()
		c := consumer()
		c.MaxRetries = 0
		l.consume(c)
		l.send("a")
		l.saw(time.Minute)
		if n < 5 || n > 30 {
			t.Errorf("%d tries in a minute", n)
		}
		l.handle(returns)
		l.expect(time.Minute, "a#1")
		l.empty(jobs)
	})
}

// queue §6, D-53: an unknown end counts, and the last one exhausts.
func TestUnknownCounts(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.handle(func(context.Context, *Batch) (Outcome, error) { panic("a bug") })
		l.run()
		l.consume(consumer())
		l.send("a")
		l.expect(time.Hour, "a#1 a#2 a#3")
		l.empty(jobs)
	})
}
