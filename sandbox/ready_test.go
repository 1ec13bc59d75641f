package sandbox

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// What an invocation begins with is new to it (module-worker §3), whatever the one before did with its own: nothing that was said, kept,
// hidden or bent is seen by the next, and what was kept stays what it was.
func TestEachRequestIsNew(t *testing.T) {
	const modules = `let kept, stolen, n = 0;
		const weak = new WeakMap(), seen = new WeakSet();
		const slots = new Proxy(new Response('bait'), { get(target, name) { if (typeof name === 'symbol') stolen ??= name; return target[name]; } });
		try { Response.prototype.text.call(slots).catch(() => {}); } catch {}
		const own = (o) => Reflect.ownKeys(o).length + (Object.isExtensible(o) ? '' : '!');
		const look = (...all) => all.map((o) => own(o) + (weak.get(o) ?? '') + seen.has(o)).join();`
	handlers := []string{ // kept: what is looked at later, of the last request
		"kept = 1",
		"kept = request", "kept = env", "kept = context", "kept = [request, env, context]",
		"kept = request.url", "kept = request.headers", "kept = request.method", "kept = request.clone()", "kept = request.signal", "kept = request.headers.get('n')",
		"kept = request[stolen]", "kept = request[stolen]?.[5]", "kept = request[stolen]?.[1]", "kept = request[stolen]?.[9]", "kept = request[stolen]?.[9]; kept[0] = 0",
		"weak.set(request, 'w'); kept = 1", "weak.set(env, 'w'); kept = 1", "weak.set(context, 'w'); kept = 1", "seen.add(request); seen.add(context); kept = 1",
		"request.x = 1; kept = 1", "env.x = 1; kept = 1", "context.x = 1; kept = 1", "env.x = 1; delete env.x; kept = 1", "delete env.x; kept = 1",
		"Object.preventExtensions(request); kept = 1", "Object.freeze(env); kept = 1", "Object.seal(context); kept = 1",
		"Object.setPrototypeOf(request, Request.prototype); kept = 1", "Object.setPrototypeOf(env, null); kept = 1", "env.__proto__ = { x: 1 }; kept = 1",
		"kept = () => request.url", "kept = { [request.url]: 1 }; kept = Object.keys(kept)[0]", "kept = request[stolen]?.[5]; ({ [kept]: 1 })", "kept = new WeakRef(request)",
		"kept = Promise.resolve(request)", "kept = new Map([[request, env]])", "kept = new Request(request)", "context.waitUntil(Promise.resolve(request)); kept = 1",
		"await null; kept = request.url", "await request.text(); kept = 1", "if (request.method === 'POST') kept = await request.text()", "kept = request.body",
	}
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{Isolation: isolation})
		for _, handler := range handlers {
			v := openWorker(t, s, fmt.Sprintf(`%s; export default { async fetch(request, env, context) {
				const before = look(request, env, context), same = kept === request || kept === env || kept === context;
				const old = typeof kept === 'string' ? kept : kept?.url ?? '';
				const mine = n %% 3 === 2 ? request.url + request.headers.get('n') + request.method : '';
				n++;
				%s;
				return new Response([before, same, old, mine].join(' '));
			} }`, modules, handler))
			last := ""
			for i := range 6 {
				req := request()
				req.URL = fmt.Appendf(nil, "http://worker.test/%s%d", strings.Repeat("p", i*7%5), i)
				req.Header = fmt.Appendf(nil, "host\nworker.test\nn\n%d\n", i)
				got := serve(t, v, req)
				parts := strings.SplitN(got.body, " ", 4)
				if len(parts) != 4 || parts[0] != "0false,0false,0false" || parts[1] != "false" {
					t.Fatalf("%d: %s: request %d sees %q", isolation, handler, i, got.body)
				}
				if old := parts[2]; isolation == IsolateRequest && old != "" || strings.HasPrefix(old, "http") && old != last || strings.HasPrefix(last, "GET") {
					t.Errorf("%d: %s: in request %d what request %d kept is %q", isolation, handler, i, i-1, old)
				}
				if mine := parts[3]; mine != "" && mine != fmt.Sprintf("%s%dGET", req.URL, i) {
					t.Errorf("%d: %s: request %d is told that it is %q", isolation, handler, i, mine)
				}
				last = string(req.URL)
			}
		}
	}
}

