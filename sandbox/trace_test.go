package sandbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/internal/trace"
	"edged/internal/trace/tracetest"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// traced returns a tracer that records everything for r, and what sends what has ended.
func traced(t testing.TB, r *tracetest.Receiver) (tracer *trace.Tracer, flush func()) {
	t.Helper()
	tracer, err := trace.New(trace.Options{Endpoint: r.URL + "/v1/traces", Ratio: 1})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = tracer.Run(ctx) // nothing but the flush; it returns nil
	}
}

// An invocation is a step that lasts as long as its sandbox is in use, with its calls below it; it fails by the name of what ended it, and
// a call by that of its error.
func TestInvocationSpans(t *testing.T) {
	r := tracetest.Start(t, false)
	tracer, flush := traced(t, r)
	store := &memoryKV{entries: map[string]binding.KVEntry{}, ttl: map[string]time.Duration{}}
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{UID: "v", Worker: "w", Handlers: []string{"fetch", "scheduled"}, Bindings: []binding.Binding{{Name: "CACHE", KV: store}},
		Graph: graphOf(`export default {
			async fetch(request, env, ctx) {
				if (request.method === 'PUT') throw new Error('hush');
				await env.CACHE.get('x'.repeat(500)).catch(() => {});
				ctx.waitUntil(env.CACHE.put('k', 'v'));
				return new Response('done');
			},
			async scheduled(event, env) { await env.CACHE.get('k'); },
		}`)})
	run := func(name string, call func(span *trace.Span)) {
		span := tracer.Root(trace.Server, name, time.Now())
		call(span)
		span.End(nil)
	}
	run("GET", func(span *trace.Span) {
		req := request()
		req.Trace = span
		serve(t, v, req)
	})
	run("PUT", func(span *trace.Span) {
		req, res := request(), event.Response{}
		req.Method, req.Trace = []byte("PUT"), span
		wantErr(t, v.Serve(context.Background(), req, &res), event.ErrWorker)
	})
	run("cron.run", func(span *trace.Span) {
		if reached, err := v.Scheduled(context.Background(), event.Scheduled{Cron: "* * * * *", Trace: span}); !reached || err != nil {
			t.Error(reached, err)
		}
	})
	idle(t, v) // what goes on behind the response has ended
	flush()
	spans := r.Spans()
	want := "GET\n  sandbox.run\n    sandbox.acquire\n    kv.get\n    kv.put\n" +
		"PUT\n  sandbox.run\n    sandbox.acquire\n" +
		"cron.run\n  sandbox.run\n    sandbox.acquire\n    kv.get\n"
	if got := tracetest.Tree(spans); got != want {
		t.Errorf("the tree is\n%swant\n%s", got, want)
	}
	byID := map[string]tracetest.Span{}
	for _, sp := range spans {
		byID[sp.SpanID] = sp
	}
	var failed []string
	for _, sp := range spans {
		if sp.Failed {
			failed = append(failed, fmt.Sprint(sp.Name, " ", sp.Attributes["error.type"]))
		}
		parent := byID[sp.Parent]
		switch {
		case strings.Contains(fmt.Sprint(sp), "hush"):
			t.Errorf("the text of an error is recorded: %+v", sp)
		case strings.HasPrefix(sp.Name, "kv.") && (sp.Attributes["edged.binding"] != "CACHE" || sp.End.After(parent.End)):
			t.Errorf("a call is %+v within %+v", sp, parent)
		case sp.Name == "sandbox.run" && (sp.Attributes["edged.worker"] != "w" || sp.Attributes["edged.version"] != "v" || sp.Attributes["edged.cpu_seconds"] == nil):
			t.Errorf("an invocation is %+v", sp)
		case sp.Name == "sandbox.acquire" && sp.Attributes["edged.sandbox"] == nil:
			t.Errorf("a wait is %+v", sp)
		}
	}
	if got := strings.Join(failed, ", "); got != "kv.get invalid_key, sandbox.run worker_error" {
		t.Errorf("failed: %s", got)
	}
}

// BenchmarkTraced is a request through Serve with nothing traced, carried on and recorded.
func BenchmarkTraced(b *testing.B) {
	r := tracetest.Start(b, false)
	off, _ := trace.New(trace.Options{Endpoint: r.URL})
	on, _ := trace.New(trace.Options{Endpoint: r.URL, Ratio: 1, MaxQueued: 1})
	for _, c := range []struct {
		name   string
		tracer *trace.Tracer
	}{{"off", nil}, {"carried", off}, {"recorded", on}} {
		b.Run(c.name, func(b *testing.B) {
			s := newBox(b, Options{})
			v := openWorker(b, s, fetcher(`return new Response('Hello World')`))
			var res event.Response
			req := request()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				res.Reset()
				req.Trace = c.tracer.Root(trace.Server, "GET", time.Time{})
				if err := v.Serve(ctx, req, &res); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
