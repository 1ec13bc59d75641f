package life

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, s)
}

func part(l *log, name string) Part {
	return Part{
		Name:  name,
		Run:   func(ctx context.Context) error { <-ctx.Done(); l.add(name + " ran out"); return ctx.Err() },
		Close: func() error { l.add(name + " closed"); return nil },
	}
}

func TestStackStopsFromTheTop(t *testing.T) {
	var l log
	var s Stack
	for _, n := range []string{"store", "service", "front"} {
		s.Push(part(&l, n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"front ran out", "front closed", "service ran out", "service closed", "store ran out", "store closed"}
	if !slices.Equal(l.lines, want) {
		t.Fatalf("got %v, want %v", l.lines, want)
	}
}

func TestAPartThatEndsTakesTheStackDown(t *testing.T) {
	var l log
	var s Stack
	boom := errors.New("boom")
	s.Push(part(&l, "store"))
	s.Push(Part{Name: "service", Run: func(context.Context) error { return boom }})
	s.Push(part(&l, "front"))
	err := s.Run(t.Context())
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "service") {
		t.Fatalf("got %v, want boom of service", err)
	}
	if want := []string{"front ran out", "front closed", "store ran out", "store closed"}; !slices.Equal(l.lines, want) {
		t.Fatalf("got %v, want %v", l.lines, want)
	}
}

// A part that overruns its time is reported, and what it may still use is not closed under it.
func TestAPartThatOverruns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var s Stack
		release := make(chan struct{})
		s.Push(Part{Name: "stuck", Stop: time.Second, Run: func(context.Context) error { <-release; return nil },
			Close: func() error { l.add("closed"); return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := s.Run(ctx)
		if err == nil || !strings.Contains(err.Error(), "stuck: still running 1s") {
			t.Errorf("got %v", err)
		}
		if len(l.lines) != 0 {
			t.Errorf("closed while running: %v", l.lines)
		}
		close(release)
	})
}