// An invocation that leaves alone what it began with leaves it to the next.
func TestReadyIsKept(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	for handler, kept := range map[string]bool{
		"return new Response('x')": true, "return Response.json({ a: typeof request, b: env, c: typeof context })": true, "await null; return new Response(null)": true,
		"return new Response(request.url)": true, "return new Response(request.headers.get('accept') + request.method + await request.text())": true,
		"return new Response(new URL(request.url).pathname + [...request.headers].length)": true, "globalThis.u = request.url; return new Response('x')": true,
		"globalThis.h = request.headers; return new Response('x')": false, "return new Response(request.signal)": false, "return new Response(null, request)": true,
		"globalThis.r = request; return new Response('x')": false, "context.waitUntil(1); return new Response('x')": false,
		"return new Response(new ReadableStream({ start(c) { c.close() } }))": false, "setTimeout(() => 1); return new Response('x')": false,
	} {
		v := openWorker(t, s, fmt.Sprintf("export default { async fetch(request, env, context) { %s } }", handler))
		for range 3 {
			serve(t, v, request())
			for ready, _ := v.Pool(); ready == 0; ready, _ = v.Pool() { // what outlives its response is given back later
				runtime.Gosched()
			}
			if g := v.ready[0]; g.ready.whole != kept {
				t.Errorf("%s: kept: %v", handler, g.ready.whole)
			}
		}
	}
}

// What does not fit where it is written is told all the same: long and foreign URLs, headers and methods, by turns with short ones.
func TestRequestsOfAllSizes(t *testing.T) {
	const source = `export default { async fetch(request) {
		return new Response([request.method, request.url, request.headers.get('a'), request.method === 'POST' ? await request.text() : null].join(' '));
	} }`
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{Isolation: isolation})
		v := openWorker(t, s, source)
		for round := range 3 {
			for _, n := range []int{1, 17, 470, 490, 1489, 1490, 1500, 9000} {
				for _, c := range []struct{ method, path, value, seen, url string }{
					{"GET", strings.Repeat("p", n), "1", "1", ""}, {"PURGE", "x", strings.Repeat("v", n), strings.Repeat("v", n), ""}, {"POST", "", "\xe9t\xe9", "été", ""},
					{strings.Repeat("M", n%40+1), "caf\u00e9/\u20ac", "", "", "caf%C3%A9/%E2%82%AC"},
				} {
					req := request()
					req.Method, req.URL, req.Header = []byte(c.method), []byte("http://worker.test/"+c.path), []byte("a\n"+c.value+"\n")
					body := ""
					if c.method == "POST" {
						body = fmt.Sprint("body ", round)
						req.Body, req.Length = &slowBody{strings.NewReader(body), make(chan struct{})}, int64(len(body))
					}
					url := c.url
					if url == "" {
						url = c.path
					}
					want := fmt.Sprintf("%s http://worker.test/%s %s %s", c.method, url, c.seen, body)
					if got := serve(t, v, req); got.body != want {
						t.Fatalf("%d: %.80q, want %.80q", isolation, got.body, want)
					}
				}
			}
		}
	}
}

// A request that is kept stays what it is, whatever was looked at, and goes on answering what it answered.
func TestKeptRequestsStay(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openWorker(t, s, `const all = []; export default { async fetch(request) {
		const text = await request.text();
		all.push({ request, headers: request.headers, url: request.url, text, used: request.bodyUsed });
		for (const one of all) {
			const r = one.request;
			if (r.headers !== one.headers || r.url !== one.url || r.headers.get('n') !== one.text || r.bodyUsed !== one.used) return new Response('changed');
		}
		return new Response('same') } }`)
	for i := range 8 {
		text := fmt.Sprint(i)
		req := post(&slowBody{strings.NewReader(text), make(chan struct{})}, int64(len(text)))
		req.URL, req.Header = fmt.Appendf(nil, "http://worker.test/%d", i), fmt.Appendf(nil, "n\n%d\n", i)
		if got := serve(t, v, req).body; got != "same" {
			t.Errorf("after request %d one that was kept has %s", i, got)
		}
	}
}

