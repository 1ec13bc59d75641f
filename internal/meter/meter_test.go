package meter

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/internal/fault"
)

func TestWorkersCapTheirLabels(t *testing.T) {
	made := 0
	w := NewWorkers(func(label string) string { made++; return label })
	for i := range 3 * MaxWorkers {
		name := fmt.Sprint("w", i)
		want := name
		if i >= MaxWorkers {
			want = Other
		}
		if got := w.Of(name); got != want {
			t.Fatalf("worker %d has the label %s, want %s", i, got, want)
		}
	}
	if got := w.Of("w0"); got != "w0" {
		t.Errorf("the first worker's label became %s", got)
	}
	if got := w.Of(Other); got != Other {
		t.Errorf("a worker called %s got %s", Other, got)
	}
	if made != MaxWorkers+1 {
		t.Errorf("%d labels were made", made)
	}
}

func TestByCodeCountsEveryOutcome(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := For(reg, "room").CounterByCode("calls_total", "Calls.")
	c.Count(nil)
	c.Count(context.Canceled)
	c.Count(fault.New(fault.Denied, "x", "y"))
	c.Count(fmt.Errorf("stranger"))
	for code, want := range map[string]float64{"ok": 1, "canceled": 1, "denied": 1, "internal": 1, "invalid": 0} {
		if got := testutil.ToFloat64(c.counters[index(code)]); got != want {
			t.Errorf("%s: got %v, want %v", code, got, want)
		}
	}
	if n, err := testutil.GatherAndCount(reg, "edged_room_calls_total"); err != nil || n != len(fault.Codes())+1 {
		t.Errorf("got %d series, %v", n, err)
	}
}

func index(code string) fault.Code {
	for _, c := range fault.Codes() {
		if c.String() == code {
			return c
		}
	}
	return 0
}

// A nil Registerer is allowed: metrics count into the void.
func TestFactoryWithoutRegistry(t *testing.T) {
	f := For(nil, "room")
	f.Counter("x_total", "X.").Inc()
	f.Histogram("y_seconds", "Y.").Observe(1)
	f.CounterBy("z_total", "Z.", "kind", "a")["a"].Inc()
}

// BenchmarkObserve is what one observation costs in either form, from all cores at once.
func BenchmarkObserve(b *testing.B) {
	f := For(nil, "room")
	for name, h := range map[string]prometheus.Histogram{"form=classic": f.Histogram("x_seconds", "X."), "form=native": f.NativeHistogram("y_seconds", "Y.")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 1; pb.Next(); i++ {
					h.Observe(float64(i%1000) * 1e-5)
				}
			})
		})
	}
}
