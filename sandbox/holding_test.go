package sandbox

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

	"edged/sandbox/event"
)

// Holding tells what a drain waits for: invocations by version, and which of them go on after their response head, also in a version that
// was retired meanwhile; and nothing once they have ended.
func TestHolding(t *testing.T) {
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{UID: "v1", Worker: "w1", Graph: graphOf(fetcher(`
		const body = request.body.getReader();
		const first = await body.read();
		return new Response(new ReadableStream({ async pull(c) { const { done, value } = await body.read(); if (done) c.close(); else c.enqueue(value) } }))`))})
	openWorker(t, s, fetcher(`return new Response('')`)) // nothing is at work in it
	if h := s.Holding(); len(h) != 0 {
		t.Errorf("at rest: %+v", h)
	}
	before := time.Now()
	bodies, heads := make([]*testBody, 2), make(chan *event.Response, 2)
	for i := range bodies {
		body := newBody()
		bodies[i] = body
		go func() {
			var res event.Response
			if err := v.Serve(context.Background(), post(body, -1), &res); err != nil {
				t.Error(err)
			}
			heads <- &res
		}()
		body.awaitRead()
	}
	holds := func(when string, active, tails int) {
		t.Helper()
		h := s.Holding()
		if len(h) != 1 || h[0].Version != "v1" || h[0].Worker != "w1" || h[0].Active != active || h[0].Tails != tails {
			t.Fatalf("%s: %+v", when, h)
		}
		if at := h[0].OldestTail; at.IsZero() != (tails == 0) || tails > 0 && (at.Before(before) || at.After(time.Now())) {
			t.Errorf("%s: the oldest tail is of %v", when, at)
		}
	}
	holds("before a head", 2, 0)
	bodies[0].push("x")
	first := <-heads
	holds("one answers", 2, 1)
	since := s.Holding()[0].OldestTail
	bodies[1].push("x")
	second := <-heads
	holds("both answer", 2, 2)
	if at := s.Holding()[0].OldestTail; !at.Equal(since) {
		t.Errorf("the oldest tail is of %v, then of %v", since, at)
	}
	retired := make(chan error, 1)
	go func() { retired <- v.Retire(context.Background()) }()
	for i, res := range []*event.Response{first, second} {
		holds("a retired version", 2-i, 2-i)
		bodies[i].end(nil)
		if b, err := io.ReadAll(res.Stream); len(b) != 0 || err != nil {
			t.Errorf("the stream is %q, %v", b, err)
		}
		res.Stream.Close()
		for end := time.Now().Add(20 * time.Second); i == 0 && s.Holding()[0].Active > 1; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal("an invocation whose stream was read to its end does not end")
			}
		}
	}
	if err := <-retired; err != nil {
		t.Error(err)
	}
	if h := s.Holding(); len(h) != 0 {
		t.Errorf("at the end: %+v", h)
	}
}
