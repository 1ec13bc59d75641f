package cron

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/fault"
	"edged/internal/testkit"
)

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }

// attachments §4.3: every matched minute is recorded and fired once, in its own minute; a failure is not repeated.
func TestFiresEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.handler = func(context.Context, Match) (Outcome, error) { return Finished, errors.New("thrown") }
		quarter := Trigger{UID: "q", Cron: "*/15 * * * *", Generation: 1}
		_, stop := running(t, b, quarter)
		defer stop()
		expect(t, b.saw(59*time.Minute), "q/1@00:00 q/1@00:15 q/1@00:30 q/1@00:45")
		expect(t, b.saw(2*time.Minute), "q/1@01:00")
		if len(b.entries) != 5 || b.busy("q") {
			t.Errorf("the book has %d entries", len(b.entries))
		}
	})
}

// attachments §4.3: what was recorded is owed across restarts, what was not because nobody ran is skipped.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.handler = func(ctx context.Context, _ Match) (Outcome, error) {
			<-ctx.Done()
			return Owed, ctx.Err()
		}
		_, stop := running(t, b, every("a", 1))
		expect(t, b.saw(10*time.Second), "a/1@00:00")
		stop()
		time.Sleep(5*time.Minute + 10*time.Second)
		b.handle(func(context.Context, Match) (Outcome, error) { return Finished, nil })
		_, stop = running(t, b) // also of a trigger that is gone meanwhile
		expect(t, b.saw(time.Minute), "a/1@00:00")
		stop()
		_, stop = running(t, b, every("a", 1)) // it is 00:06:21 now: that minute began before
		expect(t, b.saw(time.Minute), "a/1@00:07")
		stop()
		if len(b.entries) != 2 {
			t.Errorf("the book has %d entries", len(b.entries))
		}
	})
}

// attachments §4.3: an unknown end is fired again with the same identity until it is known; matches meanwhile are skipped.
func TestOwedUntilFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		tries := 0
		b.handler = func(context.Context, Match) (Outcome, error) {
			switch tries++; {
			case tries == 1:
				panic("a bug")
			case tries < 4:
				return Owed, errors.New("child lost")
			case tries == 4:
				time.Sleep(150 * time.Second)
			}
			return Finished, nil
		}
		_, stop := running(t, b, every("a", 1))
		defer stop()
		expect(t, b.saw(155*time.Second), "a/1@00:00 a/1@00:00 a/1@00:00 a/1@00:00")
		expect(t, b.saw(time.Minute), "a/1@00:03")
	})
}

// A record that fails is tried again within its minute; one that was made although an error came back is fired all the same, once.
func TestRecordErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		n := 0
		broken := errors.New("no leader")
		b.fail = func(op string) (error, error) {
			if op != "record" {
				return nil, nil
			}
			switch n++; n {
			case 1, 2:
				return broken, nil
			case 4:
				return nil, broken
			}
			return nil, nil
		}
		_, stop := running(t, b, every("a", 1), every("b", 1))
		defer stop()
		expect(t, b.saw(10*time.Second), "a/1@00:00 b/1@00:00")
		expect(t, b.saw(time.Minute), "a/1@00:01 b/1@00:01")
		b.mu.Lock()
		b.fail = func(op string) (error, error) { return broken, nil }
		b.mu.Unlock()
		expect(t, b.saw(3*time.Minute), "")
		b.mu.Lock()
		b.fail = func(op string) (error, error) { return nil, nil }
		b.mu.Unlock()
		if got := b.saw(time.Minute); !strings.Contains(got, "a/1@00:05") || strings.Contains(got, "00:03") {
			t.Errorf("after the outage: %q", got)
		}
		for k, p := range b.entries {
			if p.fires != 1 {
				t.Errorf("%s was fired %d times", k, p.fires)
			}
		}
	})
}

// A minute that ends in doubt: what was recorded is found and fired when the recorder can be asked again.
func TestDoubtIsResolvedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		broken := errors.New("no answer")
		out := false
		b.fail = func(op string) (error, error) {
			if out && op == "record" {
				return nil, broken
			}
			if out {
				return broken, nil
			}
			return nil, nil
		}
		_, stop := running(t, b, Trigger{UID: "a", Cron: "1 * * * *", Generation: 1})
		defer stop()
		b.saw(30 * time.Second)
		b.mu.Lock()
		out = true
		b.mu.Unlock()
		expect(t, b.saw(3*time.Minute), "")
		b.mu.Lock()
		out = false
		b.mu.Unlock()
		expect(t, b.saw(time.Minute), "a/1@00:01")
	})
}

// A match by hand whose answer is lost: what came of it is found out, as for the clock's own.
func TestTriggerInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.fail = func(op string) (before, after error) {
			if op == "record" {
				after = errors.New("no answer")
			}
			return nil, after
		}
		s, stop := running(t, b, Trigger{UID: "a", Cron: "30 12 * * *", Generation: 1})
		synctest.Wait()
		if _, err := s.Trigger(t.Context(), "a"); fault.CodeOf(err) != fault.Unavailable {
			t.Error(err)
		}
		expect(t, b.saw(time.Minute), "a/1@00:00")
		stop()
		if _, err := s.Trigger(t.Context(), "a"); fault.CodeOf(err) != fault.Unavailable {
			t.Error(err)
		}
	})
}

