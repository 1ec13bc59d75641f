package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// funcService is a service in Go.
type funcService func(ctx context.Context, req *event.Request, res *event.Response) error

func (f funcService) Serve(ctx context.Context, req *event.Request, res *event.Response) error {
	return f(ctx, req, res)
}

// funcFetcher is the outside in Go.
type funcFetcher func(ctx context.Context, o *binding.Outbound, res *event.Response) error

func (f funcFetcher) Fetch(ctx context.Context, o *binding.Outbound, res *event.Response) error {
	return f(ctx, o, res)
}

func caller(t *testing.T, s *Sandbox, service binding.Service, body string) *Version {
	return openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "OTHER", Service: service}}, Graph: graphOf(told + fetcher(body))})
}

// service-binding §1: a Request or a URL with init; path, method, headers and body reach the callee, its whole answer the
// caller.
func TestServiceCall(t *testing.T) {
	s := newBox(t, Options{})
	callee := openWorker(t, s, fetcher(`
		const body = request.body === null ? null : await request.text();
		return new Response(JSON.stringify([request.method, request.url, request.headers.get('x-a'), request.headers.get('edged-x'), body]),
			{status: 201, headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['x-b', 'c']]});`))
	for _, c := range []struct{ script, want string }{
		{`await env.OTHER.fetch('http://ignored/p?q=1')`, `["GET","http://ignored/p?q=1",null,null,null]`},
		{`await env.OTHER.fetch(new Request('http://h/', {method: 'PUT', body: 'hé', headers: {'x-a': 'v', 'edged-x': 'no'}}))`, `["PUT","http://h/","v",null,"hé"]`},
		{`await env.OTHER.fetch('http://h/', {method: 'POST', body: new Uint8Array([104, 105])})`, `["POST","http://h/",null,null,"hi"]`},
		{`await env.OTHER.fetch('http://h/', {method: 'POST', body: ''})`, `["POST","http://h/",null,null,""]`},
		{`await env.OTHER.fetch('http://h/', {method: 'POST', duplex: 'half', body: new ReadableStream({start(c) { c.enqueue(new Uint8Array(70000).fill(97)); c.enqueue(new Uint8Array([98])); c.close() }})})`,
			`["POST","http://h/",null,null,"` + strings.Repeat("a", 70000) + `b"]`},
	} {
		v := caller(t, s, callee, `const r = `+c.script+`; return new Response(await r.text() + '|' + r.status + r.headers.getSetCookie() + r.headers.get('x-b') + r.url + r.type)`)
		if got := serve(t, v, request()); got.body != c.want+"|201a=1,b=2cdefault" {
			t.Errorf("%s: got %d %.200q", c.script, got.status, got.body)
		}
	}
	for _, c := range []struct{ script, want string }{
		{`env.OTHER.fetch()`, "TypeError"},
		{`env.OTHER.fetch('/relative')`, "TypeError"},
		{`env.OTHER.fetch('http://h/', {}, 1)`, "TypeError"},
		{`env.OTHER.fetch('http://h/', {signal: AbortSignal.abort()})`, "AbortError"},
		{`Promise.resolve(Object.keys(Object.getPrototypeOf(env.OTHER)))`, `["fetch"]`},
	} {
		if got := serve(t, caller(t, s, callee, `return new Response(await told(`+c.script+`))`), request()); got.body != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got.body, c.want)
		}
	}
}

// service-binding §2: what the caller sees of each situation of the callee.
func TestServiceOutcomes(t *testing.T) {
	s := newBox(t, Options{})
	show := `return new Response(await env.OTHER.fetch('http://h/').then(async (r) => r.status + ' ' + await r.text(), (e) => e.name))`
	retired := openWorker(t, s, fetcher(`return new Response('x')`))
	if err := retired.Retire(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		svc  binding.Service
		want string
	}{
		{"throws", openWorker(t, s, fetcher(`throw new Error('secret')`)), "500 worker_error\n"},
		{"no response", openWorker(t, s, fetcher(`return 1`)), "500 worker_error\n"},
		{"cannot run", retired, "backend_unavailable"},
		{"too large", funcService(func(context.Context, *event.Request, *event.Response) error { return event.ErrBodyTooBig }), "request_too_large"},
		{"panics", funcService(func(context.Context, *event.Request, *event.Response) error { panic("bug") }), "backend_unavailable"},
		{"null body", openWorker(t, s, fetcher(`return new Response(null, {status: 204})`)), "204 "},
	} {
		if got := serve(t, caller(t, s, c.svc, show), request()); got.body != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got.body, c.want)
		}
	}
}

