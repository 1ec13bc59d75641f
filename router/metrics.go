package router

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

// Metrics counts what the router does. One Router per Metrics. Safe for concurrent use.
type Metrics struct {
	conns      prometheus.Gauge
	connsTotal prometheus.Counter
	connsOver  prometheus.Counter
	connsShed  prometheus.Counter
	handed     prometheus.Counter
	adopted    prometheus.Counter
	relayed    prometheus.Gauge

	acceptFailed prometheus.Counter
	classes      [6]prometheus.Counter // responses by first digit of their status
	errors       map[string]prometheus.Counter
	seconds      prometheus.Histogram
	waiting      prometheus.Gauge
	streams      prometheus.Gauge
	refused      map[string]prometheus.Counter // by why
	assets       prometheus.Counter
	clientsGone  prometheus.Counter
	clientsSlow  prometheus.Counter
	cut          prometheus.Counter
	panics       prometheus.Counter
	received     prometheus.Counter
	sent         prometheus.Counter

	gate atomic.Pointer[gate] // read by the gauge
}

// NewMetrics makes the router's metrics and registers them with reg; nil means that nobody reads them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "router")
	m := &Metrics{
		conns:        f.Gauge("connections", "Open public connections."),
		connsTotal:   f.Counter("connections_total", "Public connections accepted."),
		connsOver:    f.Counter("connections_refused_total", "Connections closed at once, over the limit or before a valid handshake."),
		connsShed:    f.Counter("connections_shed_total", "Connections that waited for a request and were closed to make room for others."),
		handed:       f.Counter("connections_handed_total", "Public connections given to the process after this one."),
		adopted:      f.Counter("connections_adopted_total", "Public connections taken over from the process before this one."),
		relayed:      f.Gauge("connections_relayed", "Connections over TLS that this process, which was followed by another, still relays to it."),
		acceptFailed: f.Counter("accept_failures_total", "Failures to accept a connection, for want of file descriptors most likely."),
		seconds:      f.NativeHistogram("request_duration_seconds", "From a complete request head to the end of its response."),
		waiting:      f.Gauge("invocations_waiting", "Invocations waiting for admission."),
		streams:      f.Gauge("streams_long", "Of those, responses that have streamed for more than a second and gave their place back."),
		assets:       f.Counter("asset_responses_total", "Responses made from a static asset."),
		clientsGone:  f.Counter("clients_gone_total", "Clients that left while their request was at work."),
		clientsSlow:  f.Counter("clients_slow_total", "Clients that were given up because they sent a body, or took a response, too slowly."),
		cut:          f.Counter("responses_cut_total", "Responses that ended short of their body."),
		panics:       f.Counter("panics_total", "Bugs caught at the request boundary."),
		received:     f.Counter("request_body_bytes_total", "Request body bytes read."),
		sent:         f.Counter("response_bytes_total", "Response bytes written, heads included."),
	}
	f.GaugeFunc("invocations_inflight", "Invocations at work, streaming included.", func() float64 {
		if g := m.gate.Load(); g != nil {
			return float64(g.busy.Load() + g.streams.Load())
		}
		return 0
	})
	m.refused = f.CounterBy("admission_refused_total", "Requests that got no place, by why.", "reason",
		refusedFull, refusedShare, refusedSlow, refusedGivenUp, refusedTimeout, refusedMemory)
	byClass := f.CounterBy("responses_total", "Responses by class of status.", "class", "2xx", "3xx", "4xx", "5xx")
	for class, c := range byClass {
		m.classes[class[0]-'0'] = c
	}
	codes := make([]string, 0, len(refusals))
	for _, r := range refusals {
		codes = append(codes, r.code)
	}
	m.errors = f.CounterBy("errors_total", "Host-made responses by Edged-Error.", "code", codes...)
	return m
}
