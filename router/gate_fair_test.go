package router

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/sandbox/event"
)

// Tenants take turns, and the workers of one do: many workers are no way to more.
func TestGateTenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 100)
		if err := g.in(t.Context(), "x/x"); err != nil {
			t.Fatal(err)
		}
		var order []string // written by one admitted waiter at a time
		var all sync.WaitGroup
		for _, worker := range []string{"a/1", "a/2", "a/3", "a/1", "b/1", "b/1"} {
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
		g.out("x/x")
		all.Wait()
		if got := strings.Join(order, " "); got != "a/1 b/1 a/2 b/1 a/3 a/1" {
			t.Errorf("order %s", got)
		}
		g.checkEmpty(t)
	})
}

// A worker, and a tenant, that hold all they may wait for their own places; others pass them.
func TestGateKeepsPlacesForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateOf(Options{MaxInflight: 4, MaxWorkerInflight: 2, MaxTenantInflight: 3, MaxQueue: 40})
		admitted := make(chan string, 20)
		enter := func(worker string) {
			go func() { // ends admitted
				if err := g.in(t.Context(), worker); err != nil {
					worker += " " + err.Error()
				}
				admitted <- worker
			}()
			synctest.Wait()
		}
		for _, worker := range []string{"a/1", "a/1", "a/1", "a/2", "a/2", "b/1"} {
			enter(worker)
		}
		got := func() (all string) {
			synctest.Wait()
			for len(admitted) > 0 {
				all += <-admitted + " "
			}
			return all
		}
		if s := got(); s != "a/1 a/1 a/2 b/1 " {
			t.Fatalf("admitted %s", s)
		}
		g.out("b/1") // a free place, and two that wait may not have it
		if s := got(); s != "" || g.busy.Load() != 3 {
			t.Fatalf("admitted %q over the tenant's cap", s)
		}
		enter("b/2")
		if s := got(); s != "b/2 " {
			t.Fatalf("b/2 has to wait behind those that may not have the place: %q", s)
		}
		g.out("a/1")
		if s := got(); s != "a/1 " && s != "a/2 " {
			t.Fatalf("admitted %q after one of the tenant ended", s)
		}
		g.out("a/1")
		if s := got(); s != "a/1 " && s != "a/2 " {
			t.Fatalf("admitted %q after another ended", s)
		}
		for _, worker := range []string{"a/1", "a/2", "a/2", "b/2"} {
			g.out(worker)
		}
		g.checkEmpty(t)
	})
}

// A worker waits in its share of the waiting room only.
func TestGateSharesTheWaitingRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateOf(Options{MaxInflight: 4, MaxWorkerInflight: 2, MaxTenantInflight: 3, MaxQueue: 8})
		for range 2 {
			if err := g.in(t.Context(), "a/1"); err != nil {
				t.Fatal(err)
			}
		}
		results := make(chan error, 20)
		wait := func(worker string, n int) (refused int) {
			for range n {
				go func() { results <- g.in(t.Context(), worker) }() // ends refused, or after the timeout
				synctest.Wait()
			}
			for ; len(results) > 0; refused++ {
				if err := <-results; !errors.Is(err, event.ErrOverloaded) {
					t.Errorf("%s: %v", worker, err)
				}
			}
			return refused
		}
		if n := wait("a/1", 6); n != 2 {
			t.Errorf("%d of 6 are refused, want 2: half of the room is the worker's", n)
		}
		if err := g.in(t.Context(), "b/1"); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		synctest.Wait()
		time.Sleep(time.Minute) // the four time out
		for range 4 {
			if err := <-results; !errors.Is(err, event.ErrOverloaded) {
				t.Errorf("after the timeout: %v", err)
			}
		}
		g.out("a/1")
		g.out("a/1")
		g.out("b/1")
		g.checkEmpty(t)
	})
}