// service-binding §4: nested calls are bounded.
func TestServiceDepth(t *testing.T) {
	s := newBox(t, Options{})
	var v *Version
	deepest := 0
	self := funcService(func(ctx context.Context, req *event.Request, res *event.Response) error {
		deepest = max(deepest, depthOf(ctx))
		return v.Serve(ctx, req, res)
	})
	v = caller(t, s, self, `return new Response(await env.OTHER.fetch('http://h/').then((r) => r.text(), (e) => e.name))`)
	if got := serve(t, v, request()); got.body != "backend_unavailable" || deepest != maxDepth {
		t.Errorf("got %q at depth %d, want backend_unavailable below %d", got.body, deepest, maxDepth)
	}
}

// service-binding §3: the callee starts before a body byte exists, the call resolves before a byte of the response does,
// and both bodies are paced by their readers.
func TestServiceStreams(t *testing.T) {
	s := newBox(t, Options{})
	callee := openWorker(t, s, fetcher(`
		const {readable, writable} = new TransformStream({transform(chunk, c) { c.enqueue(new TextEncoder().encode('<' + new TextDecoder().decode(chunk) + '>')) }});
		request.body.pipeTo(writable);
		return new Response(readable);`))
	v := caller(t, s, callee, `
		let c; const body = new ReadableStream({start(x) { c = x }});
		const r = await env.OTHER.fetch('http://h/', {method: 'POST', body, duplex: 'half'});
		const reader = r.body.getReader(), text = async () => { const {value, done} = await reader.read(); return done ? 'end' : new TextDecoder().decode(value) };
		const out = [];
		for (const x of ['a', 'b']) { c.enqueue(new TextEncoder().encode(x)); out.push(await text()); }
		c.close();
		out.push(await text());
		return Response.json(out);`)
	if got := serve(t, v, request()); got.body != `["<a>","<b>","end"]` {
		t.Errorf("got %d %q", got.status, got.body)
	}
}

// service-binding §3: a failed body is a failed body on the other side; cancelling and aborting cross over too.
func TestServiceBodiesFail(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	callee := openWorker(t, s, fetcher(`
		const mode = new URL(request.url).pathname;
		if (mode === '/read') return new Response(await request.text().then(() => 'whole', (e) => e.name));
		if (mode === '/cancel') { await request.body.cancel(); return new Response('cancelled'); }
		if (mode === '/abort') { request.signal.addEventListener('abort', () => console.log('callee aborted')); await new Promise((ok) => setTimeout(ok, 3600000)); }
		return new Response(new ReadableStream({pull(c) { c.enqueue(new Uint8Array(1)); if (mode === '/fail' && ++this.n > 2) c.error(new Error('x')) }, cancel() { console.log('callee cancelled') }, n: 0}));`))
	for _, c := range []struct{ name, script, want, log string }{
		{"request stream fails", `return new Response(await env.OTHER.fetch('http://h/read', {method: 'POST', duplex: 'half',
			body: new ReadableStream({pull(c) { c.error(new RangeError('mine')) }})}).then((r) => r.text(), (e) => e.name))`, "RangeError", ""},
		{"callee cancels", `let done; const cancelled = new Promise((ok) => { done = ok });
			const r = await env.OTHER.fetch('http://h/cancel', {method: 'POST', duplex: 'half', body: new ReadableStream({pull(c) { c.enqueue(new Uint8Array(9)) }, cancel() { done('mine too') }})});
			return new Response(await r.text() + ' ' + await cancelled)`, "cancelled mine too", ""},
		{"response fails", `const r = await env.OTHER.fetch('http://h/fail'); return new Response(r.status + ' ' + await r.text().then(() => 'whole', (e) => e.name))`, "200 TypeError", ""},
		{"response cancelled", `const r = await env.OTHER.fetch('http://h/'); const reader = r.body.getReader(); await reader.read(); await reader.cancel(); return new Response('ok')`, "ok", "callee cancelled"},
		{"response left alone", `await env.OTHER.fetch('http://h/'); return new Response('ok')`, "ok", "callee cancelled"},
		{"aborted before", `const a = new AbortController(); setTimeout(() => a.abort(new RangeError('mine')), 5);
			return new Response(await told(env.OTHER.fetch('http://h/abort', {signal: a.signal})))`, "RangeError", "callee aborted"},
		{"aborted after", `const a = new AbortController(); const r = await env.OTHER.fetch('http://h/', {signal: a.signal}); const reader = r.body.getReader(); await reader.read();
			a.abort(); return new Response(await told(reader.read()))`, "AbortError", "callee cancelled"},
	} {
		if got := serve(t, caller(t, s, callee, c.script), request()); got.body != c.want {
			t.Errorf("%s: got %d %q, want %q", c.name, got.status, got.body, c.want)
		}
		if c.log != "" {
			l.await(t, c.log)
			l = logs{}
		}
	}
}

