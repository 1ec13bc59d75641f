package queue

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/internal/disk"
	"edged/internal/fault"
)

func (l *lab) peek(ref Ref) string {
	l.t.Helper()
	out, cursor := "", ""
	for {
		p, err := l.s.Peek(l.t.Context(), ref, PeekOptions{Max: 2, Bodies: true, Cursor: cursor})
		l.check(err)
		for _, m := range p.Messages {
			out += fmt.Sprintf("%s#%d<%s ", m.Body, m.Attempts, m.Origin)
		}
		if cursor = p.Next; cursor == "" {
			return sorted(out)
		}
	}
}

// An operator sees what waits, page by page, and takes nothing by looking.
func TestPeek(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		l.send("a", "b", "c", "d", "e")
		for range 2 {
			if got := l.peek(jobs); got != "a#0< b#0< c#0< d#0< e#0<" {
				t.Errorf("peeked %s", got)
			}
		}
		if _, err := l.s.Peek(t.Context(), jobs, PeekOptions{Cursor: "x"}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("bad cursor: %v", err)
		}
		if _, err := l.s.Peek(t.Context(), jobs, PeekOptions{Max: 1001}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("too many: %v", err)
		}
	})
}

// A redrive moves dead letters back to where they came from, as new messages, by filter and at its rate.
func TestRedrive(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		ctx := t.Context()
		l.check(l.s.Create(ctx, dlq, settings()))
		other := Ref{"r-other", 1}
		l.check(l.s.Create(ctx, other, settings()))
		l.handle(throws)
		l.run()
		c := consumer()
		c.MaxRetries, c.DeadLetter = 0, dlq.UID
		d := c
		d.Queue = other.UID
		l.consume(c, d)
		l.send("a", "b", "c")
		_, err := l.s.Send(ctx, other, Message{Body: []byte("x")})
		l.check(err)
		_, err = l.s.Send(ctx, dlq, Message{Body: []byte("own")})
		l.check(err)
		l.expect(time.Second, "a#1 b#1 c#1 x#1")
		l.consume()
		if got := l.peek(dlq); got != "a#0<r-jobs b#0<r-jobs c#0<r-jobs own#0< x#0<r-other" {
			t.Fatalf("dead letters: %s", got)
		}
		start := time.Now()
		got, err := l.s.Redrive(ctx, dlq, RedriveOptions{Origin: jobs.UID, Rate: 1, Max: 2})
		if got.Moved != 2 || err != nil || time.Since(start) < time.Second {
			t.Errorf("%+v in %v, %v", got, time.Since(start), err)
		}
		got, err = l.s.Redrive(ctx, dlq, RedriveOptions{})
		if got.Moved != 2 || got.Left != 1 || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if j, o, dead := l.peek(jobs), l.peek(other), l.peek(dlq); j != "a#0< b#0< c#0<" || o != "x#0<" || dead != "own#0<" {
			t.Errorf("jobs %q, other %q, dead %q", j, o, dead)
		}
		l.handle(returns)
		l.consume(c)
		l.expect(time.Second, "a#1 b#1 c#1")
		l.empty(jobs)
		if _, err := l.s.Redrive(ctx, dlq, RedriveOptions{To: dlq.UID}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("into itself: %v", err)
		}
		if got, err := l.s.Redrive(ctx, dlq, RedriveOptions{To: jobs.UID, Before: start.Add(-time.Hour)}); got.Moved != 0 || err != nil {
			t.Errorf("nothing is that old: %+v, %v", got, err)
		}
		l.check(l.s.SetConsumers(nil))
		if got, err := l.s.Redrive(ctx, dlq, RedriveOptions{To: jobs.UID}); got.Moved != 1 || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		l.empty(dlq)
	})
}

