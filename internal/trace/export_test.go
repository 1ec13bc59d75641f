package trace

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/internal/fault"
	"edged/internal/trace/tracetest"
)

// running starts a tracer and returns it with what stops it and waits for its end.
func running(t *testing.T, opt Options) (*Tracer, func()) {
	t.Helper()
	tr, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx) }() // ends with stop
	stop := func() {
		cancel()
		err := <-done
		done <- err
		if err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return tr, stop
}

func endpoint(r *tracetest.Receiver) string { return r.URL + tracesPath }

// A trace as a collector sees it: children below their parent, attributes of every kind within their limits, failures by
// name alone, and who sent it.
func TestSpansReachTheCollector(t *testing.T) {
	r := tracetest.Start(t, false)
	tr, stop := running(t, Options{Endpoint: endpoint(r), Ratio: 1, Version: "v1", Instance: "node-1", Headers: http.Header{"X-Key": {"secret"}}})
	begin := time.Now().Add(-time.Minute)
	root := tr.Root(Server, "GET", begin)
	root.Set("url.path", "/a/\xffb")
	root.SetBytes("long", bytes.Repeat([]byte("ä"), maxText))
	root.SetInt("http.response.status_code", 200)
	root.SetFloat("edged.cpu_seconds", 0.25)
	for range 2 * maxAttributes {
		root.SetInt("more", 1)
	}
	root.rec.attributes = root.rec.attributes[:5]
	child := root.Child(Client, "kv.get")
	child.End(fault.New(fault.NotFound, "kv.Get", "the key user/7 of a tenant"))
	given := root.Child(Client, "fetch")
	given.End(context.Canceled)
	root.End(nil)
	root.End(errors.New("only the first end counts"))
	stop()
	spans := r.Spans()
	if got := tracetest.Tree(spans); got != "GET\n  kv.get\n  fetch\n" {
		t.Fatalf("the tree is\n%s", got)
	}
	kv, fetch, get := spans[0], spans[1], spans[2]
	if get.Parent != "" || get.TraceID != kv.TraceID || get.TraceID != root.TraceID() || get.Kind != int(Server) || kv.Kind != int(Client) {
		t.Errorf("%+v", spans)
	}
	if !get.Start.Equal(begin) || get.End.Sub(begin) < time.Minute || get.Failed {
		t.Errorf("from %v to %v, failed %t", get.Start, get.End, get.Failed)
	}
	if get.Attributes["url.path"] != "/a/\uFFFDb" || get.Attributes["long"] != strings.Repeat("ä", maxText/2) ||
		get.Attributes["http.response.status_code"] != int64(200) || get.Attributes["edged.cpu_seconds"] != 0.25 {
		t.Errorf("%v", get.Attributes)
	}
	if !kv.Failed || kv.Attributes["error.type"] != "not_found" || len(kv.Attributes) != 1 {
		t.Errorf("a failure: %+v", kv)
	}
	if fetch.Failed || fetch.Attributes["error.type"] != "canceled" {
		t.Errorf("one that was given up: %+v", fetch)
	}
	if got := r.Resource(); got["service.name"] != "edged" || got["service.version"] != "v1" || got["service.instance.id"] != "node-1" {
		t.Errorf("resource %v", got)
	}
	if _, headers := r.Messages(); headers[0].Get("X-Key") != "secret" {
		t.Errorf("headers %v", headers)
	}
}

// Attributes, their bytes and the spans of one piece of work are bounded; what is over is counted.
func TestSpansAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1", Ratio: 1, MaxSpans: 4, MaxQueued: 3, Metrics: NewMetrics(reg)})
	if err != nil {
		t.Fatal(err)
	}
	root := tr.Root(Server, "GET", time.Now())
	for i := range 100 {
		root.Set(strconv.Itoa(i), strings.Repeat("x", 2*maxText))
	}
	if root.rec.texts > maxTexts || len(root.rec.attributes) > maxAttributes || root.rec.lost != 100-len(root.rec.attributes) {
		t.Errorf("%d bytes in %d attributes, %d lost", root.rec.texts, len(root.rec.attributes), root.rec.lost)
	}
	for range 10 {
		c := root.Child(Client, "kv.get")
		if c.Context().TraceID != root.Context().TraceID {
			t.Error("a child left its trace")
		}
		c.Child(Client, "below").End(nil)
		c.End(nil)
	}
	root.End(nil)
	if n := tr.queued(); n != 3 {
		t.Errorf("%d spans wait, want 3", n)
	}
	if full, queue := testutil.ToFloat64(tr.opt.Metrics.full), testutil.ToFloat64(tr.opt.Metrics.queue); full < 8 || queue != 1 {
		t.Errorf("dropped: %v of the work, %v of the queue", full, queue)
	}
}

