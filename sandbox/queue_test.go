package sandbox

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// full takes every slot of the box; the function it returns gives them back.
func full(s *Sandbox) (free func()) {
	for s.turns.try(quick) {
	}
	return func() {
		for range s.turns.size {
			s.turns.give(quick)
		}
	}
}

// queued begins an invocation and returns once it waits for a slot.
func queued(ctx context.Context, t *testing.T, v *Version) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		var res event.Response
		done <- v.Serve(ctx, request(), &res)
	}()
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		v.mu.Lock()
		active := v.active
		v.mu.Unlock()
		if active == 1 {
			return done
		}
		if time.Now().After(end) {
			t.Fatal("the invocation did not begin")
		}
	}
}

// A switch of versions loses no request: one that was waiting for its turn when its version was retired is served by
// that version, and only then has the version ended.
func TestRetireServesTheQueue(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`return new Response('served')`))
	free := full(s)
	done := queued(context.Background(), t, v)
	v.retire()
	select {
	case <-v.empty:
		t.Error("the version has ended with an invocation waiting")
	default:
	}
	if err := serveErr(v); !errors.Is(err, event.ErrNotServing) {
		t.Errorf("a new invocation: %v", err)
	}
	if live, _ := s.Instances(); live != 0 {
		t.Errorf("%d sandboxes for an invocation that only waits", live)
	}
	free()
	if err := <-done; err != nil {
		t.Errorf("the waiting invocation: %v", err)
	}
	if err := v.Retire(context.Background()); err != nil {
		t.Error(err)
	}
}

// Whoever waits for a slot stops waiting when the client leaves, the version is stopped or the time is over, and gives
// its place back.
func TestQueueEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		wall time.Duration
		end  func(v *Version, leave context.CancelFunc)
		want func(error) bool
	}{
		{"client", 0, func(_ *Version, leave context.CancelFunc) { leave() }, func(err error) bool { return fault.CodeOf(err) == fault.Canceled }},
		{"stop", 0, func(v *Version, _ context.CancelFunc) { v.stop() }, func(err error) bool { return errors.Is(err, event.ErrDraining) }},
		{"wall", 10 * time.Millisecond, func(*Version, context.CancelFunc) {}, func(err error) bool { return errors.Is(err, event.ErrWall) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newBox(t, Options{})
			v := openWorker(t, s, fetcher(`return new Response('')`))
			if c.wall > 0 {
				s.opt.MaxWall = c.wall
			}
			defer full(s)()
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			done := make(chan error, 1)
			go func() {
				var res event.Response
				done <- v.Serve(ctx, request(), &res)
			}()
			c.end(v, leave)
			if err := <-done; !c.want(err) {
				t.Errorf("got %v", err)
			}
			v.retire()
			<-v.empty
		})
	}
}

// An invocation that is refused although a slot was free gives it back, and is no longer counted.
func TestRefusedHoldsNothing(t *testing.T) {
	s := newBox(t, Options{MaxInstances: 1})
	retired := openWorker(t, s, fetcher(`return new Response('')`))
	if err := retired.Retire(context.Background()); err != nil {
		t.Fatal(err)
	}
	crowded := openWorker(t, s, fetcher(`return new Response('')`))
	s.mu.Lock()
	s.live++ // the only sandbox is somebody else's
	s.mu.Unlock()
	for _, c := range []struct {
		v    *Version
		want error
	}{{retired, event.ErrNotServing}, {crowded, event.ErrOverloaded}} {
		if err := serveErr(c.v); !errors.Is(err, c.want) {
			t.Errorf("got %v, want %v", err, c.want)
		}
		if _, atWork := c.v.Pool(); atWork != 0 || s.turns.taken() != 0 {
			t.Errorf("after %v: %d at work, %d slots are taken", c.want, atWork, s.turns.taken())
		}
	}
	s.mu.Lock()
	s.live--
	s.mu.Unlock()
}