// A body comes to an invocation whose beginning was made for one without: of a guest that somebody kept things of.
func TestBodyAfterNone(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openWorker(t, s, `let kept; export default { async fetch(request, env) { if (!kept) kept = env; return new Response(request.method === 'POST' ? await request.text() : 'none') } }`)
	for range lastEvery + 1 {
		text(t, v)
	}
	if !v.ready[0].ready.whole {
		t.Fatal("nothing is kept again")
	}
	for _, body := range []string{"first", "", "second", "", "third"} {
		req, want := request(), "none"
		if body != "" {
			req, want = post(&slowBody{strings.NewReader(body), make(chan struct{})}, int64(len(body))), body
		}
		if got := serve(t, v, req).body; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A sandbox that goes over to another version takes nothing of what the last one's invocations began with along.
func TestReadyEndsWithItsVersion(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker, MaxInstances: 1})
	var versions []*Version
	for i, name := range []string{"a", "b", "c"} {
		versions = append(versions, openWorker(t, s, fmt.Sprintf(`globalThis.all = Array.from({ length: %d }, () => ({ a: [] }));
			let calls = 0;
			export default { fetch(request, env, context) {
				const first = calls++ === 0 ? Object.prototype.toString.call(request) + Object.prototype.toString.call(context) + request.url : '';
				return new Response('%s' + first) } }`, 100*i, name)))
	}
	quiet := openWorker(t, s, fetcher("return new Response('quiet')"))
	for i := range 6 {
		if got := text(t, quiet); got != "quiet" || !quiet.ready[0].ready.whole {
			t.Fatalf("got %q, and nothing is kept", got)
		}
		v, want := versions[i%3], string("abc"[i%3])+"[object Request][object ExecutionContext]http://worker.test/path?q=1"
		if got := text(t, v); got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
}

// Nor does one that has gone back to its image, whatever the first invocation of its new life is.
func TestReadyEndsWithAReset(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker, ReuseRequests: 3})
	v := openVersion(t, s, Spec{Handlers: []string{"fetch", "queue"}, Graph: graphOf(`let kept; export default {
		fetch(request) { const url = request.url; kept = [kept, request, url]; return new Response(url + request.headers.get('n')) },
		queue(batch) { kept = { size: batch.messages.length, all: Array.from({ length: 50 }, () => 'x'.repeat(490)) } } }`)})
	for i := range 60 {
		if i%4 == 3 {
			batch := &event.Batch{ID: "b", Queue: "tasks", Messages: make([]event.Message, 1), Settler: &recorder{}}
			if _, err := v.Queue(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			continue
		}
		req := request()
		req.URL, req.Header = fmt.Appendf(nil, "http://worker.test/%d", i), fmt.Appendf(nil, "n\n%d\n", i)
		if got, want := serve(t, v, req).body, fmt.Sprintf("%s%d", req.URL, i); got != want {
			t.Fatalf("request %d: %q, want %q", i, got, want)
		}
		if g := v.ready[0]; g.served == 0 && (g.ready.list != 0 || g.ready.rooms != [numRooms]engine.Value{}) {
			t.Fatalf("after request %d the image is back, and values from before are held", i)
		}
	}
}

// Who waits for what an invocation began with to be collected hears of it in that invocation's time, not in another client's.
func TestFinalizersRunInTheirInvocation(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openWorker(t, s, `let n = 0; const ran = [], registry = new FinalizationRegistry((of) => ran.push(of + ':' + n));
		export default { fetch(request, env, context) {
			const before = ran.join();
			n++;
			registry.register([request, env, context][n % 3], n);
			return new Response(before) } }`)
	want := []string{}
	for n := 1; n < 7; n++ {
		if got := text(t, v); got != strings.Join(want, ",") {
			t.Errorf("before request %d there ran %q, want %q", n, got, strings.Join(want, ","))
		}
		want = append(want, fmt.Sprintf("%d:%d", n, n))
	}
}

