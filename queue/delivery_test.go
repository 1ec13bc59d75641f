package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// keysOf counts what is on disk of a queue.
func keysOf(t *testing.T, s *Store, class byte, uid string) int {
	t.Helper()
	num := s.find(uid).num
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: classKey(class, num), UpperBound: classEnd(class, num)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for it.First(); it.Valid(); it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func returns(context.Context, *Batch) (Outcome, error) { return Returned, nil }

func throws(context.Context, *Batch) (Outcome, error) { return Threw, errors.New("thrown") }

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
			l.check(b.Acknowledge(ids[0]))
			l.check(b.Retry(ids[1], 60))
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
			l.check(b.Acknowledge(ids[1]))
			l.check(b.RetryAll(DefaultDelay))
			l.check(b.RetryAll(7)) // none is left, which is fine
			l.check(b.AcknowledgeAll())
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
			l.check(b.Acknowledge(ids[0]))
			for i, err := range []error{b.Acknowledge(ids[0]), b.Retry(ids[0], 1)} {
				if !errors.Is(err, ErrSettled) {
					t.Errorf("second settlement %d: %v", i, err)
				}
			}
			if err := b.Acknowledge("another"); !errors.Is(err, ErrUnknownMessage) {
				t.Errorf("foreign id: %v", err)
			}
			for _, delay := range []int{-2, MaxDelaySeconds + 1} {
				if err := b.Retry(ids[1], delay); fault.CodeOf(err) != fault.Invalid {
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
		for i, err := range []error{kept.Acknowledge(ids[1]), kept.Retry(ids[1], 0), kept.AcknowledgeAll(), kept.RetryAll(0)} {
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
			if err := old.Acknowledge(id); !errors.Is(err, ErrUnknownBatch) {
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

// queue §4: a batch is full or as old as maxBatchTimeoutSeconds allows.
func TestBatchForming(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		var sizes []int
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			sizes = append(sizes, len(b.Messages))
			return Returned, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize, c.MaxBatchTimeout = 3, 20*time.Second
		l.consume(c)
		l.send("a", "b")
		l.expect(19*time.Second, "")
		l.expect(2*time.Second, "a#1 b#1")
		l.send("c", "d")
		l.expect(10*time.Second, "")
		l.send("e", "f")
		l.expect(time.Second, "c#1 d#1 e#1")
		l.expect(18*time.Second, "")
		l.expect(2*time.Second, "f#1")
		if got := fmt.Sprint(sizes); got != "[2 3 1]" {
			t.Errorf("batches of %s", got)
		}
	})
}

// queue §4: at most maxConcurrency batches in flight, a changed setting counts at the next decision, and a message in flight is
// not delivered in parallel however long its handler takes.
func TestConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		release := make(chan struct{})
		l.handle(func(ctx context.Context, _ *Batch) (Outcome, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return Returned, nil
		})
		l.run()
		c := consumer()
		c.MaxConcurrency = 2
		l.consume(c)
		l.send("a", "b", "c", "d", "e")
		l.expect(time.Hour, "a#1 b#1")
		c.MaxConcurrency = 3
		l.consume(c)
		l.expect(time.Hour, "c#1")
		c.MaxConcurrency = 1
		l.consume(c)
		release <- struct{}{}
		release <- struct{}{}
		l.expect(time.Hour, "")
		release <- struct{}{}
		l.expect(time.Hour, "d#1")
		close(release)
		l.expect(time.Hour, "e#1")
		l.empty(jobs)
	})
}

// queue §4: without a deployment messages wait, spend no attempt, and retention runs.
func TestUndeployed(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		set := settings()
		set.Retention = time.Hour
		l.check(l.s.Update(t.Context(), jobs, set))
		l.run()
		c := consumer()
		c.Undeployed = true
		l.consume(c)
		l.send("old")
		l.saw(50 * time.Minute)
		l.send("young")
		l.expect(20*time.Minute, "")
		if st := l.stats(jobs); st.Waiting != 1 || st.Discarded != 1 {
			t.Errorf("%+v", st)
		}
		c.Undeployed = false
		l.consume(c)
		l.expect(time.Second, "young#1")
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

// queue §1: the newest retention decides about every message that waits; nothing is resurrected.
func TestRetention(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.run()
		l.send("a")
		_, err := l.s.Send(t.Context(), jobs, Message{Body: []byte("late"), DelaySeconds: 7200})
		l.check(err)
		l.saw(time.Hour)
		set := settings()
		set.Retention = 90 * time.Minute
		l.check(l.s.Update(t.Context(), jobs, set))
		l.saw(40 * time.Minute)
		if st := l.stats(jobs); st.Waiting != 1 { // one was due and went; the other goes when it would be due, at the latest
			t.Errorf("%+v", st)
		}
		l.check(l.s.Update(t.Context(), jobs, settings()))
		l.check(l.s.Update(t.Context(), jobs, set))
		l.consume(consumer())
		l.expect(2*time.Hour, "")
		l.empty(jobs)
	})
}