// slowBody gives pieces and remembers whether it was closed.
type slowBody struct {
	io.Reader
	closed chan struct{}
}

func (b *slowBody) TryRead([]byte) (int, error) { return 0, nil }
func (b *slowBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

// A body that a worker only forwards never enters the guest: request to service, service to response, outside to
// response.
func TestForwardedBodiesAreSpliced(t *testing.T) {
	s := newBox(t, Options{Fetch: funcFetcher(func(_ context.Context, o *binding.Outbound, res *event.Response) error {
		res.Status, res.Header = 200, []byte("x-up\nyes\n")
		res.Stream = o.Request.Body.(io.ReadCloser)
		o.URL = string(o.Request.URL)
		return nil
	})})
	size := 3 << 20
	want := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	callee := openWorker(t, s, fetcher(`return new Response(request.body, {headers: {'x-up': 'yes'}})`))
	for _, script := range []string{
		`return new Response(request.body, {headers: {'x-up': 'yes'}})`,
		`return env.OTHER.fetch(request)`,
		`return env.OTHER.fetch(new Request(request, {headers: {}}))`,
		`const r = await env.OTHER.fetch('http://h/', {method: 'POST', body: request.body, duplex: 'half'}); return new Response(r.body, r)`,
		`return fetch('http://out.test/', {method: 'POST', body: request.body, duplex: 'half'})`,
	} {
		v := caller(t, s, callee, script)
		req := request()
		req.Method, req.Length = []byte("POST"), -1
		req.Body = &slowBody{bytes.NewReader(want), make(chan struct{})}
		var res event.Response
		res.Reset()
		if err := v.Serve(context.Background(), req, &res); err != nil {
			t.Errorf("%s: %v", script, err)
			continue
		}
		if res.Stream == nil {
			t.Fatalf("%s: no stream", script)
		}
		got, err := io.ReadAll(res.Stream)
		res.Stream.Close()
		if err != nil || !bytes.Equal(got, want) || !strings.Contains(string(res.Header), "x-up\nyes\n") {
			t.Errorf("%s: %d bytes, %v, header %q", script, len(got), err, res.Header)
		}
		if err := v.Retire(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if in, out := counted(t, s.opt.Metrics.bodyIn), counted(t, s.opt.Metrics.bodyOut); in != 0 || out != 0 {
		t.Errorf("%v bytes went into guests and %v out of them, want none", in, out)
	}
}

// module-worker §5: nothing that refuses or fails a request to the outside shows, and there is a cap on requests.
func TestFetchFails(t *testing.T) {
	s := newBox(t, Options{MaxSubrequests: 3, Fetch: funcFetcher(func(context.Context, *binding.Outbound, *event.Response) error {
		return fault.New(fault.Denied, "test", "10.0.0.1 is private")
	})})
	for _, c := range []struct{ script, want string }{
		{`const e = await fetch('http://a.test/').catch((e) => e); return new Response(e.name + ' ' + e.message)`, "TypeError fetch failed"},
		{`const e = await fetch('ftp://a/').catch((e) => e); return new Response(e.name)`, "TypeError"},
		{`const all = await Promise.all([1, 2, 3, 4, 5].map(() => fetch('http://a.test/').catch((e) => e.name))); return new Response(all.join())`, "TypeError,TypeError,TypeError,TypeError,TypeError"},
	} {
		if got := serve(t, openWorker(t, s, fetcher(c.script)), request()); got.body != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got.body, c.want)
		}
	}
	called := 0
	s = newBox(t, Options{MaxSubrequests: 3, Fetch: funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		called++
		res.Status = 200
		return nil
	})})
	v := openWorker(t, s, fetcher(`let n = 0; for (let i = 0; i < 5; i++) await fetch('http://a.test/').then(() => n++, () => {}); return new Response(String(n))`))
	if got := serve(t, v, request()); got.body != "3" || called != 3 {
		t.Errorf("got %q after %d requests, want 3", got.body, called)
	}
}

