package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
)

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

// A clean stop lets a running handler finish and owes nothing afterwards.
func TestStopDrains(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.handle(func(ctx context.Context, _ *Batch) (Outcome, error) {
			select {
			case <-time.After(4 * time.Second):
				return Returned, nil
			case <-ctx.Done():
				return Unknown, nil
			}
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
		ready := make(chan struct{})
		l.handle(func(ctx context.Context, b *Batch) (Outcome, error) {
			l.check(settled(b.Acknowledge(ids[0])))
			l.check(settled(b.Retry(ids[1], 120)))
			close(ready)
			<-ctx.Done()
			return Unknown, nil
		})
		l.run()
		c := consumer()
		c.MaxBatchSize = 10
		l.consume(c)
		<-ready
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

// What is sent after a restart takes no message's place.
func TestRestartKeepsMessages(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		first := l.send("a", "b")
		l.crash()
		second := l.send("c", "d")
		l.crash()
		if got := l.peek(jobs); got != "a#0< b#0< c#0< d#0<" || first[0] == second[0] {
			t.Errorf("the queue holds %s", got)
		}
	})
}

// A failed delivery is logged with ids and attempts, never with bodies.
func TestFailureLog(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		var out bytes.Buffer
		l.close()
		s, err := Open(Options{Dir: "q", FS: l.fs, Deliver: l.deliver, Log: slog.New(slog.NewTextHandler(&out, nil))})
		l.check(err)
		l.s = s
		l.handle(throws)
		l.run()
		c := consumer()
		c.MaxRetries = 1
		l.consume(c)
		id := l.send("secret")[0]
		l.expect(time.Minute, "secret#1 secret#2")
		l.stop()
		for _, want := range []string{"attempts." + id + "=1", "attempts." + id + "=2", "err=thrown", "outcome=threw"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, out.String())
			}
		}
		if strings.Contains(out.String(), "secret") {
			t.Errorf("the log holds a body:\n%s", out.String())
		}
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
