package cron

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// book is a recorder as the control room keeps one: it survives the scheduler.
type book struct {
	mu      sync.Mutex
	entries map[string]*page // by trigger and minute
	fail    func(op string) (before, after error)
	fired   []string
	handler func(ctx context.Context, m Match) (Outcome, error)
}

type page struct {
	Match
	done  bool
	fires int
}

func newBook() *book {
	return &book{entries: map[string]*page{}, fail: func(string) (error, error) { return nil, nil },
		handler: func(context.Context, Match) (Outcome, error) { return Finished, nil }}
}

func key(m Match) string { return fmt.Sprintf("%s@%d", m.Trigger, m.Minute) }

func (b *book) Record(_ context.Context, minute time.Time, matches []Match) (out []Match, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, after := b.fail("record")
	if before != nil {
		return nil, before
	}
	if now := time.Now(); now.Before(minute) || !now.Before(minute.Add(time.Minute)) {
		return nil, nil
	}
	for _, m := range matches {
		if b.entries[key(m)] == nil && !b.busy(m.Trigger) {
			b.entries[key(m)] = &page{Match: m}
			out = append(out, m)
		}
	}
	if after != nil {
		return nil, after
	}
	return out, nil
}

func (b *book) busy(trigger string) bool {
	for _, p := range b.entries {
		if p.Trigger == trigger && !p.done {
			return true
		}
	}
	return false
}

func (b *book) Load(context.Context) (out []Match, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before, _ := b.fail("load"); before != nil {
		return nil, before
	}
	for _, k := range slices.Sorted(maps.Keys(b.entries)) {
		if p := b.entries[k]; !p.done {
			out = append(out, p.Match)
		}
	}
	return out, nil
}

func (b *book) Done(_ context.Context, m Match) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, after := b.fail("done")
	if before == nil {
		b.entries[key(m)].done = true
		before = after
	}
	return before
}

func (b *book) Fire(ctx context.Context, m Match) (Outcome, error) {
	b.mu.Lock()
	b.fired = append(b.fired, fmt.Sprintf("%s/%d@%s", m.Trigger, m.Generation, time.UnixMilli(m.Minute).UTC().Format("15:04")))
	b.entries[key(m)].fires++
	h := b.handler
	b.mu.Unlock()
	return h(ctx, m)
}

func (b *book) saw(d time.Duration) string {
	pass(d)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortStableFunc(b.fired, func(x, y string) int { return strings.Compare(x[len(x)-5:]+x, y[len(y)-5:]+y) }) // runs of one minute are parallel
	s := strings.Join(b.fired, " ")
	b.fired = nil
	return s
}

func (b *book) handle(h func(context.Context, Match) (Outcome, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handler = h
}

// running starts a scheduler over the book; stop ends it.
func running(t *testing.T, b *book, table ...Trigger) (s *Scheduler, stop func()) {
	t.Helper()
	s, err := New(Options{Record: b.Record, Load: b.Load, Fire: b.Fire, Done: b.Done, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetTriggers(table); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("fired %q, want %q", got, want)
	}
}
