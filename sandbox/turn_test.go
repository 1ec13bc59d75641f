package sandbox

import (
	"context"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// module-worker §6, §7: guests that never end do not keep others from running: a short request is answered while they are
// at it, and they are stopped when they have used their own time.
func TestGuestsTakeTurns(t *testing.T) {
	s := newBox(t, Options{MaxRunning: 1, MaxCPU: 3 * time.Second, MaxWall: time.Minute})
	hostile := openWorker(t, s, fetcher(`for (;;) {}`))
	good := openWorker(t, s, fetcher(`return new Response('ok')`))
	const loops = 4
	ended := make(chan string, loops)
	for range loops {
		go func() {
			var res event.Response
			ended <- fault.NameOf(hostile.Serve(context.Background(), request(), &res))
		}()
	}
	for end := time.Now().Add(20 * time.Second); s.turns.taken() == 0 || s.turns.waiting.Load() < loops-1; {
		if time.Now().After(end) {
			t.Fatal("the loops do not run")
		}
	}
	for range 20 {
		if got := text(t, good); got != "ok" {
			t.Fatalf("got %q", got)
		}
	}
	if len(ended) > 0 {
		t.Error("a loop had ended before the others had their turn: the test shows nothing")
	}
	for range loops {
		if got := <-ended; got != "cpu_exceeded" {
			t.Errorf("a loop ended with %q", got)
		}
	}
}

// module-worker §3.1: when the client leaves, what runs for it ends within about a second even if it never looks at its signal.
func TestDesertedGuestIsStopped(t *testing.T) {
	s := newBox(t, Options{MaxRunning: 1, MaxCPU: time.Minute, MaxWall: time.Minute})
	hostile := openWorker(t, s, fetcher(`for (;;) {}`))
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		var res event.Response
		ended <- hostile.Serve(ctx, request(), &res)
	}()
	for end := time.Now().Add(20 * time.Second); s.turns.taken() == 0; {
		if time.Now().After(end) {
			t.Fatal("the loop does not run")
		}
	}
	leave()
	if err := <-ended; fault.CodeOf(err) != fault.Canceled {
		t.Errorf("ended with %v", err)
	}
	idle(t, hostile)
	good := openWorker(t, s, fetcher(`return new Response('ok')`))
	if got := text(t, good); got != "ok" {
		t.Errorf("got %q", got)
	}
}

// Whoever worked long waits for those who have not, but not for ever.
func TestTurnsPreferTheQuick(t *testing.T) {
	s, who := newTurns(1), new(queues)
	if !s.try() || s.try() {
		t.Fatal("there is one slot")
	}
	long, gone := s.line(who, false), s.line(who, true)
	var quick []*place
	for range 2 * quickInARow {
		quick = append(quick, s.line(who, true))
	}
	s.leave(gone)
	for i := range 2*quickInARow + 1 {
		s.give()
		want := long
		switch {
		case i < quickInARow:
			want = quick[i]
		case i > quickInARow:
			want = quick[i-1]
		}
		select {
		case <-want.ready:
		default:
			t.Fatalf("slot %d went to another", i)
		}
	}
	if s.give(); s.taken() != 0 || s.waiting.Load() != 0 {
		t.Errorf("%d slots are taken, %d wait", s.taken(), s.waiting.Load())
	}
	mine := s.line(who, true)
	if s.leave(mine); s.taken() != 0 {
		t.Error("the slot of a place that was left is lost")
	}
}

// Versions take turns: one with a hundred guests that wait does not keep another's from the next slot but one.
func TestTurnsAreFairBetweenVersions(t *testing.T) {
	s, crowd, other := newTurns(1), new(queues), new(queues)
	s.try()
	var many []*place
	for range 100 {
		many = append(many, s.line(crowd, true))
	}
	one := s.line(other, true)
	gone := s.line(other, true)
	s.give()
	<-many[0].ready
	s.give()
	select {
	case <-one.ready:
	default:
		t.Fatal("the other version waits behind the crowd")
	}
	s.leave(gone)
	for _, p := range many[1:] {
		s.give()
		<-p.ready
	}
	if s.give(); s.taken() != 0 || s.waiting.Load() != 0 || s.queues[0].Len() != 0 {
		t.Errorf("left behind: %d taken, %d wait, %d queues", s.taken(), s.waiting.Load(), s.queues[0].Len())
	}
}
