package sandbox

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/fault"
	"edged/internal/meter"
	"edged/internal/trace"
	"edged/sandbox/event"
)

// Metrics counts what the room does. One Sandbox per Metrics.
type Metrics struct {
	workers     *meter.Workers[*workerMetrics]
	duration    prometheus.Histogram
	origins     [3]prometheus.Counter
	resets      prometheus.Counter
	pages       prometheus.Counter
	panics      prometheus.Counter
	bodyIn      prometheus.Counter
	bodyOut     prometheus.Counter
	bodySpliced prometheus.Counter
	logDropped  prometheus.Counter
	builds      map[string]prometheus.Counter
	buildTime   prometheus.Histogram

	box     atomic.Pointer[Sandbox] // read by the gauges
	pollGap atomic.Int64            // nanoseconds, the largest seen
}

// workerMetrics is what is counted of one worker.
type workerMetrics struct {
	outcomes map[string]prometheus.Counter
	ok       prometheus.Counter
	other    prometheus.Counter
	cpu      prometheus.Counter
	wall     prometheus.Counter

	sampled, interpreter prometheus.Counter
}

// The outcomes of an invocation that have a name of their own.
var outcomeNames = []*fault.Named{event.ErrWorker, event.ErrCPU, event.ErrWall, event.ErrMemory,
	event.ErrNotServing, event.ErrOverloaded, event.ErrDraining}

const (
	outcomeOK    = "ok"
	outcomeLeft  = "client_left"
	outcomeOther = "internal"

	buildMade   = "made"   // evaluated
	buildStored = "stored" // read from the image store
	buildFailed = "failed"
)

// NewMetrics registers the room's metrics with reg; nil registers nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "sandbox")
	names := []string{outcomeOK, outcomeLeft, outcomeOther}
	for _, n := range outcomeNames {
		names = append(names, n.Error())
	}
	m := &Metrics{
		duration:    f.Histogram("head_seconds", "From taking an invocation to its response head."),
		resets:      f.Counter("resets_total", "Sandboxes brought back to their image."),
		pages:       f.Counter("reset_pages_total", "Pages that resets restored."),
		panics:      f.Counter("panics_total", "Bugs of this program that ended one invocation."),
		bodyIn:      f.Counter("body_in_bytes_total", "Bytes of bodies that were copied into guests."),
		bodyOut:     f.Counter("body_out_bytes_total", "Bytes of bodies that were copied out of guests to where they sent them."),
		bodySpliced: f.Counter("body_spliced_bytes_total", "Bytes of bodies that guests forwarded without touching them."),
		logDropped:  f.Counter("log_dropped_total", "Log entries of workers that were over their rate."),
		builds:      f.CounterBy("images_total", "Images by where they came from.", "source", buildMade, buildStored, buildFailed),
		buildTime:   f.Histogram("image_build_seconds", "From a version's modules to its image."),
	}
	outcomes := f.CounterVec("invocations_total", "Invocations by how they ended.", "worker", "outcome")
	cpu := f.CounterVec("cpu_seconds_total", "Active time of guests.", "worker")
	wall := f.CounterVec("wall_seconds_total", "Sum of the times from taking an invocation to its response head or its handler's end.", "worker")
	sampled := f.CounterVec("sampled_seconds_total", "Active time of guests, as far as they looked whether they must stop.", "worker")
	interpreter := f.CounterVec("interpreter_seconds_total", "Of the sampled time, what ended in the bytecode interpreter.", "worker")
	m.workers = meter.NewWorkers(func(label string) *workerMetrics {
		w := &workerMetrics{outcomes: make(map[string]prometheus.Counter, len(names)), cpu: cpu.WithLabelValues(label), wall: wall.WithLabelValues(label),
			sampled: sampled.WithLabelValues(label), interpreter: interpreter.WithLabelValues(label)}
		for _, n := range names {
			w.outcomes[n] = outcomes.WithLabelValues(label, n)
		}
		w.ok, w.other = w.outcomes[outcomeOK], w.outcomes[outcomeOther]
		return w
	})
	by := f.CounterBy("acquired_total", "Invocations by where their sandbox came from.", "origin",
		event.Cold.String(), event.Warm.String(), event.Hot.String())
	for _, o := range []event.Origin{event.Cold, event.Warm, event.Hot} {
		m.origins[o] = by[o.String()]
	}
	f.GaugeFunc("running", "Guests that run now.", func() float64 { running, _ := m.turns(); return float64(running) })
	f.GaugeFunc("waiting", "Guests and invocations that wait to run.", func() float64 { _, waiting := m.turns(); return float64(waiting) })
	f.GaugeFunc("instances", "Sandboxes that exist.", func() float64 { live, _ := m.instances(); return float64(live) })
	f.GaugeFunc("instances_spare", "Sandboxes without a version.", func() float64 { _, spare := m.instances(); return float64(spare) })
	f.GaugeFunc("versions", "Versions that are open, each with one image.", func() float64 {
		if s := m.box.Load(); s != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(len(s.versions))
		}
		return 0
	})
	f.GaugeFunc("poll_gap_seconds", "Longest time so far in which a guest could not be stopped.", func() float64 {
		return time.Duration(m.pollGap.Load()).Seconds()
	})
	return m
}

func (m *Metrics) observe(s *Sandbox) { m.box.Store(s) }

func (m *Metrics) instances() (live, spare int) {
	if s := m.box.Load(); s != nil {
		return s.Instances()
	}
	return 0, 0
}

func (m *Metrics) turns() (running, waiting int) {
	if s := m.box.Load(); s != nil {
		return s.turns.taken(), int(s.turns.waiting.Load())
	}
	return 0, 0
}

// served counts one invocation, whose cause may be traced.
func (v *Version) served(start time.Time, cause *trace.Span, err error) {
	took, w := time.Since(start), v.counts
	trace.Observe(v.box.opt.Metrics.duration, took, cause)
	w.wall.Add(took.Seconds())
	switch {
	case err == nil:
		w.ok.Inc()
	case fault.CodeOf(err) == fault.Canceled:
		w.outcomes[outcomeLeft].Inc()
	default:
		if c, ok := w.outcomes[fault.NameOf(err)]; ok {
			c.Inc()
		} else {
			w.other.Inc()
		}
	}
}

// gap keeps the largest poll gap.
func (m *Metrics) gap(d time.Duration) {
	for {
		was := m.pollGap.Load()
		if int64(d) <= was || m.pollGap.CompareAndSwap(was, int64(d)) {
			return
		}
	}
}
