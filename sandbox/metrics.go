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
	shed        prometheus.Counter
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

	queue     prometheus.Counter
	in, out   prometheus.Counter
	waits     map[string]*waitMetrics // by kind of binding, and kindOutbound
	near      map[string]prometheus.Counter
	peak      prometheus.Gauge
	peakBytes atomic.Int64 // what peak shows
}

// waitMetrics is what is counted of a worker's host calls of one kind.
type waitMetrics struct{ calls, seconds prometheus.Counter }

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

// The values of the label kind of host calls: the doors of bindings, both sorts of buckets as one, and fetch to the outside.
const (
	kindBucket   = "bucket"
	kindOutbound = "fetch"
)

var waitKinds = []string{"kv", "sql", "queue", "service", kindBucket, kindOutbound}

// waitKind is the label of a binding.Kind.
func waitKind(kind string) string {
	if kind == "bucket2" || kind == "bucket3" {
		return kindBucket
	}
	return kind
}

// The limits that an invocation can come near, as label values, and how near: a fifth or less is left.
const (
	limitCPU    = "cpu"
	limitWall   = "wall"
	limitMemory = "memory"
	nearParts   = 5
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
		shed:        f.Counter("shed_total", "Sandboxes without work that were closed because memory was short."),
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
	queue := f.CounterVec("queue_seconds_total", "Time that invocations waited for their turn to run.", "worker")
	in := f.CounterVec("request_body_bytes_total", "Bytes of request bodies that workers took or passed on.", "worker")
	out := f.CounterVec("response_body_bytes_total", "Bytes of response bodies that workers gave.", "worker")
	calls := f.CounterVec("host_calls_total", "Host calls by kind of binding.", "worker", "kind")
	seconds := f.CounterVec("host_call_seconds_total", "Sum of the times of host calls by kind of binding.", "worker", "kind")
	near := f.CounterVec("near_limit_total", "Invocations that left a fifth of a limit or less.", "worker", "limit")
	peak := f.GaugeVec("memory_peak_bytes", "Most memory that an invocation has written since the start.", "worker")
	m.workers = meter.NewWorkers(func(label string) *workerMetrics {
		w := &workerMetrics{outcomes: make(map[string]prometheus.Counter, len(names)), cpu: cpu.WithLabelValues(label), wall: wall.WithLabelValues(label),
			sampled: sampled.WithLabelValues(label), interpreter: interpreter.WithLabelValues(label)}
		for _, n := range names {
			w.outcomes[n] = outcomes.WithLabelValues(label, n)
		}
		w.ok, w.other = w.outcomes[outcomeOK], w.outcomes[outcomeOther]
		w.queue, w.in, w.out, w.peak = queue.WithLabelValues(label), in.WithLabelValues(label), out.WithLabelValues(label), peak.WithLabelValues(label)
		w.waits = make(map[string]*waitMetrics, len(waitKinds))
		for _, kind := range waitKinds {
			w.waits[kind] = &waitMetrics{calls.WithLabelValues(label, kind), seconds.WithLabelValues(label, kind)}
		}
		w.near = make(map[string]prometheus.Counter, 3)
		for _, limit := range []string{limitCPU, limitWall, limitMemory} {
			w.near[limit] = near.WithLabelValues(label, limit)
		}
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

// served counts one invocation that has come to its head or settlement, whose cause may be traced.
func (v *Version) served(took time.Duration, cause *trace.Span, err error) {
	w := v.counts
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

// account counts what an invocation that is over has cost. What it did not use costs nothing here.
func (w *workerMetrics) account(t *tally, v *Version) {
	w.cpu.Add(t.cpu.Seconds())
	if t.queued > 0 {
		w.queue.Add(t.queued.Seconds())
	}
	if t.in > 0 {
		w.in.Add(float64(t.in))
	}
	if t.out > 0 {
		w.out.Add(float64(t.out))
	}
	for i, wait := range t.waits {
		if wait.Calls > 0 {
			v.waits[i].calls.Add(float64(wait.Calls))
			v.waits[i].seconds.Add(wait.Time.Seconds())
		}
	}
	opt := &v.box.opt
	if opt.MaxCPU-t.cpu <= opt.MaxCPU/nearParts {
		w.near[limitCPU].Inc()
	}
	if t.wallLeft <= t.limit/nearParts {
		w.near[limitWall].Inc()
	}
	if v.free-t.memory <= v.free/nearParts {
		w.near[limitMemory].Inc()
	}
	for {
		was := w.peakBytes.Load()
		if t.memory <= was {
			return
		}
		if w.peakBytes.CompareAndSwap(was, t.memory) {
			w.peak.Set(float64(t.memory)) // two at once may leave the smaller, until the next larger comes
			return
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