// queue §3: per-send delay wins over the queue's, which counts for messages accepted afterwards.
func TestDelays(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.run()
		l.consume(consumer())
		set := settings()
		set.DefaultDelay = time.Minute
		l.check(l.s.Update(t.Context(), jobs, set))
		l.send("a")
		_, err := l.s.Send(t.Context(), jobs, Message{Body: []byte("now")})
		l.check(err)
		set.DefaultDelay = 0
		l.check(l.s.Update(t.Context(), jobs, set))
		l.expect(time.Second, "now#1")
		l.expect(57*time.Second, "")
		l.expect(3*time.Second, "a#1")
	})
}

// queue §3: limits and their names; a batch is stored whole or not at all.
func TestSendErrors(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		big := Message{Body: make([]byte, MaxBody+1)}
		fine := Message{Body: make([]byte, MaxBody)}
		late := Message{DelaySeconds: MaxDelaySeconds + 1}
		for _, tt := range []struct {
			ms   []Message
			name string
		}{
			{[]Message{fine, big}, "message_too_large"},
			{[]Message{late, big}, "invalid"},
			{[]Message{big, late}, "message_too_large"},
			{make([]Message, MaxBatch+1), "batch_too_large"},
			{nil, "invalid"},
			{[]Message{{DelaySeconds: -2}}, "invalid"},
		} {
			if _, err := l.s.SendBatch(t.Context(), jobs, tt.ms); fault.NameOf(err) != tt.name {
				t.Errorf("%v, want %s", err, tt.name)
			}
		}
		for _, ref := range []Ref{{UID: "r-none", Epoch: 1}, {UID: jobs.UID, Epoch: 2}, {}} {
			if _, err := l.s.Send(t.Context(), ref, fine); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v: %v", ref, err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.s.Send(gone, jobs, fine); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("cancelled: %v", err)
		}
		l.empty(jobs)
		ids, err := l.s.SendBatch(t.Context(), jobs, make([]Message, MaxBatch))
		l.check(err)
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = true
		}
		if len(seen) != MaxBatch || seen[""] {
			t.Errorf("%d ids", len(seen))
		}
	})
}

// attachments §5: deleting a consumer during a batch loses nothing, settles nothing, and is complete when the batch has ended.
func TestDetach(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		release := make(chan Outcome)
		l.handle(func(ctx context.Context, _ *Batch) (Outcome, error) {
			select {
			case o := <-release:
				return o, nil
			case <-ctx.Done():
				return Unknown, nil
			}
		})
		l.run()
		l.consume(consumer())
		l.send("a", "b")
		l.expect(time.Second, "a#1")
		l.consume()
		if l.s.Detached(jobs.UID) {
			t.Error("detached while a batch runs")
		}
		release <- Threw
		l.expect(time.Hour, "")
		if !l.s.Detached(jobs.UID) {
			t.Error("not detached after the batch")
		}
		if st := l.stats(jobs); st.Waiting != 2 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
		l.handle(returns)
		l.consume(consumer())
		if got := sorted(l.saw(time.Second)); got != "a#2 b#1" {
			t.Errorf("after attaching again: %s", got)
		}
		l.empty(jobs)
	})
}

// A clean stop lets a running handler finish and owes nothing afterwards.
func TestStopDrains(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.handle(func(context.Context, *Batch) (Outcome, error) {
			pass(4 * time.Second)
			return Returned, nil
		})
		l.run()
		l.consume(consumer())
		l.send("a", "b")
		l.expect(time.Second, "a#1")
		l.stop()
		l.expect(0, "")
		if st := l.stats(jobs); st.Waiting != 1 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
		l.handle(func(ctx context.Context, _ *Batch) (Outcome, error) {
			<-ctx.Done() // one that does not finish in time is cancelled
			return Unknown, ctx.Err()
		})
		l.run()
		l.expect(time.Second, "b#1")
		l.stop()
		l.handle(returns)
		l.run()
		l.expect(time.Minute, "b#2")
		l.empty(jobs)
	})
}

// queue §7: restart with an unsettled batch redelivers, after the lease of the dead process; what was settled stays settled.
func TestCrashRedelivers(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ids := l.send("a", "b", "c")
		settled := make(chan struct{})
		l.handle(func(ctx context.Context, b *Batch) (Outcome, error) {
			l.check(b.Acknowledge(ids[0]))
			l.check(b.Retry(ids[1], 120))
			close(settled)
			<-ctx.Done()
			return Unknown, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize = 10
		l.consume(c)
		<-settled
		l.expect(time.Minute, "a#1 b#1 c#1") // renewed meanwhile
		l.crash()
		l.handle(returns)
		l.run()
		l.consume(c)
		l.expect(0, "")
		l.expect(11*time.Second, "c#2")
		l.expect(time.Hour, "b#2")
		l.empty(jobs)
	})
}

