package sandbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// module-worker §3: three positional arguments, `this` is the default export, the returned promise is awaited.
func TestHandlerCall(t *testing.T) {
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{Vars: []byte(`{"b":"1","a":{"n":[1,null,true]},"constructor":2,"__proto__":3}`), Graph: graphOf(`
		const self = { tag: 'me', async fetch(...args) {
			await null;
			const [request, env, ctx] = args;
			return Response.json([args.length, this.tag, request.method, request.url, request.headers.get('host'), Object.keys(env), env.a.n,
				Object.getOwnPropertyDescriptor(env, '__proto__').value, Object.getPrototypeOf(env) === Object.prototype, typeof ctx.waitUntil, request.body]);
		} };
		export default self;`)})
	got := serve(t, v, request())
	want := `[3,"me","GET","http://worker.test/path?q=1","worker.test",["b","a","constructor","__proto__"],[1,null,true],3,true,"function",null]`
	if got.status != 200 || got.body != want {
		t.Errorf("got %+v\nwant %s", got, want)
	}
	if !strings.Contains(got.header, "content-type\napplication/json\n") {
		t.Errorf("header %q lacks the type that Response.json sets", got.header)
	}
}

// module-worker §3.1: what a handler may return, and what the host makes of it.
func TestResponses(t *testing.T) {
	s := newBox(t, Options{})
	for _, c := range []struct{ name, source, want string }{
		{"promise", fetcher(`return new Response('a')`), "200 a"},
		{"plain value", `export default { fetch() { return new Response('b', {status: 201}) } }`, "201 b"},
		{"thenable", `export default { fetch() { return { then(ok) { ok(new Response('c')) } } } }`, "200 c"},
		{"bytes", fetcher(`return new Response(new Uint8Array([104, 105]))`), "200 hi"},
		{"null body", fetcher(`return new Response(null, {status: 204})`), "204 null"},
		{"empty body", fetcher(`return new Response('')`), "200 "},
		{"text beyond ASCII", fetcher(`return new Response('é😀\ud800')`), "200 é😀\ufffd"},
		{"after a timer", fetcher(`await new Promise(r => setTimeout(r, 5)); return new Response('d')`), "200 d"},
		{"no response", fetcher(`return 'text'`), "worker_error"},
		{"nothing", fetcher(``), "worker_error"},
		{"an imitation", fetcher(`return { status: 200, body: 'x', headers: new Headers() }`), "worker_error"},
		{"used body", fetcher(`const r = new Response('x'); await r.text(); return r`), "worker_error"},
		{"throw", `export default { fetch() { throw new Error('secret') } }`, "worker_error"},
		{"throw a string", fetcher(`throw 'secret'`), "worker_error"},
		{"rejection", fetcher(`await Promise.reject(new Error('secret'))`), "worker_error"},
		{"thenable that throws", `export default { fetch() { return { get then() { throw 1 } } } }`, "worker_error"},
		{"never settles", fetcher(`await new Promise(() => {})`), "worker_error"},
		{"content-length too small", fetcher(`return new Response('abc', {headers: {'content-length': '2'}})`), "worker_error"},
		{"content-length right", fetcher(`return new Response('abc', {headers: {'content-length': '3'}})`), "200 abc"},
		{"error response", fetcher(`return Response.error()`), "worker_error"},
		{"too many headers", fetcher(`const h = new Headers(); for (let i = 0; i < 300; i++) h.append('x' + i, 'y'); return new Response('', {headers: h})`), "worker_error"},
		{"too large headers", fetcher(`return new Response('', {headers: {x: 'y'.repeat(70000)}})`), "worker_error"},
	} {
		v := openWorker(t, s, c.source)
		start := time.Now()
		var res event.Response
		got := ""
		if err := v.Serve(context.Background(), request(), &res); err != nil {
			got = fault.NameOf(err)
			if strings.Contains(fmt.Sprint(res), "secret") {
				t.Errorf("%s: the response tells what was thrown", c.name)
			}
		} else if got = fmt.Sprint(res.Status, " ", string(res.Body)); res.Null {
			got = fmt.Sprint(res.Status, " null")
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v; what can no longer happen is not waited for", c.name, took)
		}
	}
}

