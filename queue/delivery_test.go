package queue

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

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
		fill(170)
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
		fill(20)
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
