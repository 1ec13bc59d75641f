package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/testkit"
	"edged/router/table"
	"edged/sandbox/event"
)

// testGate knows workers by name: "tenant/worker", or "worker" of no tenant.
type testGate struct {
	*gate
	mu    sync.Mutex
	known map[string]*table.Party
}

func newGate(places, room int) *testGate {
	return newGateOf(Options{MaxInflight: places, MaxQueue: room, QueueTimeout: 10 * time.Second})
}

func newGateOf(o Options) *testGate {
	o, err := o.withDefaults()
	if err != nil {
		panic(err)
	}
	return &testGate{gate: &gate{gateLimits: o.gateLimits(), metrics: o.Metrics}, known: map[string]*table.Party{}}
}

func (g *testGate) party(name string) *table.Party {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[name] == nil {
		p := new(table.Party)
		if tenant, _, ok := strings.Cut(name, "/"); ok {
			if g.known[tenant] == nil {
				g.known[tenant] = new(table.Party)
			}
			p.Tenant = g.known[tenant]
		}
		g.known[name] = p
	}
	return g.known[name]
}

func (g *testGate) in(ctx context.Context, worker string) error { return g.enter(ctx, g.party(worker)) }

func (g *testGate) out(worker string) { g.leave(g.party(worker)) }

// checkEmpty checks that nobody is left behind in an idle gate.
func (g *testGate) checkEmpty(t *testing.T) {
	t.Helper()
	if g.busy.Load() != 0 || g.waiting.Load() != 0 || g.streams.Load() != 0 || len(g.lines.workers)+len(g.lines.tenants)+len(g.lines.turn) != 0 {
		t.Errorf("left behind: busy %d, waiting %d, streams %d, %d and %d queues, %d in line", g.busy.Load(), g.waiting.Load(), g.streams.Load(),
			len(g.lines.workers), len(g.lines.tenants), len(g.lines.turn))
	}
	for name, p := range g.known {
		if p.Held.Load() != 0 || p.Streams.Load() != 0 {
			t.Errorf("%s still holds %d places, %d streams", name, p.Held.Load(), p.Streams.Load())
		}
	}
}

// node-surface §2, --max-inflight, --max-queue: fair between workers. One worker's rush does not delay another's first.
func TestGateTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 100)
		if err := g.in(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		var order []string // written by one admitted waiter at a time
		var all sync.WaitGroup
		queue := func(worker string) {
			all.Go(func() {
				if err := g.in(t.Context(), worker); err != nil {
					t.Error(err)
					return
				}
				order = append(order, worker)
				g.out(worker)
			})
			synctest.Wait()
		}
		for range 4 {
			queue("a")
		}
		queue("b")
		queue("c")
		queue("b")
		g.out("busy")
		all.Wait()
		if got := fmt.Sprint(order); got != "[a b c a b a a]" {
			t.Errorf("order %s", got)
		}
		g.checkEmpty(t)
	})
}

// When all waiting room is taken the longest queue gives up its newest; its own further requests are refused at once.
func TestGateBoundsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 3)
		if err := g.in(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		results := make(chan string, 10)
		queue := func(name, worker string) {
			go func() { results <- fmt.Sprint(name, " ", g.in(t.Context(), worker)) }() // ends admitted or refused
			synctest.Wait()
		}
		queue("a1", "a")
		queue("a2", "a")
		queue("a3", "a")
		queue("a4", "a")
		if got := <-results; got != "a4 overloaded" {
			t.Errorf("got %q", got)
		}
		queue("b1", "b")
		if got := <-results; got != "a3 overloaded" {
			t.Errorf("got %q", got)
		}
		queue("b2", "b") // a has 2, b would have 2: nobody is better off
		if got := <-results; got != "b2 overloaded" {
			t.Errorf("got %q", got)
		}
		last := "x"
		for _, want := range []string{"a1 <nil>", "b1 <nil>", "a2 <nil>"} {
			g.out(last)
			if got := <-results; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			last = want[:1]
		}
		g.out(last)
		g.checkEmpty(t)
	})
}

// A waiter gives up after the timeout or with its client, and its place is not lost.
func TestGateWaitersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 3)
		if err := g.in(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if err := g.in(t.Context(), "a"); !errors.Is(err, event.ErrOverloaded) {
			t.Errorf("after the timeout: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := g.in(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("client gone: %v", err)
		}
		if g.waiting.Load() != 0 || len(g.lines.workers) != 0 || len(g.lines.tenants) != 0 || len(g.lines.turn) != 0 {
			t.Error("a waiter that gave up still stands in a queue")
		}
		g.out("x")
		if err := g.in(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		g.out("a")
		g.checkEmpty(t)
	})
}

// A place that is given to a waiter just as it gives up goes back.
func TestGatePlaceIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			g := newGate(1, 1)
			if err := g.in(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- g.in(ctx, "a") }() // ends below
			synctest.Wait()
			cancel()
			g.out("x")
			if err := <-result; err == nil {
				g.out("a")
			}
			if n := g.busy.Load(); n != 0 {
				t.Fatalf("%d places are lost", n)
			}
		}
	})
}

// Under any interleaving: never more than max at work, and nobody is forgotten.
func TestGateUnderLoad(t *testing.T) {
	rng := testkit.Rand(t)
	g := newGate(3, 8)
	var atWork, most, admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		seed := rng.Uint64()
		all.Go(func() {
			worker := fmt.Sprint(i % 5)
			for n := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if seed>>(n%64)&1 == 1 {
					context.AfterFunc(ctx, func() {})
					cancel() // gives up at once if it has to wait
				}
				if err := g.in(ctx, worker); err == nil {
					now := atWork.Add(1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					admitted.Add(1)
					atWork.Add(-1)
					g.out(worker)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if most.Load() > 3 || admitted.Load() == 0 {
		t.Errorf("%d at work at once, %d admitted", most.Load(), admitted.Load())
	}
	g.checkEmpty(t)
}

// node-surface §7: beyond both bounds 503, Retry-After; a streamed response keeps its place to its end.
func TestOverload(t *testing.T) {
	s := newSource()
	f := start(t, Options{MaxInflight: 1, MaxQueue: 1, QueueTimeout: 20 * time.Millisecond}, serving(streaming(s, -1)))
	first := f.dial(t)
	first.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	res := first.head("GET")
	over, _ := f.get(t, "/")
	checkError(t, over, 503, "overloaded")
	if over.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(s.pieces)
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	s.checkClosedOnce(t)
}