// Repeated headers keep their order; values travel as Latin-1 both ways (fetch: byte strings).
func TestHeaderBytes(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`
		const h = new Headers(); h.append('Set-Cookie', 'a=1'); h.append('set-cookie', 'b=2'); h.set('x-back', request.headers.get('x-in'));
		return new Response('', { headers: h })`))
	req := request()
	req.Header = []byte("x-in\n\xe9\xff!\n")
	got := serve(t, v, req)
	for _, want := range []string{"set-cookie\na=1\nset-cookie\nb=2\n", "x-back\n\xe9\xff!\n"} {
		if !strings.Contains(got.header, want) {
			t.Errorf("header %q lacks %q", got.header, want)
		}
	}
}

// What was thrown, or rejected without a handler, is in the worker's log and nowhere else.
func TestUncaughtIsLogged(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`
		Promise.reject(new Error('nobody cares'));
		const handled = Promise.reject(new Error('handled later')); 
		await null; handled.catch(() => {});
		setTimeout(() => { throw new TypeError('in a timer') }, 1);
		queueMicrotask(() => { throw new RangeError('in a job') });
		await new Promise(r => setTimeout(r, 5));
		throw new Error('at the end')`))
	wantErr(t, serveErr(v), event.ErrWorker)
	got := l.String()
	for _, want := range []string{"nobody cares", "TypeError: in a timer", "RangeError: in a job", "Error: at the end"} {
		if !strings.Contains(got, want) {
			t.Errorf("log lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "handled later") || strings.Count(got, "at the end") > 2 {
		t.Errorf("log says too much:\n%s", got)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.list[0]; e.Version != v.spec.UID || e.Level != LevelUncaught {
		t.Errorf("entry %+v does not say whose it is", e)
	}
}

// module-worker §7: every invocation starts from the snapshot; module-level code ran once.
func TestIsolationRequest(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, `let n = 0; const loaded = Math.random(); const at = Date.now();
		export default { async fetch() { n++; globalThis.leak = (globalThis.leak ?? 0) + 1; Array.prototype.mine ??= n;
			return Response.json([n, leak, loaded, Math.random(), crypto.randomUUID(), Date.now() >= at]) } }`)
	seen := map[string]bool{}
	first := ""
	for range 20 {
		var n, leak int
		var loaded, fresh float64
		var id string
		body := text(t, v)
		if _, err := fmt.Sscanf(strings.NewReplacer("[", "", "]", "", ",", " ", `"`, "").Replace(body), "%d %d %g %g %s", &n, &leak, &loaded, &fresh, &id); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if n != 1 || leak != 1 {
			t.Fatalf("an invocation sees another one's state: %s", body)
		}
		if first == "" {
			first = fmt.Sprint(loaded)
		}
		if fmt.Sprint(loaded) != first {
			t.Fatalf("module-level code ran again: %s", body)
		}
		if key := fmt.Sprint(fresh); seen[key] || seen[id] {
			t.Fatalf("two invocations drew the same randomness: %s", body)
		} else {
			seen[key], seen[id] = true, true
		}
	}
}

// Isolation worker: state is kept for ReuseRequests invocations; what belongs to one invocation still ends with it.
func TestIsolationWorker(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker, ReuseRequests: 3})
	v := openWorker(t, s, `let n = 0, old; export default { async fetch(request, env, ctx) {
		n++; let expired = '';
		if (old) { try { old.waitUntil(1) } catch (e) { expired = e.name } }
		old = ctx; setTimeout(() => { n += 100 }, 1); setInterval(() => { n += 100 }, 1);
		return new Response(n + expired) } }`)
	var got []string
	for range 7 {
		got = append(got, text(t, v))
	}
	if want := "1 2context_expired 3context_expired 1 2context_expired 3context_expired 1"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// A reused sandbox must not grow: values are freed, cycles collected.
func TestIsolationWorkerFreesValues(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker, ReuseRequests: 1 << 30, ReuseFor: time.Hour})
	v := openWorker(t, s, fetcher(`setTimeout(() => {}, 1e6, 'y'.repeat(1000)); return new Response('x'.repeat(1000), {headers: {a: 'b'}})`))
	heap := func() int64 {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.ready[0].in.HeapBytes()
	}
	for range 50 {
		text(t, v)
	}
	before := heap()
	for range 500 {
		text(t, v)
	}
	if grown := heap() - before; grown > 64<<10 {
		t.Errorf("500 invocations left %d bytes", grown)
	}
}