// With the waiting room full a tenant of many workers makes room, each of whose queues is short.
func TestGateEvictsTheTenantWithMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 4)
		if err := g.in(t.Context(), "x/x"); err != nil {
			t.Fatal(err)
		}
		results := make(chan string, 10)
		for _, worker := range []string{"a/1", "a/2", "a/3", "a/4", "b/1"} {
			go func() { results <- fmt.Sprint(worker[:1], " ", g.in(t.Context(), worker)) }() // ends below
			synctest.Wait()
		}
		if len(results) != 1 || <-results != "a overloaded" {
			t.Error("no worker of the tenant with most made room")
		}
		time.Sleep(time.Minute)
		g.out("x/x")
		g.checkEmpty(t)
	})
}

// A queue that stands is kept short: who would wait long is refused at once, and its own newest with them. A burst may wait.
func TestGateRefusesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateOf(Options{MaxInflight: 1, MaxQueue: 1000, QueueTimeout: 5 * time.Second})
		if err := g.in(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var served, refused []time.Duration // what each waited; guarded by mu
		var mu sync.Mutex
		var all sync.WaitGroup
		ask := func() {
			all.Go(func() {
				began := time.Now()
				err := g.in(t.Context(), "a")
				mu.Lock()
				defer mu.Unlock()
				if took := time.Since(began); err != nil {
					refused = append(refused, took)
				} else {
					served = append(served, took)
					time.AfterFunc(10*time.Millisecond, func() { g.out("a") }) // 100 a second
				}
			})
		}
		for range 100 { // a burst, of which the last waits a second
			ask()
		}
		synctest.Wait()
		g.out("a")
		all.Wait()
		if len(served) != 100 || len(refused) != 0 {
			t.Fatalf("of a burst %d were served, %d refused", len(served), len(refused))
		}
		served = nil
		time.Sleep(time.Second)
		const offered, rate = 5000, 500 // for ten seconds, five times what fits
		for range offered {
			ask()
			time.Sleep(time.Second / rate)
		}
		all.Wait()
		time.Sleep(time.Second)
		late, slow := 0, 0
		for _, d := range refused {
			if d > 0 {
				late++
			}
		}
		for _, d := range served {
			if d > 300*time.Millisecond {
				slow++
			}
		}
		if len(served) < 990 || len(served) > 1100 {
			t.Errorf("%d served in ten seconds by 100 a second", len(served))
		}
		if late > len(refused)/20 || slow > len(served)/10 {
			t.Errorf("%d of %d refused after waiting, %d of %d served waited for more than 300 ms", late, len(refused), slow, len(served))
		}
		g.checkEmpty(t)
	})
}

// While the gate is shut nobody new comes in, and who waits goes on.
func TestGateShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10)
		if err := g.in(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		go func() { result <- g.in(t.Context(), "a") }() // ends admitted
		synctest.Wait()
		g.setShut(true)
		if err := g.in(t.Context(), "b"); !errors.Is(err, event.ErrOverloaded) {
			t.Errorf("a new one: %v", err)
		}
		g.out("a")
		if err := <-result; err != nil {
			t.Errorf("one that waited: %v", err)
		}
		time.Sleep(10 * time.Second)
		if s := g.retryAfter(g.party("b")); s < 5 || s > 10 {
			t.Errorf("Retry-After %d after ten seconds", s)
		}
		g.out("a")
		g.setShut(false)
		if err := g.in(t.Context(), "b"); err != nil {
			t.Errorf("open again: %v", err)
		}
		g.out("b")
		g.checkEmpty(t)
	})
}

// What a client is told to wait grows with the overload, within bounds, and differs.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateOf(Options{MaxInflight: 1, MaxQueue: 10, QueueTimeout: time.Hour})
		if err := g.in(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		go func() { _ = g.in(t.Context(), "a") }() // ends admitted
		for _, tt := range []struct {
			after     time.Duration
			low, high int
		}{{0, 1, 2}, {10 * time.Second, 5, 10}, {10 * time.Minute, longestRetry, 2 * longestRetry}} {
			time.Sleep(tt.after)
			seen := map[int]bool{}
			for range 100 {
				s := g.retryAfter(g.party("a"))
				if seen[s] = true; s < tt.low || s > tt.high {
					t.Errorf("%d s after %v more, want %d to %d", s, tt.after, tt.low, tt.high)
				}
			}
			if len(seen) < 2 {
				t.Error("all clients are told the same")
			}
		}
		g.out("a")
		synctest.Wait()
		g.out("a")
	})
}

