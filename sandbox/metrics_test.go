package sandbox

import (
	"fmt"
	"testing"

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
