package cron

import (
	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics counts what the room does. Safe for concurrent use.
type Metrics struct {
	matches map[string]prometheus.Counter
	runs    map[string]prometheus.Counter
	open    prometheus.Gauge
	record  prometheus.Histogram
	seconds prometheus.Histogram
	panics  prometheus.Counter
}

// NewMetrics makes the metrics and registers them; a nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "cron")
	return &Metrics{
		matches: f.CounterBy("matches_total", "Matched minutes of triggers, by what became of them.", "as", "recorded", "overlapped", "unrecorded"),
		runs:    f.CounterBy("runs_total", "Calls of a handler by outcome.", "outcome", "returned", "failed", "owed"),
		open:    f.Gauge("open_runs", "Matches that are recorded and not over."),
		record:  f.Histogram("record_seconds", "Time from the start of a minute to its durable record."),
		seconds: f.Histogram("run_seconds", "Time a handler took."),
		panics:  f.Counter("panics_total", "Bugs caught at the boundary of a run."),
	}
}
