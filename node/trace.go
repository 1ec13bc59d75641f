package node

import (
	"fmt"
	"time"

	"edged/cron"
	"edged/internal/life"
	"edged/internal/trace"
	"edged/queue"
)

// TraceOptions say whether traces are recorded, and where they go.
type TraceOptions struct {
	trace.Settings // Endpoint "" records nothing

	// Sample is the share, 0 to 1, of the traces that begin here and are recorded. What a trusted proxy has decided holds for the
	// traces that it begins.
	Sample  float64
	Service string // service.name of this node's spans, "" means edged
}

// check reports what is wrong, by flag.
func (o *TraceOptions) check(bad func(string, ...any)) {
	if !(o.Sample >= 0 && o.Sample <= 1) {
		bad("--trace-sample: %v is not between 0 and 1", o.Sample)
	}
	if o.Endpoint == "" {
		for _, f := range []struct{ name, value string }{{"otlp-headers", o.Headers}, {"otlp-ca-file", o.CAFile}} {
			if f.value != "" {
				bad("--%s is for the collector that --otlp-endpoint names", f.name)
			}
		}
		return
	}
	if _, _, _, err := o.Settings.Read(); err != nil {
		bad("--otlp-endpoint: %w", err)
	}
}

// openTracer makes n.tracer, which stays nil without an endpoint. The metrics are there in any case.
func (n *Node) openTracer() error {
	metrics := trace.NewMetrics(n.registry)
	o := &n.opt.Traces
	if o.Endpoint == "" {
		return nil
	}
	endpoint, headers, roots, err := o.Settings.Read()
	if err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	n.tracer, err = trace.New(trace.Options{Endpoint: endpoint, Headers: headers, Roots: roots, Ratio: o.Sample, Service: o.Service,
		Version: n.opt.Version, Instance: n.id, Log: n.log, Metrics: metrics})
	return err
}

// traceParts sends spans until everything that makes some has stopped.
func (n *Node) traceParts(parts *life.Stack) {
	if n.tracer != nil {
		parts.Push(life.Part{Name: "traces", Run: n.tracer.Run})
	}
}

// cronTrace begins the trace of a scheduled run.
func (n *Node) cronTrace(m cron.Match) *trace.Span {
	s := n.tracer.Root(trace.Internal, "cron.run", time.Now())
	s.Set("faas.trigger", "timer")
	s.Set("faas.cron", m.Cron)
	s.Set("edged.worker", m.Worker)
	return s
}

// batchTrace begins the trace of a delivery. Whoever sent the messages is not linked: what is stored of a message has no place
// for its trace.
func (n *Node) batchTrace(b *queue.Batch, name string) *trace.Span {
	s := n.tracer.Root(trace.Consumer, "queue.deliver", time.Now())
	s.Set("messaging.system", "edged")
	s.Set("messaging.operation.type", "process")
	s.Set("messaging.destination.name", name)
	s.SetInt("messaging.batch.message_count", int64(len(b.Messages)))
	s.Set("edged.worker", b.Worker)
	return s
}