// A stream that lasts gives its place back, and has a bound of its own; over it, it keeps its place.
func TestLongStreamsHoldNoPlace(t *testing.T) {
	s := newSource()
	v := serving(streaming(s, -1))
	reg := prometheus.NewRegistry()
	f := start(t, Options{MaxInflight: 1, MaxQueue: 1, MaxStreams: 1, QueueTimeout: patience, Metrics: NewMetrics(reg)}, v)
	first := f.dial(t)
	first.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	res := first.head("GET")
	publish(t, f.Router, serving(hello))
	second, _ := f.get(t, "/") // waits for the second after which the stream has given its place back
	if second.StatusCode != http.StatusOK {
		t.Errorf("beside a long stream: %d", second.StatusCode)
	}
	if n := f.gate.streams.Load(); n != 1 {
		t.Errorf("%d long streams", n)
	}
	until(t, "the second gave its place back", func() bool { return f.gate.busy.Load() == 0 })
	checkInflight(t, reg, 1) // the stream
	close(s.pieces)
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	s.checkClosedOnce(t)
	first.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n") // on the same connection: the stream's end was counted before
	if res, body := first.response("GET"); res.StatusCode != http.StatusOK || body != "hello" {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	// The client has its answer a moment before the place is given back.
	until(t, "no stream and no place left behind", func() bool { return f.gate.streams.Load() == 0 && f.gate.busy.Load() == 0 })
}

// The bound of long streams, a worker's and a tenant's share of it.
func TestLongStreamsAreBounded(t *testing.T) {
	g := newGateOf(Options{MaxInflight: 8, MaxWorkerInflight: 4, MaxTenantInflight: 6, MaxStreams: 4})
	for _, step := range []struct {
		worker string
		want   bool
	}{{"a/1", true}, {"a/1", true}, {"a/1", false}, {"a/2", true}, {"a/2", false}, {"b/1", true}, {"b/1", false}} {
		if err := g.in(t.Context(), step.worker); err != nil {
			t.Fatal(err)
		}
		if got := g.detach(g.party(step.worker)); got != step.want {
			t.Errorf("%s: %t", step.worker, got)
		} else if !got {
			g.out(step.worker)
		}
	}
	for _, worker := range []string{"a/1", "a/1", "a/2", "b/1"} {
		g.endStream(g.party(worker))
	}
	g.checkEmpty(t)
}

func TestPace(t *testing.T) {
	start := time.Unix(0, 0)
	p := newPace(start)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	if d := p.wait(at(70), 5); d != 70*time.Millisecond {
		t.Errorf("before the first: %v", d)
	}
	for ms := 10; ms <= 200; ms += 10 {
		p.admitted(at(ms))
	}
	if d := p.wait(at(200), 9); d != 100*time.Millisecond {
		t.Errorf("ten at 10 ms each: %v", d)
	}
	if d := p.wait(at(1040), 9); d < 400*time.Millisecond {
		t.Errorf("nobody was admitted for 840 ms: %v", d)
	}
	for burst := 1; burst <= 20; burst++ { // ten at once, every 100 ms
		for range 10 {
			p.admitted(at(200 + 100*burst))
		}
	}
	if d := p.wait(at(2250), 9); d < 90*time.Millisecond || d > 120*time.Millisecond {
		t.Errorf("between bursts of ten: %v", d)
	}
	if p.took > 2*paceMemory {
		t.Errorf("remembers %v", p.took)
	}
	if d := p.limit(at(499), 5*time.Second); d != 5*time.Second {
		t.Errorf("a burst may wait %v", d)
	}
	if d := p.limit(at(500), 5*time.Second); d != 250*time.Millisecond {
		t.Errorf("a queue that stands may take %v", d)
	}
}
