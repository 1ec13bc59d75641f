package sandbox

import (
	"net/url"
	"strconv"

	"edged/internal/trace"
	"edged/sandbox/engine"
	"edged/sandbox/event"
	"edged/sandbox/facade"
)

// steps is what an invocation shows of itself in a trace: a step that begins with the wait for a slot and ends when the sandbox
// is given back, later than the response if something goes on behind it. The wait is a step within it.
type steps struct{ whole, acquire *trace.Span }

// beginSteps begins them within what caused the invocation; nothing of nothing.
func (v *Version) beginSteps(cause *trace.Span) (s steps) {
	if cause != nil {
		s.whole = cause.Child(trace.Internal, "sandbox.run")
		s.whole.Set("edged.worker", v.spec.Worker)
		s.whole.Set("edged.version", v.spec.UID)
		s.acquire = s.whole.Child(trace.Internal, "sandbox.acquire")
	}
	return s
}

// acquired ends the wait: g is the sandbox of the invocation, nil if err says why there is none.
func (s steps) acquired(g *guest, err error) {
	if s.whole == nil {
		return
	}
	if g == nil {
		s.acquire.End(err)
		s.whole.End(err)
		return
	}
	s.acquire.Set("edged.sandbox", g.origin.String())
	s.acquire.End(nil)
	g.trace = s.whole
}

// endSteps ends what is shown of an invocation that is over.
func (g *guest) endSteps() {
	if g.trace.Recorded() {
		g.trace.SetFloat("edged.cpu_seconds", g.in.CPU().Seconds())
		g.trace.End(nil)
	}
}

// Trace is facade.Caller's.
func (g *guest) Trace() *trace.Span { return g.trace }

// beginBucket begins the step of a call of the bucket with this number.
func (g *guest) beginBucket(m *facade.Method, number engine.Value) *trace.Span {
	if g.trace == nil {
		return nil
	}
	n, _ := number.Int()
	return facade.Begin(g.trace, m.Span(), g.Binding(n))
}

// beginFetch begins the step of a request to the outside, and sends the trace with it unless the worker has set a
// traceparent. Its query and its fields are the worker's business.
func (g *guest) beginFetch(req *event.Request) *trace.Span {
	if g.trace == nil {
		return nil
	}
	span := g.trace.Child(trace.Client, "fetch")
	req.Header = span.AddTo(req.Header)
	if !span.Recorded() {
		return span
	}
	span.Set("http.request.method", trace.Method(req.Method))
	if u, err := url.Parse(string(req.URL)); err == nil {
		span.Set("url.scheme", u.Scheme)
		span.Set("url.path", u.EscapedPath())
		span.Set("server.address", u.Hostname())
		if port, err := strconv.Atoi(u.Port()); err == nil {
			span.SetInt("server.port", int64(port))
		}
	}
	return span
}