// The ratio decides of traces that begin here, a parent's flag of those that are joined; what is not recorded carries the
// trace on all the same.
func TestSampling(t *testing.T) {
	for _, tt := range []struct {
		ratio    float64
		min, max int
	}{{0, 0, 0}, {1, 2000, 2000}, {0.25, 350, 650}} {
		tr, err := New(Options{Endpoint: "http://127.0.0.1:1", Ratio: tt.ratio})
		if err != nil {
			t.Fatal(err)
		}
		recorded := 0
		for range 2000 {
			s := tr.Root(Server, "GET", time.Now())
			if s.Recorded() {
				recorded++
			}
			if !s.Context().Valid() || s.Recorded() != s.Context().Sampled() || s.Child(Client, "x").Recorded() != s.Recorded() {
				t.Fatalf("%+v", s)
			}
		}
		if recorded < tt.min || recorded > tt.max {
			t.Errorf("ratio %v: %d of 2000", tt.ratio, recorded)
		}
		for _, flags := range []byte{0, sampledFlag} {
			c, _ := Parse([]byte(good), []byte("a=1"))
			c.Flags = flags
			s := tr.Join(&c, Server, "GET", time.Now())
			if s.Recorded() != (flags != 0) || s.TraceID() != traceHex || s.Context().State != "a=1" || s.Context().SpanID == c.SpanID {
				t.Errorf("joined with flags %d: %+v", flags, s)
			}
		}
	}
}

// A collector that is busy is asked again when it says; a message that it can never take is not repeated; what it takes in
// part is counted.
func TestRetries(t *testing.T) {
	r := tracetest.Start(t, false)
	r.Answer(func(message int, w http.ResponseWriter) bool {
		switch message {
		case 1, 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader([]int{429, 503}[message-1])
			return true
		case 4:
			w.WriteHeader(400)
			return true
		case 5:
			_, _ = w.Write([]byte(`{"partialSuccess":{"rejectedSpans":"1","errorMessage":"one is bad"}}`))
			return true
		}
		return false
	})
	var log bytes.Buffer
	tr, stop := running(t, Options{Endpoint: endpoint(r), Ratio: 1, Interval: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Headers: http.Header{"Authorization": {"Bearer hush"}}})
	root := tr.Root(Server, "GET", time.Now())
	root.End(nil)
	r.Wait("the third attempt", func(spans []tracetest.Span) bool { return len(spans) == 1 })
	for i := 4; i <= 6; i++ {
		root.Child(Client, "kv.get").End(nil)
		for n := 0; n < i; n, _ = r.Messages() {
			r.Wait("any message", func([]tracetest.Span) bool { n, _ = r.Messages(); return n >= i })
		}
	}
	stop()
	m := tr.opt.Metrics
	got := []float64{testutil.ToFloat64(m.sent), testutil.ToFloat64(m.refused), testutil.ToFloat64(m.lost),
		testutil.ToFloat64(m.messages[messageSent]), testutil.ToFloat64(m.messages[messageRetried]), testutil.ToFloat64(m.messages[messageFailed])}
	if want := []float64{2, 2, 0, 3, 2, 1}; !equal(got, want) {
		t.Errorf("sent, refused, lost, messages sent, retried, failed: %v, want %v", got, want)
	}
	// Each change is told once, and never what goes into the headers.
	text := log.String()
	if strings.Count(text, "spans do not reach the collector") != 2 || strings.Count(text, "spans reach the collector again") != 2 || strings.Contains(text, "hush") {
		t.Errorf("the log says\n%s", text)
	}
}

