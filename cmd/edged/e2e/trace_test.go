package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"edged/internal/trace/tracetest"
)

const tracedWorker = `
export default {
	async fetch(request, env) {
		await env.CACHE.put('k', 'hush');
		await env.CACHE.get('k');
		await env.DB.query("select 'hush' as n", []);
		await env.FILES.put('hush', 'body');
		await new Response((await env.FILES.get('hush')).body).text();
		const callee = await (await env.OTHER.fetch('http://other/callee?hush')).text();
		const out = await (await fetch(new URL(request.url).searchParams.get('out'))).text();
		const mine = await (await fetch(new URL(request.url).searchParams.get('out'), {headers: {traceparent: 'mine'}})).text();
		await env.TASKS.send('hush');
		return new Response([request.headers.get('traceparent'), callee, out, mine].join(' '));
	},
	async queue(batch, env) { await env.CACHE.get('k'); },
};`

// One request through one real node: a collector sees every step that it takes, each below the one that caused it, and nothing of what
// tenants write; the trace goes on to services and to the outside, but where the worker has a traceparent of its own. A stop sends what
// waits.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := tracetest.Start(t, false)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("traceparent"))
	}))
	defer outside.Close()
	at, err := url.Parse(outside.URL)
	if err != nil {
		t.Fatal(err)
	}
	files := write(t, map[string]string{"egress": "allow 127.0.0.1 " + at.Port() + "\ndefault none\n", "headers": "x-api-key: k3y\n"})
	if err := os.Chmod(filepath.Join(files, "headers"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := start(t, t.TempDir(), "--egress", filepath.Join(files, "egress"), "--trusted-proxies", "127.0.0.1",
		"--otlp-endpoint", collector.URL, "--otlp-headers", filepath.Join(files, "headers"), "--trace-sample", "0")
	other := n.served("other", `export default { fetch(request) { return new Response(request.headers.get('traceparent')) } }`, object{"handlers": []string{"fetch"}})
	worker := n.served("all", tracedWorker, object{"handlers": []string{"fetch", "queue"},
		"kvBindings":            []bound{{"CACHE", ref{n.made("EdgeKVNamespace/0.2.0/", "cache", object{})}}},
		"sqliteBindings":        []bound{{"DB", ref{n.made("SQLiteDatabase/0.2.0/", "app", object{})}}},
		"bucketBindings":        []bound{{"FILES", ref{n.made("ObjectBucket/0.3.0/", "files", object{})}}},
		"queueProducerBindings": []bound{{"TASKS", ref{n.made("AtLeastOnceQueue/0.2.0/", "tasks", object{"messageRetentionSeconds": 3600})}}},
		"serviceBindings":       []bound{{"OTHER", ref{other}}}})
	address := n.address("all", worker)
	ask := func(flags string) string {
		a := n.do("GET", address+"/path?out="+url.QueryEscape(outside.URL+"/out?hush"), nil, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"+flags)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.body
	}
	// Not recorded, by the proxy's word: the trace goes on all the same.
	if got := ask("00"); !regexp.MustCompile(`^00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00( 00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00){2} mine$`).MatchString(got) {
		t.Errorf("not recorded: %s", got)
	}
	seen := strings.Fields(ask("01"))
	spans := collector.Wait("the request", func(spans []tracetest.Span) bool {
		return slices.ContainsFunc(spans, func(s tracetest.Span) bool { return s.Name == "GET" }) &&
			slices.ContainsFunc(spans, func(s tracetest.Span) bool { return s.Name == "sandbox.run" && s.Attributes["edged.worker"] == worker })
	})
	want := strings.Join([]string{"GET", "  router.admission", "  sandbox.run", "    sandbox.acquire", "    kv.put", "    kv.get", "    sql.query",
		"    objects.put", "    objects.get", "    service.fetch", "      sandbox.run", "        sandbox.acquire", "    fetch", "    fetch", "    queue.send", ""}, "\n")
	if got := tracetest.Tree(spans); got != want {
		t.Errorf("the tree is\n%swant\n%s", got, want)
	}
	binding := map[string]string{"kv.put": "CACHE", "sql.query": "DB", "objects.get": "FILES", "service.fetch": "OTHER", "queue.send": "TASKS"}
	var out, called string
	for _, s := range spans {
		text := fmt.Sprint(s)
		if strings.Contains(text, "hush") || s.TraceID != "0af7651916cd43dd8448eb211c80319c" || s.Failed {
			t.Errorf("a span says\n%s", text)
		}
		if b := binding[s.Name]; b != "" && s.Attributes["edged.binding"] != b {
			t.Errorf("%s goes through %v, want %s", s.Name, s.Attributes["edged.binding"], b)
		}
		switch s.Name {
		case "GET":
			if s.Parent != "b7ad6b7169203331" || s.Attributes["url.path"] != "/path" || s.Attributes["http.response.status_code"] != int64(200) {
				t.Errorf("the request is %+v", s)
			}
		case "fetch":
			if s.Attributes["url.path"] != "/out" || s.Attributes["server.address"] != "127.0.0.1" || s.Attributes["http.response.status_code"] != int64(200) {
				t.Errorf("the fetch is %+v", s)
			}
			out += s.SpanID
		case "service.fetch":
			called = s.SpanID
		}
	}
	// What the worker saw of the client, what its callee and the outside saw of the worker.
	if len(seen) != 4 || !strings.HasSuffix(seen[0], "b7ad6b7169203331-01") || seen[1] != "00-0af7651916cd43dd8448eb211c80319c-"+called+"-01" ||
		len(seen[2]) != 55 || !strings.Contains(out, seen[2][36:52]) || seen[3] != "mine" {
		t.Errorf("traceparents: %v; service.fetch is %s, fetch one of %s", seen, called, out)
	}
	// The same trace is an example beside its bucket, in OpenMetrics alone.
	for accept, examples := range map[string]bool{"application/openmetrics-text; version=1.0.0": true, "text/plain": false} {
		a, err := n.ask(n.client(n.info.Admin, nil), "GET", "http://admin/metrics", nil, "Accept", accept)
		if got := strings.Contains(a.body, `trace_id="0af7651916cd43dd8448eb211c80319c"`); err != nil || got != examples {
			t.Errorf("%s: examples %t, %v", accept, got, err)
		}
	}
	if _, headers := collector.Messages(); headers[0].Get("X-Api-Key") != "k3y" {
		t.Error("the collector did not get its header")
	}
	if code := n.stop(); code != 0 || strings.Contains(n.log.String(), "k3y") {
		t.Errorf("exit %d, or the key in the log", code)
	}
}

// Traces that begin here, by the node's own ratio: a request whose client says that it be not recorded, a delivery of a queue, a request of
// the Host API; and what ended last is sent by the stop.
func TestOwnTraces(t *testing.T) {
	t.Parallel()
	collector := tracetest.Start(t, false)
	n := startBinary(t, binary, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL + "/", "OTEL_SERVICE_NAME=edge-test"}, t.TempDir(), "--trace-sample", "1")
	tasks := n.made("AtLeastOnceQueue/0.2.0/", "tasks", object{"messageRetentionSeconds": 3600})
	worker := n.served("q", `export default {
		async fetch(request, env) { await env.TASKS.send('one'); return new Response('sent'); },
		async queue(batch, env) {},
	};`, object{"handlers": []string{"fetch", "queue"}, "queueProducerBindings": []bound{{"TASKS", ref{tasks}}}})
	n.made("QueueConsumer/0.3.0/", "q.consumer", object{"queue": ref{tasks}, "worker": ref{worker}, "maxBatchSize": 10, "maxBatchTimeoutSeconds": 0,
		"maxConcurrency": 1, "maxRetries": 3, "retryDelaySeconds": 0})
	expect(t, "send", n.do("GET", n.address("q", worker)+"/", nil, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"), 200, "sent")
	spans := collector.Wait("the delivery", func(spans []tracetest.Span) bool {
		return slices.ContainsFunc(spans, func(s tracetest.Span) bool { return s.Name == "queue.deliver" }) &&
			slices.ContainsFunc(spans, func(s tracetest.Span) bool { return s.Name == "GET" && s.Attributes["url.path"] == "/" })
	})
	for _, s := range spans {
		switch {
		case s.TraceID == "0af7651916cd43dd8448eb211c80319c":
			t.Errorf("a client's trace goes on: %+v", s)
		case s.Name == "queue.deliver" && (s.Parent != "" || s.Kind != 5 || s.Attributes["messaging.destination.name"] != "tasks" || s.Attributes["messaging.batch.message_count"] != int64(1)):
			t.Errorf("the delivery is %+v", s)
		case s.Name == "GET" && s.Attributes["url.path"] == "/" && (len(s.Links) != 1 || s.Parent != ""):
			t.Errorf("the request is %+v", s)
		}
	}
	if got := collector.Resource(); got["service.name"] != "edge-test" || got["service.instance.id"] == nil {
		t.Errorf("resource %v", got)
	}
	n.api("GET", "/apis/forms.takoform.com/v2/resources?last", nil)
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	spans = collector.Spans()
	if last := spans[len(spans)-1]; last.Attributes["url.path"] != "/apis/forms.takoform.com/v2/resources" {
		t.Errorf("the last span is %+v, want the request before the stop", last)
	}
}
