package sqlstore

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// op is a kind of call, a closed set.
type op string

const (
	opExecute     op = "execute"
	opQuery       op = "query"
	opTransaction op = "transaction"
	opMigrate     op = "migrate"
	opShell       op = "shell"
	opBackup      op = "backup"
	opLoad        op = "load"
	opCreate      op = "create"
	opDelete      op = "delete"
)

var ops = []op{opExecute, opQuery, opTransaction, opMigrate, opShell, opBackup, opLoad, opCreate, opDelete}

// Metrics of the room: per kind of call how many ended how, and how long they took. No label tells a database or a statement.
type Metrics struct {
	calls       map[op]meter.ByCode
	seconds     map[op]prometheus.Histogram
	waited      prometheus.Histogram
	opened      prometheus.Counter
	open        prometheus.Gauge
	checked     prometheus.Counter
	damaged     prometheus.Counter
	checkpoints prometheus.Counter
	broken      prometheus.Counter
	slow        prometheus.Counter
}

// NewMetrics makes the metrics and registers them; a nil reg makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "sqlstore")
	m := &Metrics{
		calls:       map[op]meter.ByCode{},
		seconds:     map[op]prometheus.Histogram{},
		waited:      f.Histogram("write_wait_seconds", "Time a writer waited for its turn."),
		opened:      f.Counter("opened_total", "Databases opened."),
		open:        f.Gauge("open", "Databases open now."),
		checked:     f.Counter("checked_total", "Integrity checks because a database was not closed in order."),
		damaged:     f.Counter("damaged_total", "Times SQLite found a database file damaged."),
		checkpoints: f.Counter("checkpoints_total", "Write-ahead logs moved into their database."),
		broken:      f.Counter("broken_connections_total", "Connections given up after a failure inside them."),
		slow:        f.Counter("slow_total", "Calls that took longer than the slow threshold."),
	}
	for _, o := range ops {
		m.calls[o] = f.CounterByCode(string(o)+"_total", "Calls of "+string(o)+" by outcome.")
		m.seconds[o] = f.Histogram(string(o)+"_seconds", "Duration of "+string(o)+".")
	}
	return m
}

func (m *Metrics) done(o op, start time.Time, err error) {
	m.calls[o].Count(err)
	m.seconds[o].Observe(time.Since(start).Seconds())
}