// A run that came on record after everything was asked stands in the way of the next match: that is when it is found.
func TestUnknownOpenRunIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		_, stop := running(t, b, Trigger{UID: "a", Cron: "1-59 * * * *", Generation: 1})
		defer stop()
		expect(t, b.saw(30*time.Second), "")
		m := Match{Trigger: "a", Generation: 1, Minute: time.Now().Truncate(time.Minute).UnixMilli()}
		b.mu.Lock()
		b.entries[key(m)] = &page{Match: m}
		b.mu.Unlock()
		expect(t, b.saw(time.Minute), "a/1@00:00")
		expect(t, b.saw(time.Minute), "a/1@00:02")
	})
}

// The end of a run is told until it is on record; the handler is not called again for it.
func TestDoneIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		n := 0
		b.fail = func(op string) (error, error) {
			if op == "done" {
				if n++; n < 5 {
					return errors.New("not now"), nil
				}
			}
			return nil, nil
		}
		_, stop := running(t, b, Trigger{UID: "a", Cron: "0 * * * *", Generation: 1})
		defer stop()
		expect(t, b.saw(time.Minute), "a/1@00:00")
		if b.busy("a") {
			t.Error("not done")
		}
	})
}

// An operator sees the triggers and can have one fired now, once a minute.
func TestListAndTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		s, stop := running(t, b, Trigger{UID: "a", Worker: "w", Cron: "30 12 * * *", Generation: 3}, Trigger{UID: "never", Cron: "0 0 31 2 *"})
		defer stop()
		synctest.Wait()
		list := s.List()
		if len(list) != 2 || !list[0].Next.Equal(time.Date(2000, 1, 1, 12, 30, 0, 0, time.UTC)) || !list[1].Next.IsZero() || list[0].Open != nil {
			t.Errorf("%+v", list)
		}
		release := make(chan struct{})
		b.handle(func(ctx context.Context, _ Match) (Outcome, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return Finished, nil
		})
		m, err := s.Trigger(t.Context(), "a")
		if err != nil || m.Worker != "w" || m.Generation != 3 {
			t.Errorf("%+v, %v", m, err)
		}
		expect(t, b.saw(0), "a/3@00:00")
		if open := s.List()[0].Open; open == nil || *open != m {
			t.Errorf("open run %+v", open)
		}
		_, busy := s.Trigger(t.Context(), "a")
		close(release)
		synctest.Wait()
		_, again := s.Trigger(t.Context(), "a")
		_, unknown := s.Trigger(t.Context(), "x")
		if fault.CodeOf(busy) != fault.Conflict || fault.CodeOf(again) != fault.Conflict || fault.CodeOf(unknown) != fault.NotFound {
			t.Errorf("%v, %v, %v", busy, again, unknown)
		}
		expect(t, b.saw(13*time.Hour), "a/3@12:30")
	})
}

// A wrong table changes nothing, and wrong options are told.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		s, stop := running(t, b, every("a", 1))
		defer stop()
		for _, table := range [][]Trigger{{every("a", 2), {UID: "b", Cron: "@daily"}}, {every("a", 1), every("a", 2)}, {{Cron: "* * * * *"}}} {
			if err := s.SetTriggers(table); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%v: %v", table, err)
			}
		}
		expect(t, b.saw(90*time.Second), "a/1@00:00 a/1@00:01")
		if _, err := New(Options{Drain: -1}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("empty options: %v", err)
		}
	})
}

// Weeks of restarts at random moments, with errors on every side and lost runs: at the end each record was fired and is done, and no
// trigger and minute was recorded twice (the book would refuse it, and the calendar never asks for a minute that is over).
func TestRandomLives(t *testing.T) {
	rng := testkit.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		broken := errors.New("broken")
		chance := func(n int) bool { return rng.IntN(n) == 0 }
		var draws sync.Mutex
		b.fail = func(op string) (before, after error) {
			draws.Lock()
			defer draws.Unlock()
			if chance(8) {
				before = broken
			}
			if chance(8) {
				after = broken
			}
			return before, after
		}
		b.handler = func(ctx context.Context, m Match) (Outcome, error) {
			draws.Lock()
			d, o := time.Duration(rng.IntN(100))*time.Second, Outcome(rng.IntN(2))
			draws.Unlock()
			if !wait(ctx, d) {
				return Owed, ctx.Err()
			}
			return o, nil
		}
		table := []Trigger{every("a", 1), {UID: "b", Cron: "*/3 * * * *"}, {UID: "c", Cron: "7 */2 * * *"}}
		for range 60 {
			_, stop := running(t, b, table...)
			draws.Lock()
			d := time.Duration(rng.IntN(3600)) * time.Second
			draws.Unlock()
			time.Sleep(d)
			stop()
			time.Sleep(d / 10)
		}
		b.mu.Lock()
		b.fail = func(string) (error, error) { return nil, nil }
		b.handler = func(context.Context, Match) (Outcome, error) { return Finished, nil }
		b.mu.Unlock()
		_, stop := running(t, b)
		b.saw(time.Hour)
		stop()
		for k, p := range b.entries {
			if p.fires == 0 || !p.done {
				t.Errorf("%s: fired %d times, done %t", k, p.fires, p.done)
			}
		}
		if len(b.entries) < 300 {
			t.Errorf("only %d matches recorded", len(b.entries))
		}
	})
}