// Two tenants run on the same few sandboxes and never meet.
func TestTenantsShareNothing(t *testing.T) {
	s := newBox(t, Options{MaxInstances: 1})
	source := `const mark = '%s'; let bytes = new Uint8Array(3000000).fill(%d);
		export default { async fetch(request, env) {
			const found = globalThis.secret ?? 'none'; globalThis.secret = mark; globalThis.big = bytes.slice();
			return Response.json([mark, found, bytes[0], bytes[2999999], env.who]) } }`
	var versions []*Version
	for i, name := range []string{"alpha", "beta"} {
		versions = append(versions, openVersion(t, s, Spec{Tenant: name, Vars: fmt.Appendf(nil, `{"who":"%s"}`, name), Graph: graphOf(fmt.Sprintf(source, name, i+1))}))
	}
	for round := range 10 {
		for i, name := range []string{"alpha", "beta"} {
			want := fmt.Sprintf(`["%s","none",%d,%d,"%s"]`, name, i+1, i+1, name)
			if got := text(t, versions[i]); got != want {
				t.Fatalf("round %d: got %s, want %s", round, got, want)
			}
		}
	}
	if live, _ := s.Instances(); live != 1 {
		t.Errorf("%d sandboxes, want 1", live)
	}
}

// A sandbox that serves the same kind of request again and again is reset without asking the kernel what was written; one
// that waited in between is not, because it may have run on several threads.
func TestResetsUnderWatch(t *testing.T) {
	s := newBox(t, Options{})
	if s.engine.ResetMethod() == engine.ResetWhole {
		t.Skip("written pages cannot be found on this machine")
	}
	const rounds = 60
	scans := func(v *Version) uint64 {
		for range 3 {
			text(t, v)
		}
		before := v.ready[0].in.Stats().Scans
		for range rounds {
			text(t, v)
		}
		return v.ready[0].in.Stats().Scans - before
	}
	if n := scans(openWorker(t, s, fetcher(`return new Response('at once')`))); n > rounds/3 {
		t.Errorf("%d of %d resets asked the kernel", n, rounds)
	}
	if n := scans(openWorker(t, s, fetcher(`await new Promise(r => setTimeout(r, 1)); return new Response('later')`))); n != rounds {
		t.Errorf("%d of %d resets of a sandbox that waited asked the kernel", n, rounds)
	}
}

// What a small request writes lies on few pages, and keeps lying there: each costs its reset a copy. Two of them only
// count because they are private from the start.
func TestSmallRequestsWriteFewPages(t *testing.T) {
	s := newBox(t, Options{})
	if m := s.engine.ResetMethod(); m == engine.ResetWhole {
		t.Skip("written pages are not known here")
	}
	v := openWorker(t, s, fetcher(`return new Response('Hello World')`))
	var res event.Response
	for range 3 {
		res.Reset()
		if err := v.Serve(context.Background(), request(), &res); err != nil {
			t.Fatal(err)
		}
	}
	const most = 24 // 18 when this was written, 40 before Pack and ready arguments
	if n := v.ready[0].in.Stats().LastPages; n > most {
		t.Errorf("%d pages, want at most %d", n, most)
	}
}

// The first invocation of an image is given arguments that lie ready in it, later ones are given new ones: nobody can
// tell, and nothing of one is in the next (module-worker §3).
func TestArgumentsOfEveryInvocationAreItsOwn(t *testing.T) {
	const source = `let last; export default { async fetch(request, env, ctx) {
		const fresh = !last || (last[0] !== request && last[1] !== env && last[2] !== ctx);
		last = [request, env, ctx];
		const out = [fresh, request.method, request.url, request.headers.get('a'), Object.keys(env), Object.keys(ctx), Object.keys(request)];
		env.x = ctx.x = request.x = 1;
		return new Response(out.join()) } }`
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		v := openWorker(t, newBox(t, Options{Isolation: isolation}), source)
		for _, method := range []string{"GET", "POST", "GET"} {
			req := request()
			req.Method, req.URL, req.Header = []byte(method), []byte("http://"+strings.ToLower(method)+".test/"), []byte("a\n"+method+"\n")
			if got, want := serve(t, v, req).body, "true,"+method+",http://"+strings.ToLower(method)+".test/,"+method+",,,"; got != want {
				t.Errorf("%v: got %s, want %s", isolation, got, want)
			}
		}
	}
}