// A finalizer runs when its invocation is over: it can begin nothing that would end in another's time. One that throws costs nobody the worker's
// state.
func TestFinalizersBeginNothing(t *testing.T) {
	var log logs
	s := newBox(t, Options{Isolation: IsolateWorker, Console: log.add})
	for _, what := range []string{"try { setTimeout(() => 1); leaked++ } catch {}", "new Request('http://a.test/', { method: 'POST', body: 'x' }).body.getReader().read().then(() => 1)",
		"fetch('http://a.test/').then(() => { leaked++ }, () => {})", "body.read().then(() => { leaked++ })", "throw new Error('thrown')", "Promise.reject(1)"} {
		v := openWorker(t, s, fmt.Sprintf(`let n = 0, leaked = 0, body; const registry = new FinalizationRegistry(() => { %s });
			export default { async fetch(request) {
				n++;
				if (request.body) body = request.body.getReader();
				registry.register(request);
				if (request.headers.get('accept') === 'wait') await new Promise((done) => setTimeout(done, 1));
				return new Response(n + ' ' + leaked) } }`, what))
		for i := range 6 {
			req := request()
			if i%2 == 1 {
				req.Header = []byte("accept\nwait\n")
			}
			if got, want := serve(t, v, req).body, fmt.Sprintf("%d 0", i+1); got != want {
				t.Errorf("%s: request %d got %q, want %q", what, i, got, want)
			}
		}
		if g := v.ready[0]; g.operations != 0 || len(g.ended) != 0 || g.timers.len() != 0 {
			t.Errorf("%s: %d operations and %d timers are left", what, g.operations, g.timers.len())
		}
	}
}

// The collector, which a guest that is reused runs, meets nothing that was freed of what the image began with.
func TestReadyAndTheCollector(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openWorker(t, s, `let first; export default { fetch(request, env) {
		first ??= env;
		for (let i = 0; i < 3000; i++) { const a = { text: 'x'.repeat(2000) }; a.a = a }
		return new Response('ok') } }`)
	for i := range 12 {
		if got := text(t, v); got != "ok" {
			t.Fatalf("request %d: %q", i, got)
		}
	}
	if g := v.ready[0]; g.served != 12 {
		t.Errorf("the sandbox was reset: it has served %d", g.served)
	}
}

// A worker that has got hold of a slot and lays a trap for it on the prototypes catches nothing: what an invocation begins with is made without
// code of the worker's.
func TestTrapsCatchNoRequest(t *testing.T) {
	const source = `let stolen; const caught = [];
		const slots = new Proxy(new Response('bait'), { get(target, name) { if (typeof name === 'symbol') stolen ??= name; return target[name]; } });
		try { Response.prototype.text.call(slots).catch(() => {}); } catch {}
		if (stolen) for (const prototype of [Request.prototype, Object.prototype]) Object.defineProperty(prototype, stolen, { set(state) {
			caught.push(state[5]); Object.defineProperty(this, stolen, { value: state, writable: true, enumerable: true, configurable: true }); %s } });
		export default { fetch(request) { return new Response(caught.filter((text) => text.startsWith?.('http')).join() + (stolen ? '' : 'nothing stolen')) } }`
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		for _, more := range []string{"", "throw 1"} {
			s := newBox(t, Options{Isolation: isolation})
			v := openWorker(t, s, fmt.Sprintf(source, more))
			for i := range 3 {
				var res event.Response
				if err := v.Serve(t.Context(), request(), &res); err == nil && collect(&res).body != "" {
					t.Errorf("%d: request %d was caught: %q", isolation, i, res.Body)
				}
			}
		}
	}
}