// A purge takes what waits and leaves what a handler holds.
func TestPurge(t *testing.T) {
	bubble(t, func(t *testing.T, l *lab) {
		release := make(chan struct{})
		l.handle(func(ctx context.Context, _ *Batch) (Outcome, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return Threw, nil
		})
		l.run()
		l.consume(consumer())
		l.send("a", "b", "c")
		l.expect(time.Second, "a#1")
		if n, err := l.s.Purge(t.Context(), jobs); n != 2 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		if st := l.stats(jobs); st.Waiting != 0 || st.InFlight != 1 {
			t.Errorf("%+v", st)
		}
		l.handle(returns)
		close(release)
		l.expect(time.Minute, "a#2")
		l.empty(jobs)
		l.send("d")
		l.expect(time.Minute, "d#1")
		l.empty(jobs)
	})
}

// A backup holds everything of its moment, also what was in delivery, and restores into an empty place only.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *Store {
		s, err := Open(Options{Dir: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ctx := t.Context()
	s := open("live")
	defer s.Close()
	if err := errors.Join(s.Create(ctx, jobs, settings()), s.SetConsumers(modelConsumers())); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := s.Send(ctx, jobs, Message{Body: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	q := s.find(jobs.UID)
	b, err := s.lease(q, s.decide(q, time.Now().Add(time.Second)))
	if err != nil || len(b.Messages) != 3 {
		t.Fatalf("%+v, %v", b, err)
	}
	backup := filepath.Join(dir, "backup")
	if err := s.Backup(ctx, backup); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(ctx, backup); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("over an old one: %v", err)
	}
	if err := b.finish(Returned); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, backup, filepath.Join(dir, "copy")); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, backup, filepath.Join(dir, "copy")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("over a store: %v", err)
	}
	if err := Restore(ctx, t.TempDir(), filepath.Join(dir, "other")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("from nothing: %v", err)
	}
	c := open("copy")
	defer c.Close()
	if st, err := c.Stats(ctx, jobs); st.Waiting != 5 || err != nil {
		t.Errorf("the copy has %+v, %v", st, err)
	}
	if st, err := s.Stats(ctx, jobs); st.Waiting != 2 || err != nil {
		t.Errorf("the original has %+v, %v", st, err)
	}
}

// Back-pressure: over the quota or with a full disk a send is refused as backend_unavailable and counted, and goes on when there is
// room; settling needs none.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := uint64(1 << 30)
		space := disk.NewSpace(disk.SpaceOptions{Free: func(string) (uint64, error) { return free, nil }})
		reg := prometheus.NewRegistry()
		m := NewMetrics(reg)
		l := &lab{t: t, handler: returns}
		s, err := Open(Options{Dir: t.TempDir(), Quota: 3 * (1000 + entryOverhead), Space: space, Metrics: m, Deliver: l.deliver})
		l.check(err)
		l.s = s
		defer l.close()
		ctx := t.Context()
		l.check(s.Create(ctx, jobs, settings()))
		kib := Message{Body: make([]byte, 1000)}
		_, err = s.SendBatch(ctx, jobs, []Message{kib, kib, kib})
		l.check(err)
		if _, err := s.Send(ctx, jobs, Message{}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("over the quota: %v", err)
		}
		if n := testutil.ToFloat64(m.accepted); n != 3 {
			t.Errorf("%v accepted", n)
		}
		if n, err := testutil.GatherAndCount(reg, "edged_queue_depth", "edged_queue_lag_seconds"); n != 2 || err != nil {
			t.Errorf("%d series per queue, %v", n, err)
		}
		l.run()
		l.consume(consumer())
		l.saw(time.Second)
		l.empty(jobs)
		runCtx, cancel := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- space.Run(runCtx) }()
		free = 0
		pass(3 * time.Second)
		if _, err := s.Send(ctx, jobs, kib); !errors.Is(err, ErrUnavailable) {
			t.Errorf("full disk: %v", err)
		}
		free = 1 << 30
		pass(3 * time.Second)
		_, err = s.Send(ctx, jobs, kib)
		l.check(err)
		cancel()
		l.check(<-ended)
	})
}
