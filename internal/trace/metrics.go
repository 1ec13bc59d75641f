package trace

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics counts what becomes of spans. Safe for concurrent use.
type Metrics struct {
	sent    prometheus.Counter
	queue   prometheus.Counter // dropped: too many wait
	full    prometheus.Counter // dropped: too many of one piece of work
	refused prometheus.Counter // dropped: the collector does not want them
	lost    prometheus.Counter // dropped: the collector did not take them in time

	messages map[string]prometheus.Counter
}

// What became of a message.
const (
	messageSent    = "sent"
	messageRetried = "retried"
	messageFailed  = "failed"
)

// NewMetrics registers the metrics of traces with reg; nil means that nobody reads them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "trace")
	dropped := f.CounterBy("spans_dropped_total", "Spans that were recorded and not sent, by why.", "reason", "queue_full", "work_full", "refused", "unreachable")
	return &Metrics{
		sent:     f.Counter("spans_sent_total", "Spans that the collector has taken."),
		queue:    dropped["queue_full"],
		full:     dropped["work_full"],
		refused:  dropped["refused"],
		lost:     dropped["unreachable"],
		messages: f.CounterBy("messages_total", "Messages to the collector, by what became of them.", "outcome", messageSent, messageRetried, messageFailed),
	}
}

// Observe counts a duration in a histogram and gives the span's trace as an example of it, which OpenMetrics shows
// beside the bucket. Of a span that is not recorded it only counts: nobody could look the trace up.
func Observe(h prometheus.Observer, took time.Duration, s *Span) {
	if s.Recorded() {
		if e, ok := h.(prometheus.ExemplarObserver); ok {
			e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": s.TraceID(), "span_id": s.SpanID()})
			return
		}
	}
	h.Observe(took.Seconds())
}
