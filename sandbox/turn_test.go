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
	for end := time.Now().Add(20 * time.Second); len(s.slots) == 0 || s.waiting.Load() < loops-1; {
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
