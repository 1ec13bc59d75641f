// Package meter holds what the metrics of all rooms share: bucket layouts, counters by error code, and a label for
// workers that cannot grow without bound.
//
//	meter.go    Factory: counters, gauges and histograms with the house's names
//	workers.go  Workers: what is kept per worker, under a capped label
//
// Invariants: no default registry; every label value comes from a closed set.
//
// Not here: which metrics exist. Each room has its own NewMetrics.
package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/fault"
)

// Seconds are the buckets of every duration, from 50 us to 30 s.
var Seconds = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// Factory makes the metrics of one room and registers them. A Factory over a nil Registerer makes working metrics that
// nobody reads, which is what a nil Metrics option means.
type Factory struct {
	reg  prometheus.Registerer
	room string
}

// For returns the factory of a room; names become edged_<room>_<name>.
func For(reg prometheus.Registerer, room string) Factory { return Factory{reg: reg, room: room} }

func add[T prometheus.Collector](f Factory, c T) T {
	if f.reg != nil {
		f.reg.MustRegister(c)
	}
	return c
}

func (f Factory) opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: "edged", Subsystem: f.room, Name: name, Help: help}
}

// Counter makes a counter. Its name ends in _total.
func (f Factory) Counter(name, help string) prometheus.Counter {
	return add(f, prometheus.NewCounter(prometheus.CounterOpts(f.opts(name, help))))
}

// Gauge makes a gauge.
func (f Factory) Gauge(name, help string) prometheus.Gauge {
	return add(f, prometheus.NewGauge(prometheus.GaugeOpts(f.opts(name, help))))
}

// GaugeFunc makes a gauge that is read when scraped. fn must be safe for concurrent use.
func (f Factory) GaugeFunc(name, help string, fn func() float64) {
	add(f, prometheus.NewGaugeFunc(prometheus.GaugeOpts(f.opts(name, help)), fn))
}

// Info makes a gauge that is always 1 and says something in its label.
func (f Factory) Info(name, help, label, value string) {
	o := f.opts(name, help)
	o.ConstLabels = prometheus.Labels{label: value}
	add(f, prometheus.NewGauge(prometheus.GaugeOpts(o))).Set(1)
}

// Histogram makes a histogram of durations in seconds.
func (f Factory) Histogram(name, help string) prometheus.Histogram {
	return add(f, prometheus.NewHistogram(f.seconds(name, help)))
}

func (f Factory) seconds(name, help string) prometheus.HistogramOpts {
	o := f.opts(name, help)
	return prometheus.HistogramOpts{Namespace: o.Namespace, Subsystem: o.Subsystem, Name: o.Name, Help: o.Help, Buckets: Seconds}
}

// The native form of a histogram: each bucket is at most a tenth wider than the one before, so that a quantile is within 5 %; at most 160
// of them, the finest kept for an hour.
const (
	nativeFactor  = 1.1
	nativeBuckets = 160
	nativeKept    = time.Hour
)

// NativeHistogram makes a histogram that has the shared buckets and a native form beside them, which a scraper gets that asks for
// protobuf. It is for the few durations whose tails are looked at: an observation costs about 100 ns more.
func (f Factory) NativeHistogram(name, help string) prometheus.Histogram {
	o := f.seconds(name, help)
	o.NativeHistogramBucketFactor, o.NativeHistogramMaxBucketNumber, o.NativeHistogramMinResetDuration = nativeFactor, nativeBuckets, nativeKept
	return add(f, prometheus.NewHistogram(o))
}

// CounterBy makes one counter per value of a closed set and returns them by value, so that no label is looked up later.
func (f Factory) CounterBy(name, help, label string, values ...string) map[string]prometheus.Counter {
	vec := f.CounterVec(name, help, label)
	out := make(map[string]prometheus.Counter, len(values))
	for _, v := range values {
		out[v] = vec.WithLabelValues(v)
	}
	return out
}

// CounterVec makes a counter with several labels. The caller keeps their values in closed sets, and holds on to the counters.
func (f Factory) CounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return add(f, prometheus.NewCounterVec(prometheus.CounterOpts(f.opts(name, help)), labels))
}

// GaugeVec makes a gauge with several labels, as CounterVec does a counter.
func (f Factory) GaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(f, prometheus.NewGaugeVec(prometheus.GaugeOpts(f.opts(name, help)), labels))
}

// ByCode counts outcomes by fault code. Safe for concurrent use.
type ByCode struct{ counters []prometheus.Counter }

// CounterByCode makes a counter with the label code: "ok" and every fault code.
func (f Factory) CounterByCode(name, help string) ByCode {
	vec := f.CounterVec(name, help, "code")
	out := ByCode{counters: []prometheus.Counter{vec.WithLabelValues(fault.Code(0).String())}}
	for _, c := range fault.Codes() {
		out.counters = append(out.counters, vec.WithLabelValues(c.String()))
	}
	return out
}

// Count counts one outcome; nil counts as ok.
func (b ByCode) Count(err error) { b.counters[fault.CodeOf(err)].Inc() }
