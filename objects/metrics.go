package objects

import (
	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics are the room's ready counters.
type Metrics struct {
	calls    map[string]meter.ByCode // by op
	commit   prometheus.Histogram
	received prometheus.Counter
	served   prometheus.Counter
	removed  map[string]prometheus.Counter // files and uploads, by why
	scrubbed prometheus.Counter
	damaged  prometheus.Counter
	objects  prometheus.Gauge
	bytes    prometheus.Gauge
	uploads  prometheus.Gauge
	waiting  prometheus.Gauge
	readers  prometheus.Gauge
}

// NewMetrics makes the metrics and registers them; a nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "objects")
	m := &Metrics{
		calls:    map[string]meter.ByCode{},
		commit:   f.Histogram("commit_seconds", "Time from the end of a body to its durable object."),
		received: f.Counter("received_bytes_total", "Bytes of bodies taken in, also of those that were not stored."),
		served:   f.Counter("served_bytes_total", "Bytes of bodies read, but for those a caller took from the file itself."),
		removed: f.CounterBy("removed_total", "Files of bodies and uploads removed, by why.", "kind",
			"replaced", "orphan", "upload"),
		scrubbed: f.Counter("scrubbed_bytes_total", "Bytes compared with their checksums by the scrub."),
		damaged:  f.Counter("damaged_total", "Times a body was found missing or unequal to its checksum, by the scrub or a reader."),
		objects:  f.Gauge("objects", "Objects in all buckets, as the last sweep saw."),
		bytes:    f.Gauge("bytes", "Bytes that count for quotas in all buckets, as the last sweep saw."),
		uploads:  f.Gauge("open_uploads", "Multipart uploads that are neither completed nor aborted, as the last sweep saw."),
		waiting:  f.Gauge("waiting_files", "Replaced bodies whose files are still kept, as the last sweep saw."),
		readers:  f.Gauge("open_readers", "Bodies in files that are being read."),
	}
	for _, op := range []string{"head", "get", "put", "delete", "list", "create_upload", "upload_part", "complete_upload", "abort_upload"} {
		m.calls[op] = f.CounterByCode(op+"_total", "Calls of "+op+" at the room's door.")
	}
	return m
}