// queue §6: a message whose last permitted delivery was cut by a crash is exhausted, not delivered again.
func TestCrashInTheLastDelivery(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.check(l.s.Create(t.Context(), dlq, settings()))
		c := consumer()
		c.MaxRetries, c.DeadLetter = 1, dlq.UID
		l.send("a")
		for n := range 2 {
			l.handle(func(ctx context.Context, b *Batch) (Outcome, error) { <-ctx.Done(); return Unknown, nil })
			l.run()
			l.consume(c)
			l.expect(time.Minute, fmt.Sprintf("a#%d", n+1))
			l.crash()
		}
		l.run()
		l.expect(time.Minute, "") // whether it is exhausted is for a consumer to say
		l.consume(c)
		l.expect(time.Minute, "")
		l.empty(jobs)
		if n := l.stats(dlq).Waiting; n != 1 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// More entries than the window holds come through it in order of their due time, with senders at work.
func TestWindowOverflow(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		total := 0
		fill := func(n int) {
			ms := make([]Message, MaxBatch)
			for range n {
				for i := range ms {
					ms[i] = Message{Body: fmt.Appendf(nil, "%d", total), DelaySeconds: total % 7}
					total++
				}
				_, err := l.s.SendBatch(t.Context(), jobs, ms)
				l.check(err)
			}
		}
		fill(200)
		seen := map[string]int{}
		l.handle(func(_ context.Context, b *Batch) (Outcome, error) {
			for _, m := range b.Messages {
				seen[string(m.Body)]++
			}
			return Returned, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize = 100
		l.consume(c)
		fill(50)
		synctest.Wait()
		fill(1)
		l.saw(time.Minute)
		for body, n := range seen {
			if n != 1 {
				t.Errorf("%s came %d times", body, n)
			}
		}
		if len(seen) != total {
			t.Errorf("%d of %d messages came", len(seen), total)
		}
		l.empty(jobs)
	})
}

// Create, Update and Delete are idempotent, obey epochs and survive a restart; a deleted queue's messages never return.
func TestCatalog(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ctx := t.Context()
		l.send("a")
		newer := Ref{jobs.UID, 2}
		set := settings()
		set.Name = "renamed"
		l.check(l.s.Create(ctx, jobs, set))
		l.check(l.s.Create(ctx, newer, set))
		if err := l.s.Create(ctx, jobs, set); !errors.Is(err, ErrUnavailable) {
			t.Errorf("older epoch: %v", err)
		}
		if err := l.s.Delete(ctx, jobs); !errors.Is(err, ErrUnavailable) {
			t.Errorf("delete of an older epoch: %v", err)
		}
		if _, err := l.s.Send(ctx, jobs, Message{}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("send under an older epoch: %v", err)
		}
		l.crash()
		if st := l.stats(newer); st.Waiting != 1 || st.Name != "renamed" || l.s.Exists(jobs) {
			t.Errorf("after a crash: %+v", st)
		}
		l.check(l.s.Delete(ctx, newer))
		l.check(l.s.Delete(ctx, newer))
		if l.s.Exists(newer) {
			t.Error("exists after its end")
		}
		l.check(l.s.Create(ctx, jobs, settings()))
		l.empty(jobs)
		for _, bad := range []Settings{{}, {Retention: time.Second}, {Retention: time.Hour, DefaultDelay: -1}, {Retention: time.Hour, DefaultDelay: 13 * time.Hour},
			{Retention: time.Hour, Name: strings.Repeat("x", 600)}} {
			if err := l.s.Create(ctx, jobs, bad); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// attachments §5: what a consumer may say; a wrong table changes nothing.
func TestConsumerChecks(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.run()
		l.consume(consumer())
		for name, change := range map[string]func(*Consumer){
			"size 0":          func(c *Consumer) { c.MaxBatchSize = 0 },
			"size 101":        func(c *Consumer) { c.MaxBatchSize = 101 },
			"timeout":         func(c *Consumer) { c.MaxBatchTimeout = 61 * time.Second },
			"concurrency":     func(c *Consumer) { c.MaxConcurrency = 251 },
			"no concurrency":  func(c *Consumer) { c.MaxConcurrency = 0 },
			"retries":         func(c *Consumer) { c.MaxRetries = 101 },
			"delay":           func(c *Consumer) { c.RetryDelay = 13 * time.Hour },
			"itself as dead":  func(c *Consumer) { c.DeadLetter = c.Queue },
			"no queue":        func(c *Consumer) { c.Queue = "" },
			"negative retry":  func(c *Consumer) { c.MaxRetries = -1 },
			"negative timout": func(c *Consumer) { c.MaxBatchTimeout = -1 },
		} {
			c := consumer()
			change(&c)
			if err := l.s.SetConsumers([]Consumer{c}); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := l.s.SetConsumers([]Consumer{consumer(), consumer()}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("two consumers: %v", err)
		}
		l.send("a")
		l.expect(time.Second, "a#1")
	})
}