// An invocation that ends takes its open requests along, whatever they wait for.
func TestExchangeEndsWithInvocation(t *testing.T) {
	s := newBox(t, Options{})
	ended := make(chan error, 1)
	svc := funcService(func(ctx context.Context, req *event.Request, res *event.Response) error {
		<-ctx.Done()
		_, err := req.Body.Read(make([]byte, 1))
		ended <- err
		return fmt.Errorf("given up")
	})
	v := caller(t, s, svc, `env.OTHER.fetch('http://h/', {method: 'POST', duplex: 'half', body: new ReadableStream({})}); return new Response('ok')`)
	if got := serve(t, v, request()); got.body != "ok" {
		t.Fatalf("got %+v", got)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the request body goes on after its invocation")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the call was not ended")
	}
}

// counted reads a counter.
func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// node-surface §2: the wall limit does not count the time in which a handler can only wait for the client's next body
// bytes, also when it has handed the body on.
func TestForwardedUploadMayBeSlow(t *testing.T) {
	s := newBox(t, Options{MaxWall: time.Second})
	svc := funcService(func(_ context.Context, req *event.Request, res *event.Response) error {
		b, err := io.ReadAll(req.Body)
		res.Status, res.Body = 200, b
		return err
	})
	v := caller(t, s, svc, `return env.OTHER.fetch(request)`)
	r, w := io.Pipe()
	go func() {
		for range 4 {
			<-time.After(400 * time.Millisecond)
			w.Write([]byte("x"))
		}
		w.Close()
	}()
	req := request()
	req.Method, req.Length, req.Body = []byte("POST"), -1, &slowBody{r, make(chan struct{})}
	if got := serve(t, v, req); got.body != "xxxx" {
		t.Errorf("got %d %q", got.status, got.body)
	}
}

// A read of the request body that its invocation left open reports to nobody: the next invocation of the sandbox takes no
// foreign answer for one of its own.
func TestOpenReadEndsWithInvocation(t *testing.T) {
	s := newBox(t, Options{MaxInstances: 1})
	kv := newMemoryKV()
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "KV", KV: kv}}, Graph: graphOf(fetcher(`
		if (request.body !== null) { request.body.getReader().read().catch(() => {}); throw new Error('left'); }
		return new Response(String(await env.KV.get('none')));`))})
	for range 20 {
		r, w := io.Pipe()
		req := request()
		req.Method, req.Length, req.Body = []byte("POST"), -1, &pipedBody{r}
		var res event.Response
		if err := v.Serve(context.Background(), req, &res); err == nil {
			t.Fatal("a handler that threw has answered")
		}
		w.Close()
		if got := serve(t, v, request()); got.body != "null" {
			t.Fatalf("the next invocation got %d %q", got.status, got.body)
		}
	}
}

// pipedBody waits for its bytes until it is closed.
type pipedBody struct{ *io.PipeReader }

func (pipedBody) TryRead([]byte) (int, error) { return 0, nil }
