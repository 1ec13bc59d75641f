package control

import (
	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics are the room's ready counters.
type Metrics struct {
	commands   map[string]prometheus.Counter // by kind
	apply      prometheus.Histogram
	operations map[string]prometheus.Counter // ended, by status
	plans      prometheus.Counter
	inspect    prometheus.Histogram
}

// NewMetrics makes the metrics and registers them; a nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "control")
	return &Metrics{
		commands: f.CounterBy("commands_total", "Commands applied to the control state.", "kind",
			"create", "update", "delete", "start", "doubt", "end", "sweep", "token", "revoke", "used", "founded",
			"await", "replenish", "requeue", "marker", "reseal", "secrets", "carry", "runs", "ran",
			"fleet", "invite", "join", "member", "drain", "remove"),
		apply:      f.NativeHistogram("commit_seconds", "Time from a command to its durable commit."),
		operations: f.CounterBy("operations_total", "Operations that ended.", "status", "succeeded", "failed"),
		plans:      f.Counter("plans_total", "Plans published to the node."),
		inspect:    f.Histogram("inspect_seconds", "Time to evaluate a bundle before a version is accepted."),
	}
}
