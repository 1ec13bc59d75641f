package kv

import (
	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics are the room's ready counters.
type Metrics struct {
	calls     map[string]meter.ByCode // by op
	commit    prometheus.Histogram
	swept     map[string]prometheus.Counter // by kind
	applied   map[string]prometheus.Counter // by verdict
	sessions  map[string]prometheus.Counter // ended, by reason
	frames    prometheus.Counter
	served    prometheus.Counter
	blobs     map[string]prometheus.Counter // by result
	refused   map[string]prometheus.Counter // by reason
	audits    map[string]prometheus.Counter // by result
	returned  prometheus.Counter
	damaged   prometheus.Counter
	lagRecs   prometheus.Gauge
	lagTime   prometheus.Gauge
	live      prometheus.Gauge
	records   prometheus.Gauge
	bytes     prometheus.Gauge
	forgotten prometheus.Gauge
}

// NewMetrics makes the metrics and registers them; a nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "kv")
	m := &Metrics{
		calls:     map[string]meter.ByCode{},
		commit:    f.Histogram("commit_seconds", "Time from a write to its durable commit."),
		swept:     f.CounterBy("swept_total", "Records and files removed by the sweep.", "kind", "expired", "tombstone", "namespace", "blob"),
		applied:   f.CounterBy("applied_total", "Records of peers, by what became of them.", "verdict", "take", "known", "older", "dead"),
		sessions:  f.CounterBy("sessions_ended_total", "Pull sessions that ended, by why.", "reason", endReasons...),
		frames:    f.Counter("frames_read_total", "Frames read from peers."),
		served:    f.Counter("records_served_total", "Records sent to peers."),
		blobs:     f.CounterBy("blobs_fetched_total", "Value files fetched from peers.", "result", "ok", "resumed", "missing", "damaged", "failed"),
		refused:   f.CounterBy("peers_refused_total", "Requests and gossip of peers that were refused.", "reason", refusedReasons...),
		audits:    f.CounterBy("audits_total", "Digest comparisons with peers.", "result", "equal", "skipped", "differs", "failed"),
		returned:  f.Counter("resurrected_total", "Records that a forgotten tombstone would have beaten; must stay 0."),
		damaged:   f.Counter("damaged_values_total", "Value files that are missing or do not have their digest."),
		lagRecs:   f.Gauge("lag_records", "Greatest number of records of one origin that are known and not here."),
		lagTime:   f.Gauge("lag_seconds", "Longest time since this node was level with a member."),
		live:      f.Gauge("peers_live", "Peers that this node is level with."),
		records:   f.Gauge("records", "Visible records, including expired ones that are not swept yet."),
		bytes:     f.Gauge("bytes", "Bytes of keys, values, metadata and overhead."),
		forgotten: f.Gauge("tombstones_waiting", "Tombstones over their grace that some member does not cover yet, as the last sweep saw."),
	}
	for _, op := range []string{"get", "put", "delete", "list"} {
		m.calls[op] = f.CounterByCode(op+"_total", "Calls of "+op+" at the room's door.")
	}
	return m
}
