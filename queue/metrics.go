package queue

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics counts what the room does. Safe for concurrent use.
type Metrics struct {
	sends       meter.ByCode
	sendSeconds prometheus.Histogram
	accepted    prometheus.Counter
	batches     map[string]prometheus.Counter // by outcome
	delivered   prometheus.Counter
	seconds     prometheus.Histogram
	settled     map[string]prometheus.Counter // messages, by what became of them
	panics      prometheus.Counter
	unmoved     prometheus.Counter
	corrupt     prometheus.Counter

	store atomic.Pointer[Store] // what the gauges per queue are read from
}

// NewMetrics makes the metrics and registers them; a nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "queue")
	m := &Metrics{
		sends:       f.CounterByCode("sends_total", "Calls of send and sendBatch by outcome."),
		sendSeconds: f.Histogram("send_seconds", "Time from a call of send or sendBatch to the durable message."),
		accepted:    f.Counter("messages_accepted_total", "Messages made durable for a producer."),
		batches:     f.CounterBy("batches_total", "Delivered batches by outcome.", "outcome", "returned", "threw", "not_reached", "unknown"),
		delivered:   f.Counter("messages_delivered_total", "Messages handed to a handler, redeliveries included."),
		seconds:     f.Histogram("delivery_seconds", "Time a handler held a batch."),
		settled: f.CounterBy("messages_settled_total", "What became of messages that were delivered or ran out of time.", "as",
			"acknowledged", "retried", "returned", "dead_letter", "dropped", "expired", "redriven"),
		panics:  f.Counter("panics_total", "Bugs caught at the delivery boundary."),
		unmoved: f.Counter("dead_letters_held_total", "Times an exhausted message was kept because its dead-letter queue is not here."),
		corrupt: f.Counter("unreadable_records_total", "Records that could not be read and were left as they are."),
	}
	if reg != nil {
		reg.MustRegister(perQueue{m})
	}
	return m
}

func (m *Metrics) attach(s *Store) { m.store.Store(s) }
