package feed

import (
	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics are the feed's ready counters, of a Server, a Follower and a Fetcher together.
type Metrics struct {
	followers prometheus.Gauge
	wholes    prometheus.Counter
	sessions  prometheus.Counter
	deltas    prometheus.Counter
	blobs     meter.ByCode
}

// NewMetrics makes the metrics and registers them; a nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "feed")
	return &Metrics{
		followers: f.Gauge("followers", "Members that follow the plan from this node."),
		wholes:    f.Counter("wholes_total", "Whole plans sent to followers that could not be given deltas."),
		sessions:  f.Counter("sessions_total", "Times that this node began to follow the plan from another."),
		deltas:    f.Counter("changes_total", "Changes of the plan that came from other nodes and were taken into use."),
		blobs:     f.CounterByCode("blobs_total", "Files fetched from other nodes, by outcome."),
	}
}
