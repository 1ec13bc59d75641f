package sandbox

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/internal/meter"
	"edged/sandbox/event"
)

// node-surface §5: workers are told apart by a capped label. All versions of a worker count into its series; beyond the cap all
// workers share one, however many there are.
func TestInvocationsAreCountedPerWorker(t *testing.T) {
	m := NewMetrics(nil)
	s := newBox(t, Options{Metrics: m})
	serve := func(v *Version, want string) {
		t.Helper()
		var res event.Response
		if err := v.Serve(t.Context(), request(), &res); (err == nil) != (want == outcomeOK) {
			t.Fatalf("%s: %v", v.spec.Worker, err)
		}
	}
	open := func(worker, body string) *Version {
		return openVersion(t, s, Spec{Worker: worker, Graph: graphOf(fetcher(body))})
	}
	const ok, throws = `return new Response('x')`, `throw new Error('x')`
	serve(open("a", ok), outcomeOK)
	serve(open("a", throws), event.ErrWorker.Error())
	serve(open("b", ok), outcomeOK)
	for i := range meter.MaxWorkers {
		m.workers.Of(fmt.Sprint("w", i))
	}
	serve(open("late", ok), outcomeOK)
	serve(open("later", throws), event.ErrWorker.Error())
	for worker, want := range map[string][2]float64{"a": {1, 1}, "b": {1, 0}, meter.Other: {1, 1}, "w0": {0, 0}} {
		w := m.workers.Of(worker)
		if got := [2]float64{testutil.ToFloat64(w.ok), testutil.ToFloat64(w.outcomes[event.ErrWorker.Error()])}; got != want {
			t.Errorf("%s: ok and failed are %v, want %v", worker, got, want)
		}
		busy := want != [2]float64{}
		if cpu, wall := testutil.ToFloat64(w.cpu), testutil.ToFloat64(w.wall); (cpu > 0) != busy || (wall > 0) != busy {
			t.Errorf("%s: %v s of CPU in %v s", worker, cpu, wall)
		}
	}
}

// The share of the interpreter in a worker's time is a metric of the worker: what decides whether a compiler would help it.
func TestInterpreterShare(t *testing.T) {
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		m := NewMetrics(prometheus.NewRegistry())
		s := newBox(t, Options{Isolation: isolation, Metrics: m})
		for _, c := range []struct {
			worker, body string
			least, most  float64
		}{
			{"scripts", `let n = 0; for (let i = 0; i < 2e6; i++) n += i; return new Response(String(n))`, 0.8, 1},
			{"built-ins", `return new Response(String(('a'.repeat(2e5) + 'b').indexOf('a'.repeat(100) + 'c')))`, 0, 0.2},
		} {
			v := openVersion(t, s, Spec{UID: c.worker, Worker: c.worker, Graph: graphOf(fetcher(c.body))})
			var before float64
			for range 2 { // each invocation adds to it
				text(t, v)
				if err := v.Retire(t.Context()); err != nil { // its invocations have ended
					t.Fatal(err)
				}
				sampled, interpreter := counted(t, m.workers.Of(c.worker).sampled), counted(t, m.workers.Of(c.worker).interpreter)
				if sampled <= before || interpreter < c.least*sampled || interpreter > c.most*sampled {
					t.Errorf("isolation %v, %s: %v of %v s, want %v to %v of it", isolation, c.worker, interpreter, sampled, c.least, c.most)
				}
				before = sampled
				v = openVersion(t, s, Spec{Worker: c.worker, Graph: graphOf(fetcher(c.body))})
			}
		}
		if n := counted(t, m.workers.Of("idle").sampled); n != 0 {
			t.Errorf("a worker that never ran has %v s", n)
		}
	}
}