func equal(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// A stop sends what waits, and does not wait for a collector that answers nothing or is not there.
func TestFlush(t *testing.T) {
	r := tracetest.Start(t, false)
	tr, stop := running(t, Options{Endpoint: endpoint(r), Ratio: 1, BatchSize: 4, Interval: time.Hour})
	for range 11 {
		tr.Root(Server, "GET", time.Now()).End(nil)
	}
	stop()
	if n := len(r.Spans()); n != 11 {
		t.Errorf("%d spans came, want 11", n)
	}
	r.Server().Close()
	gone, stopGone := running(t, Options{Endpoint: endpoint(r), Ratio: 1, Interval: time.Hour, Flush: time.Hour, BatchSize: 2})
	for range 5 {
		gone.Root(Server, "GET", time.Now()).End(nil)
	}
	stopGone()
	if lost := testutil.ToFloat64(gone.opt.Metrics.lost); lost != 5 {
		t.Errorf("%v spans are counted as lost, want 5", lost)
	}
	silent := tracetest.Start(t, false)
	release := make(chan struct{})
	silent.Answer(func(int, http.ResponseWriter) bool { <-release; return true })
	mute, stopMute := running(t, Options{Endpoint: endpoint(silent), Ratio: 1, Interval: time.Hour, Flush: 20 * time.Millisecond})
	mute.Root(Server, "GET", time.Now()).End(nil)
	stopMute() // hangs if the bound does not hold
	close(release)
}

// What was being sent when the stop came is sent by the flush.
func TestFlushAfterAnInterruptedAttempt(t *testing.T) {
	r := tracetest.Start(t, false)
	asked := make(chan struct{})
	r.Answer(func(message int, w http.ResponseWriter) bool {
		if message == 1 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(503)
			close(asked)
			return true
		}
		return false
	})
	tr, stop := running(t, Options{Endpoint: endpoint(r), Ratio: 1, Interval: time.Millisecond})
	tr.Root(Server, "GET", time.Now()).End(nil)
	<-asked
	stop()
	if n := len(r.Spans()); n != 1 {
		t.Errorf("%d spans came, want 1", n)
	}
}

// The collector's certificate is checked, and a redirect is not followed: the headers are for the endpoint alone.
func TestTLSAndRedirects(t *testing.T) {
	r := tracetest.Start(t, true)
	roots := x509.NewCertPool()
	roots.AddCert(r.Server().Certificate())
	for _, tt := range []struct {
		roots *x509.CertPool
		spans int
	}{{nil, 0}, {roots, 1}} {
		tr, stop := running(t, Options{Endpoint: endpoint(r), Ratio: 1, Roots: tt.roots, Interval: time.Hour})
		tr.Root(Server, "GET", time.Now()).End(nil)
		stop()
		if n := len(r.Spans()); n != tt.spans {
			t.Errorf("%d spans came, want %d", n, tt.spans)
		}
	}
	elsewhere := tracetest.Start(t, false)
	r.Answer(func(_ int, w http.ResponseWriter) bool {
		w.Header().Set("Location", endpoint(elsewhere))
		w.WriteHeader(307)
		return true
	})
	tr, stop := running(t, Options{Endpoint: endpoint(r), Ratio: 1, Roots: roots, Interval: time.Hour, Headers: http.Header{"Authorization": {"Bearer hush"}}})
	tr.Root(Server, "GET", time.Now()).End(nil)
	stop()
	if n, _ := elsewhere.Messages(); n != 0 {
		t.Error("the redirect was followed")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "0": time.Millisecond, "-1": 0, "soon": 0, "99999999999": 0,
		"Mon, 01 Jun 2026 12:00:05 GMT": 5 * time.Second, "Mon, 01 Jun 2026 11:00:00 GMT": 0} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// What is off costs a comparison, what is not sampled one small allocation.
func TestOffIsFree(t *testing.T) {
	var off *Tracer
	failure := errors.New("")
	if n := testing.AllocsPerRun(100, func() {
		s := off.Root(Server, "GET", time.Time{})
		s.SetBytes("url.path", nil)
		c := s.Child(Client, "kv.get")
		c.Fail(failure)
		c.AddTo(nil)
		c.Inject(nil)
		c.End(nil)
	}); n != 0 {
		t.Errorf("off: %v allocations", n)
	}
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		s := tr.Root(Server, "GET", time.Time{})
		s.SetBytes("url.path", []byte("/"))
		s.Child(Client, "kv.get").End(nil)
		s.End(nil)
	}); n > 1 {
		t.Errorf("not sampled: %v allocations", n)
	}
}

func BenchmarkRoot(b *testing.B) {
	for name, ratio := range map[string]float64{"ratio=0": 0, "ratio=1": 1} {
		b.Run(name, func(b *testing.B) {
			tr, err := New(Options{Endpoint: "http://127.0.0.1:1", Ratio: ratio, MaxQueued: 1})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				tr.Root(Server, "GET", time.Time{}).End(nil)
			}
		})
	}
}
