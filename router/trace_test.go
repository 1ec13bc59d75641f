package router

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"edged/internal/trace"
	"edged/internal/trace/tracetest"
	"edged/sandbox/event"
)

const (
	theirTrace  = "0af7651916cd43dd8448eb211c80319c"
	theirSpan   = "b7ad6b7169203331"
	theirParent = "00-" + theirTrace + "-" + theirSpan
)

// traced is a router option with a tracer that sends to r. The returned func sends what waits.
func traced(t testing.TB, r *tracetest.Receiver, ratio float64) (tracer *trace.Tracer, flush func()) {
	t.Helper()
	tracer, err := trace.New(trace.Options{Endpoint: r.URL + "/v1/traces", Ratio: ratio})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = tracer.Run(ctx) // nothing but the flush; it returns nil
	}
}

// The span of a request says what OpenTelemetry has names for, and nothing of queries, fields and bodies; who may say
// that a trace is recorded are trusted proxies alone.
func TestRequestSpans(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ratio   float64
		trusted bool
		fields  string
		want    string // trace, parent, state and links of the span; "" for none
	}{
		{"own ratio", 1, false, "", "own - [] []"},
		{"own ratio, not recorded", 0, false, "", ""},
		{"a client's trace is only linked", 1, false, "traceparent: " + theirParent + "-01\r\ntracestate: a=1\r\n", "own - [] [" + theirTrace + "-" + theirSpan + "]"},
		{"a client decides nothing", 0, false, "traceparent: " + theirParent + "-01\r\n", ""},
		{"a trusted proxy's trace goes on", 0, true, "traceparent: " + theirParent + "-01\r\ntracestate: a=1\r\nTraceState: b=2\r\n", "theirs " + theirSpan + " [a=1,b=2] []"},
		{"a trusted proxy records nothing", 1, true, "traceparent: " + theirParent + "-00\r\n", ""},
		{"a trusted proxy says nothing", 1, true, "", "own - [] []"},
		{"a trusted proxy is wrong", 1, true, "traceparent: 00-" + strings.ToUpper(theirTrace) + "-" + theirSpan + "-01\r\n", "own - [] []"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tracetest.Start(t, false)
			tracer, flush := traced(t, r, tt.ratio)
			opt := Options{Tracer: tracer}
			if tt.trusted {
				opt.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
			var seen event.Request
			f := start(t, opt, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
				seen = *req
				seen.Header = bytes.Clone(req.Header)
				return answer(res, 200, "hello")
			}))
			c := f.dial(t)
			c.send("GET /a/b?q=hush HTTP/1.1\r\nHost: a.test\r\nCookie: hush\r\n" + tt.fields + "\r\n")
			c.response("GET")
			c.send("HUSH / HTTP/1.0\r\nHost: b.test\r\n\r\n") // ends the connection, after which the span is there
			c.response("GET")
			c.closed()
			flush()
			if got := field(seen.Header, "traceparent"); len(got) != strings.Count(tt.fields, "traceparent") {
				t.Errorf("the worker sees traceparent %q, want what was sent", got)
			}
			if !seen.Trace.Context().Valid() {
				t.Error("the request carries no trace")
			}
			got := ""
			for _, s := range r.Spans() {
				if s.Name != "GET" || s.Kind != int(trace.Server) {
					continue
				}
				whose, parent := "own", "-"
				if s.TraceID == theirTrace {
					whose = "theirs"
				}
				if s.Parent != "" {
					parent = s.Parent
				}
				got = fmt.Sprint(whose, " ", parent, " [", s.State, "] ", s.Links)
				want := map[string]any{"http.request.method": "GET", "url.scheme": "http", "url.path": "/a/b", "server.address": "a.test",
					"network.protocol.version": "1.1", "http.response.status_code": int64(200), "edged.version": "v1"}
				if fmt.Sprint(s.Attributes) != fmt.Sprint(want) || s.Failed {
					t.Errorf("attributes %v, want %v; failed %t", s.Attributes, want, s.Failed)
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Refusals and failures have their word; the wait for admission is a step of its own.
func TestSpansOfFailures(t *testing.T) {
	r := tracetest.Start(t, false)
	tracer, flush := traced(t, r, 1)
	f := start(t, Options{Tracer: tracer}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		switch {
		case bytes.HasSuffix(req.URL, []byte("/panic")):
			panic("a bug")
		case bytes.HasSuffix(req.URL, []byte("/cpu")):
			return event.ErrCPU
		case bytes.HasSuffix(req.URL, []byte("/cut")):
			res.Status, res.Stream, res.Length = 200, io.NopCloser(strings.NewReader("short")), 100
			return nil
		}
		return answer(res, 503, "no")
	}))
	for _, path := range []string{"/panic", "/cpu", "/own", "/cut"} {
		c := f.dial(t)
		c.send("GET " + path + " HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
		_, _ = io.ReadAll(c)
	}
	c := f.dial(t)
	c.send("BREW / HTTP/1.0\r\nHost: b.test\r\n\r\n")
	_, _ = io.ReadAll(c)
	f.stop()
	err := <-f.done
	f.done <- err
	flush()
	got := map[string]string{}
	for _, s := range r.Spans() {
		if s.Kind == int(trace.Server) {
			got[fmt.Sprint(s.Name, " ", s.Attributes["url.path"])] = fmt.Sprint(s.Attributes["http.response.status_code"], " ", s.Attributes["error.type"], " ", s.Failed)
		}
	}
	want := map[string]string{"GET /panic": "500 worker_error true", "GET /cpu": "500 cpu_exceeded true", "GET /own": "503 503 true",
		"GET /cut": "200 cut true", "_OTHER /": "404 unknown_host false"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if tree := tracetest.Tree(r.Spans()); strings.Count(tree, "GET\n  router.admission\n") != 4 || strings.Contains(tree, "_OTHER\n  ") {
		t.Errorf("the tree is\n%s", tree)
	}
}

// The histogram of durations shows traces that are recorded, and them alone, in OpenMetrics; its classic buckets stay.
func TestExemplars(t *testing.T) {
	r := tracetest.Start(t, false)
	for _, ratio := range []float64{0, 1} {
		reg := prometheus.NewRegistry()
		tracer, flush := traced(t, r, ratio)
		f := start(t, Options{Tracer: tracer, Metrics: NewMetrics(reg)}, serving(hello))
		f.get(t, "/")
		f.stop()
		err := <-f.done
		f.done <- err
		flush()
		text, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(text, req)
		body := text.Body.String()
		want := 0
		if spans := r.Spans(); ratio == 1 {
			if want = strings.Count(body, `trace_id="`+spans[len(spans)-1].TraceID+`"`); want != 1 {
				t.Error("the request's trace is no example")
			}
		}
		if got := strings.Count(body, "trace_id"); got != want {
			t.Errorf("ratio %v: %d examples, want %d in\n%s", ratio, got, want, body)
		}
		if !strings.Contains(body, `_bucket{le="0.001"}`) || !strings.Contains(body, "_count 1") {
			t.Errorf("no classic buckets in\n%s", body)
		}
	}
}

func TestSplitURL(t *testing.T) {
	for url, want := range map[string]string{"http://a.test/": "http /", "https://a.test:1/a//b?c/d": "https /a//b", "http://[::1]:80/x": "http /x",
		"http://a.test": "http ", "": " ", "x": " "} {
		scheme, path := splitURL([]byte(url))
		if got := string(scheme) + " " + string(path); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}

// BenchmarkTraced is the front alone with traces off, on with nothing recorded, and with one in a hundred and all of them.
func BenchmarkTraced(b *testing.B) {
	for _, c := range []struct {
		name  string
		on    bool
		ratio float64
	}{{"off", false, 0}, {"ratio=0", true, 0}, {"ratio=0.01", true, 0.01}, {"ratio=1", true, 1}} {
		b.Run(c.name, func(b *testing.B) {
			var opt Options
			if c.on {
				r := tracetest.Start(b, false)
				opt.Tracer, _ = traced(b, r, c.ratio)
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- opt.Tracer.Run(ctx) }() // ends with the benchmark
				defer func() { cancel(); <-done }()
			}
			drive(b, start(b, opt, serving(hello)).addr, benchRequest)
		})
	}
}
