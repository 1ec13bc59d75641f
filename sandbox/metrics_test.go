package sandbox

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

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
				sampled, interpreter := counted(t, m.sampled(c.worker)), counted(t, m.interpreter(c.worker))
				if sampled <= before || interpreter < c.least*sampled || interpreter > c.most*sampled {
					t.Errorf("isolation %v, %s: %v of %v s, want %v to %v of it", isolation, c.worker, interpreter, sampled, c.least, c.most)
				}
				before = sampled
				v = openVersion(t, s, Spec{Worker: c.worker, Graph: graphOf(fetcher(c.body))})
			}
		}
		if n := counted(t, m.sampled("idle")); n != 0 {
			t.Errorf("a worker that never ran has %v s", n)
		}
	}
}
