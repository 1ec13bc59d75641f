package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

const maxLabelled = 100 // queues with series of their own

// perQueue shows the state of the queues at every scrape: those with the lowest numbers, which are the oldest, each by its UID, and
// the others together.
type perQueue struct{ m *Metrics }

var (
	depthDesc  = prometheus.NewDesc("edged_queue_depth", "Messages that wait.", []string{"queue"}, nil)
	flightDesc = prometheus.NewDesc("edged_queue_inflight", "Messages in a handler's hands.", []string{"queue"}, nil)
	bytesDesc  = prometheus.NewDesc("edged_queue_stored_bytes", "Bytes of all messages.", []string{"queue"}, nil)
	ageDesc    = prometheus.NewDesc("edged_queue_oldest_age_seconds", "Age of the message that has been due longest.", []string{"queue"}, nil)
	lagDesc    = prometheus.NewDesc("edged_queue_lag_seconds", "How long the first message has been due.", []string{"queue"}, nil)
	retryDesc  = prometheus.NewDesc("edged_queue_retries_total", "Redeliveries decided.", []string{"queue"}, nil)
	deadDesc   = prometheus.NewDesc("edged_queue_dead_letters_total", "Messages moved to a dead-letter queue.", []string{"queue"}, nil)
)

// Describe sends the descriptions of all series.
func (c perQueue) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{depthDesc, flightDesc, bytesDesc, ageDesc, lagDesc, retryDesc, deadDesc} {
		ch <- d
	}
}

// Collect reads the queues.
func (c perQueue) Collect(ch chan<- prometheus.Metric) {
	s := c.m.store.Load()
	if s == nil {
		return
	}
	var other Stats
	now := time.Now()
	queues := s.all()
	sortByNumber(queues)
	var oldest time.Duration
	for i, q := range queues {
		st, err := s.stats(q, now)
		if err != nil {
			continue
		}
		age := time.Duration(0)
		if !st.Oldest.IsZero() {
			age = now.Sub(st.Oldest)
		}
		if i < maxLabelled {
			emit(ch, q.uid, st, age)
			continue
		}
		other.Waiting, other.InFlight, other.Bytes = other.Waiting+st.Waiting, other.InFlight+st.InFlight, other.Bytes+st.Bytes
		other.Retries, other.Dead = other.Retries+st.Retries, other.Dead+st.Dead
		other.Lag, oldest = max(other.Lag, st.Lag), max(oldest, age)
	}
	if len(queues) > maxLabelled {
		emit(ch, meter.Other, other, oldest)
	}
}

func emit(ch chan<- prometheus.Metric, label string, st Stats, age time.Duration) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label)
	}
	gauge(depthDesc, float64(st.Waiting))
	gauge(flightDesc, float64(st.InFlight))
	gauge(bytesDesc, float64(st.Bytes))
	gauge(ageDesc, age.Seconds())
	gauge(lagDesc, st.Lag.Seconds())
	ch <- prometheus.MustNewConstMetric(retryDesc, prometheus.CounterValue, float64(st.Retries), label)
	ch <- prometheus.MustNewConstMetric(deadDesc, prometheus.CounterValue, float64(st.Dead), label)
}

func sortByNumber(queues []*queue) {
	slices.SortFunc(queues, func(a, b *queue) int { return cmp.Compare(a.num, b.num) })
}
