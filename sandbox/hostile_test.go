package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// hostileWorld gives a worker every kind of binding that there is, and an outside which answers without end.
func hostileWorld() []binding.Binding {
	kv := newMemoryKV()
	kv.entries["big"] = binding.KVEntry{Value: make([]byte, 4<<20)}
	return []binding.Binding{
		{Name: "KV", KV: kv},
		{Name: "BUCKET", Bucket: newMemoryBucket(), Counted: true},
		{Name: "SVC", Service: endless},
		{Name: "HANG", Service: funcService(func(ctx context.Context, _ *event.Request, _ *event.Response) error {
			<-ctx.Done()
			return ctx.Err()
		})},
		{Name: "EAT", Service: funcService(func(_ context.Context, req *event.Request, res *event.Response) error {
			res.Status, res.Null = 200, true
			if req.Body != nil {
				_, err := io.Copy(io.Discard, req.Body)
				return err
			}
			return nil
		})},
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
func (zeros) Close() error               { return nil }

var endless = funcService(func(_ context.Context, _ *event.Request, res *event.Response) error {
	res.Status, res.Length, res.Stream = 200, -1, zeros{}
	return nil
})

// module-worker §6: hostile uses of what the host brings. Each ends within its limit and 100 ms more, a neighbour goes on
// serving, the next invocation is clean, and nothing stays behind in the node. "" as the error means any end.
func TestHostileHostCalls(t *testing.T) {
	const cpu, wall = 300 * time.Millisecond, 700 * time.Millisecond
	s := newBox(t, Options{MaxCPU: cpu, MaxWall: wall, MaxWallEvents: wall, MaxMemoryBytes: 32 << 20, MaxCallBytes: 8 << 20,
		Fetch: funcFetcher(func(ctx context.Context, o *binding.Outbound, res *event.Response) error {
			return endless(ctx, o.Request, res)
		})})
	neighbour := openWorker(t, s, fetcher(`return new Response('fine')`))
	loop := `get() { for (;;) {} }`
	for _, c := range []struct {
		name, body string
		limit      time.Duration
	}{
		// Getters and proxies inside the host's conversions.
		{"kv options", `await env.KV.put('k', 'v', {get metadata() { for (;;) {} }})`, cpu},
		{"kv metadata", `await env.KV.put('k', 'v', {metadata: new Proxy({}, {ownKeys() { for (;;) {} }})})`, cpu},
		{"kv list options", `await env.KV.list(new Proxy({}, {` + loop + `}))`, cpu},
		{"bucket options", `await env.BUCKET.put('k', 'v', {get contentType() { for (;;) {} }})`, cpu},
		{"bucket list", `await env.BUCKET.list({get prefix() { for (;;) {} }})`, cpu},
		{"service init", `await env.SVC.fetch('http://h/', {get method() { for (;;) {} }})`, cpu},
		{"fetch init", `await fetch('http://h/', new Proxy({}, {` + loop + `}))`, cpu},
		{"fetch URL", `await fetch({toString() { for (;;) {} }})`, cpu},
		{"headers", `new Headers({[Symbol.iterator]() { return {next() { return {done: false, value: ['a', 'b']} }} }})`, cpu},
		{"header record", `new Headers(new Proxy({a: 'b'}, {getOwnPropertyDescriptor() { for (;;) {} }}))`, cpu},
		{"form data", `const f = new FormData(); f.append('a', {toString() { for (;;) {} }})`, cpu},
		{"form parsing", `await new Response('--b\r\n'.repeat(1e6), {headers: {'content-type': 'multipart/form-data; boundary=b'}}).formData()`, cpu},
		{"URL pattern", `new URLPattern({get pathname() { for (;;) {} }})`, cpu},
		{"URL pattern text", `new URLPattern({pathname: '/' + '(a+)+'.repeat(20)}).exec({pathname: '/' + 'a'.repeat(60) + '!'}); for (;;) {}`, cpu},
		{"Intl options", `new Intl.NumberFormat('en', {get style() { for (;;) {} }})`, cpu},
		{"Intl date", `new Intl.DateTimeFormat('en', new Proxy({}, {` + loop + `}))`, cpu},
		{"compression format", `new CompressionStream({toString() { for (;;) {} }})`, cpu},
		{"clone getter", `structuredClone({get a() { for (;;) {} }})`, cpu},
		{"clone proxy", `structuredClone(new Proxy([], {` + loop + `}))`, cpu},
		{"clone depth", `let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; structuredClone(o); for (;;) {}`, cpu},
		{"crypto algorithm", `await crypto.subtle.digest({get name() { for (;;) {} }}, new Uint8Array(1))`, cpu},
		{"crypto key", `await crypto.subtle.importKey('jwk', {get kty() { for (;;) {} }}, {name: 'HMAC', hash: 'SHA-256'}, true, ['sign'])`, cpu},
		{"console argument", `console.log({get a() { for (;;) {} }, toString() { for (;;) {} }}, new Proxy({}, {` + loop + `})); for (;;) {}`, cpu},
		{"response init", `new Response('', {get status() { for (;;) {} }})`, cpu},
		{"encoder argument", `new TextEncoder().encode({toString() { for (;;) {} }})`, cpu},
		// A host call from inside a getter that a host call's conversion runs.
		{"re-entrant calls", `let n = 0; const o = {get contentType() { if (n++ < 1e9) return env.BUCKET.put('k', 'v', o) && 'a/b'; }}; await env.BUCKET.put('k', 'v', o); for (;;) {}`, cpu},
		{"re-entrant detach", `const b = new Uint8Array(1 << 20); await env.KV.put('k', b, {get metadata() { structuredClone(b.buffer, {transfer: [b.buffer]}); return {} }}); for (;;) {}`, cpu},
		{"re-entrant digest", `const b = new Uint8Array(1 << 20); await crypto.subtle.digest({get name() { b.buffer.transfer(0); return 'SHA-256' }}, b); for (;;) {}`, cpu},
		// Claims of length.
		{"array-like of 2^53", `await fetch('http://h/', {method: 'POST', body: {length: 2 ** 53 - 1, byteLength: 2 ** 53 - 1}}); for (;;) {}`, wall},
		{"headers of 2^53", `new Headers({length: 2 ** 53 - 1, [Symbol.iterator]: Array.prototype[Symbol.iterator]})`, cpu},
		{"content length", `return new Response('x', {headers: {'content-length': '9999999999999'}})`, cpu},
		{"random values", `for (;;) crypto.getRandomValues(new Uint8Array(65536))`, cpu},
		{"big blob", `const b = new Blob(['x'.repeat(1 << 20)]); let c = b; for (;;) c = new Blob([c, c])`, wall},
		// Streams, operations and responses.
		{"stream into a sink", `await env.EAT.fetch('http://h/', {method: 'POST', duplex: 'half', body: new ReadableStream({pull(c) { c.enqueue(new Uint8Array(65536)) }})})`, wall},
		{"endless answer", `await (await fetch('http://h/')).text()`, wall},
		{"answers never read", `const all = []; for (;;) all.push(await fetch('http://h/'))`, wall},
		{"services never read", `const all = []; for (;;) all.push(await env.SVC.fetch('http://h/'))`, wall},
		{"256 operations", `const all = []; for (let i = 0; i < 300; i++) all.push(env.HANG.fetch('http://h/')); await Promise.all(all)`, wall},
		{"operations that hang", `for (let i = 0; i < 256; i++) env.HANG.fetch('http://h/').catch(() => {}); await new Promise(() => {})`, wall},
		{"large values at once", `for (let i = 0; i < 256; i++) env.KV.get('big').catch(() => {}); await env.HANG.fetch('http://h/')`, wall},
		{"timers", `for (;;) setTimeout(() => {}, 0)`, wall},
		{"intervals", `for (let i = 0; i < 9000; i++) setInterval(() => { for (let j = 0; j < 1e4; j++); }, 0); await new Promise(() => {})`, wall},
		{"promises", `for (;;) await null`, cpu},
		{"rejections", `for (;;) Promise.reject(new Error('x'))`, wall},
		{"console", `for (;;) console.log('x'.repeat(100000))`, cpu},
		{"memory while calls are open", `for (let i = 0; i < 200; i++) env.HANG.fetch('http://h/').catch(() => {}); const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))`, wall},
		{"compressors", `const all = []; for (;;) all.push(new CompressionStream('gzip'))`, cpu},
		{"key generation", `for (;;) await crypto.subtle.generateKey({name: 'RSA-OAEP', modulusLength: 4096, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256'}, true, ['encrypt', 'decrypt'])`, wall},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := openVersion(t, s, Spec{Bindings: hostileWorld(), Graph: graphOf(`let before = 0; export default { async fetch(request, env, ctx) {
				if (request.method === 'PUT') return new Response('clean ' + before++);
				before++; ` + c.body + ` } }`)})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			inTime(t, c.limit, func() {
				var res event.Response
				if err := v.Serve(ctx, request(), &res); err == nil {
					t.Errorf("an answer: %d %.100q", res.Status, res.Body)
				} else if fault.CodeOf(err) == fault.Internal && !errors.Is(err, event.ErrWorker) {
					t.Errorf("a bug of the host: %v", err)
				}
			})
			next := request()
			next.Method = []byte("PUT")
			if got := serve(t, v, next).body; got != "clean 0" {
				t.Errorf("the next invocation answers %q", got)
			}
			if got := text(t, neighbour); got != "fine" {
				t.Errorf("the neighbour answers %q", got)
			}
			idle(t, v)
			nothingHeld(t, s)
		})
	}
}

// Nothing that a guest can reach leads to the runtime's own functions: not through names, stacks, replaced intrinsics, or
// what a facade is made of (module-worker §4). So no operation, binding, source or sink can be named by a number.
func TestRuntimeIsOutOfReach(t *testing.T) {
	s := newBox(t, Options{})
	for _, script := range []string{
		`typeof host`, `typeof globalThis.host`, `typeof invocation`, `typeof coreOperations`, `typeof exchangeSend`, `typeof facadeClass`, `typeof primordials`,
		`(() => { try { return new Function('return typeof host')() } catch { return 'undefined' } })()`,
		`(() => { try { return (0, eval)('typeof host') } catch { return 'undefined' } })()`,
		`(() => { const seen = new Set(), found = []; (function walk(o, path, depth) {
			if (depth > 6 || o === null || typeof o !== 'object' && typeof o !== 'function' || seen.has(o)) return; seen.add(o);
			for (const k of Reflect.ownKeys(o)) { const d = Reflect.getOwnPropertyDescriptor(o, k);
				if (/kvGet|sinkWrite|bodyPull|serviceFetch|outboundFetch|timerSet|callAbort/.test(String(k))) found.push(path + String(k));
				for (const x of [d.value, d.get, d.set]) walk(x, path + String(k) + '.', depth + 1); }
			walk(Reflect.getPrototypeOf(o), path + '__proto__.', depth + 1);
		})([globalThis, env, ctx, request, new Response('x').body.getReader()], '', 0); return found.length ? found.join() : 'undefined' })()`,
		// Replaced intrinsics are not called with anything of the runtime's.
		`(async () => { const got = []; const spy = (o, k) => { const was = o[k]; o[k] = function (...a) { got.push(...a); return was.apply(this, a) } };
			spy(Array.prototype, 'push'); spy(Function.prototype, 'call'); spy(Function.prototype, 'apply'); spy(Reflect, 'apply'); spy(Map.prototype, 'set'); spy(JSON, 'stringify'); spy(JSON, 'parse');
			Object.prototype.then = undefined; await env.KV.put('k', 'v', {metadata: {a: 'b'}}); await env.KV.get('k'); await env.KV.list(); await env.BUCKET.head('k');
			return got.some((x) => typeof x === 'function' && /kv|bucket|host/i.test(x.name)) ? 'leak' : 'undefined' })()`,
	} {
		v := openVersion(t, s, Spec{Bindings: hostileWorld(), Graph: graphOf(fetcher(`return new Response(String(await (` + script + `)))`))})
		if got := text(t, v); got != "undefined" {
			t.Errorf("%.60s: %q", script, got)
		}
	}
}

// Facades check who they are called on: a method moved to another object, a forged receiver or a call that comes when the
// invocation is over reaches nothing.
func TestForgedReceivers(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openVersion(t, s, Spec{Bindings: hostileWorld(), Graph: graphOf(`export default { async fetch(request, env) {
		const out = [];
		const tries = [() => env.KV.get.call({}, 'big'), () => env.KV.get.call(Object.create(env.KV), 'big'), () => env.KV.get.call(env.BUCKET, 'big'),
			() => env.KV.get.call(1, 'big'), () => env.KV.get.call(env.SVC, 'big'),
			() => new env.KV.constructor(0).get('big'), () => Reflect.construct(env.KV.constructor, [1]).get('big')];
		for (const f of tries) { try { await f(); out.push('reached ' + f) } catch { } }
		return new Response(out.join(''));
	} }`)})
	for range 2 {
		if got := text(t, v); got != "" {
			t.Errorf("got %q", got)
		}
	}
}

// A proxy learns the names of the runtime's slots, and may forge what stands in them: binding numbers, and sources,
// operations and states of bodies. The host takes every number for a claim: it reaches nothing but what the invocation has
// anyway, and nothing breaks.
func TestForgedNumbers(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openVersion(t, s, Spec{Bindings: hostileWorld(), Graph: graphOf(`export default { async fetch(request, env) {
		const slots = (use) => { const got = []; try { const p = use(new Proxy(Object.create(null), { get(_, k) { got.push(k) }, has(_, k) { got.push(k); return true }, getPrototypeOf() { return got.proto } }), got); p?.catch?.(() => {}) } catch {} return got.filter((k) => typeof k === 'symbol') };
		const odd = [-1, -2147483648, 2147483647, 4294967296, 1e300, NaN, 0.5, '0', null, {}, [], Symbol(), 5, 6, 100];
		let reached = 0, forgeries = 0;
		for (const name of Object.keys(env)) {
			const proto = Object.getPrototypeOf(env[name]);
			const names = slots((p, got) => { got.proto = proto; return proto[Object.keys(proto)[0]].call(p, 'k') });
			for (const number of [0, 1, 2, 3, 4, ...odd]) for (const method of Object.keys(proto)) {
				const forged = Object.create(proto); for (const slot of names) { forged[slot] = number; forgeries++ }
				if (name === 'HANG' || number === 3) continue;
				await proto[method].call(forged, 'k', 'v').then(() => { if (odd.includes(number) && !['0', null, 0.5].includes(number)) reached++ }, () => {});
			}
		}
		const r = await env.SVC.fetch('http://h/');
		const names = [...slots((p) => Response.prototype.text.call(p)), ...slots((p) => new Request(p)), ...slots((p) => p && Response.prototype.clone.call(p))];
		for (const slot of new Set(names)) { const state = r[slot]; if (!Array.isArray(state)) continue;
			for (let i = 0; i < state.length; i++) for (const x of [...odd, [null, 0], [null, 1e9], [{}, -1]]) { const was = state[i]; state[i] = x; try { r.clone().text().catch(() => {}); new Response(r.body).body?.cancel().catch(() => {}) } catch {} state[i] = was } }
		return new Response('reached ' + reached + ', forged ' + (forgeries > 100));
	} }`)})
	var res event.Response
	err := v.Serve(context.Background(), request(), &res)
	if err != nil || string(res.Body) != "reached 0, forged true" {
		t.Errorf("%v %q; log: %s", err, res.Body, &l)
	}
	if res.Stream != nil {
		res.Stream.Close()
	}
	idle(t, v)
	nothingHeld(t, s)
}

// What a killed guest had asked of the host never reaches another invocation: neither its result, nor its sandbox while
// the call goes on (module-worker §7).
func TestKilledInAHostCall(t *testing.T) {
	s := newBox(t, Options{MaxCPU: 100 * time.Millisecond, MaxInstances: 2})
	release, ended := make(chan struct{}), make(chan struct{}, 1)
	slow := funcService(func(_ context.Context, _ *event.Request, res *event.Response) error { // looks at no context: a store at work
		<-release
		res.Status, res.Body = 200, []byte("late")
		ended <- struct{}{}
		return nil
	})
	v := caller(t, s, slow, `if (request.method === 'PUT') return new Response(String(globalThis.mark));
		globalThis.mark = 'left'; env.OTHER.fetch('http://h/').then(async (r) => { globalThis.mark = await r.text() }); await null; for (;;) {}`)
	killed, next := make(chan error, 1), make(chan string, 1)
	go func() { killed <- serveErr(v) }()
	go func() {
		req := request()
		req.Method = []byte("PUT")
		<-release
		next <- serve(t, v, req).body
	}()
	time.AfterFunc(250*time.Millisecond, func() { close(release) })
	wantErr(t, <-killed, event.ErrCPU)
	<-ended // before the end of the killed one: it waits for its calls
	if got := <-next; got != "undefined" {
		t.Errorf("the next invocation sees %q", got)
	}
}

// Reset under a random workload with bindings, killed invocations among it: whatever ran before, the next one finds the
// module and the globals as they were made. (That memory is the image byte for byte is compared in package engine.)
func TestResetUnderRandomWork(t *testing.T) {
	rng := testkit.Rand(t)
	s := newBox(t, Options{MaxCPU: 60 * time.Millisecond, MaxWall: 300 * time.Millisecond, MaxMemoryBytes: 32 << 20, MaxInstances: 2})
	v := openVersion(t, s, Spec{Bindings: hostileWorld(), Graph: graphOf(`let state = 0; export default { async fetch(request, env, ctx) {
		const n = state++; if (n !== 0 || globalThis.mark !== undefined) return new Response('dirty', {status: 599});
		globalThis.mark = 1; Array.prototype.mark = 1; const k = Number(new URL(request.url).searchParams.get('q'));
		const work = [() => env.KV.put('k' + k, 'v'.repeat(k * 1000)), () => env.KV.get('big'), () => env.BUCKET.put('x', new Uint8Array(k * 5000)),
			() => env.SVC.fetch('http://h/').then((r) => r.body.getReader().read()), () => env.EAT.fetch('http://h/', {method: 'POST', body: 'x'.repeat(k * 9000)}),
			() => { for (;;) {} }, () => { throw new Error('x') }, () => { const f = () => f(); f() }, () => ctx.waitUntil(new Promise((r) => setTimeout(r, k % 5))),
			() => crypto.subtle.digest('SHA-256', new Uint8Array(k * 100)), () => { const a = []; for (;;) a.push(new Uint8Array(1 << 19).fill(1)) },
			() => env.HANG.fetch('http://h/'), () => new Response(new Uint8Array(k * 3000)).formData(), () => structuredClone(new Array(k * 100).fill({a: 1}))];
		await work[k % work.length](); return new Response('ok');
	} }`)})
	var jobs sync.WaitGroup
	for range 3 {
		seed := rng.Uint64()
		jobs.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				req := request()
				req.URL = fmt.Appendf(nil, "http://worker.test/?q=%d", rng.IntN(140))
				var res event.Response
				err := v.Serve(context.Background(), req, &res)
				if res.Stream != nil {
					res.Stream.Close()
				}
				if err == nil && res.Status == 599 {
					t.Error("an invocation saw what another left")
				}
			}
		})
	}
	jobs.Wait()
	idle(t, v)
	nothingHeld(t, s)
}

// No marker of one tenant is ever seen by another (module-worker §7): versions of two tenants take turns on two sandboxes,
// with markers in variables, secrets, values, globals, headers and bodies, and some of them are killed on the way.
func TestTenantsNeverMeet(t *testing.T) {
	rng := testkit.Rand(t)
	s := newBox(t, Options{MaxCPU: 100 * time.Millisecond, MaxInstances: 2, MaxMemoryBytes: 32 << 20})
	script := `export default { async fetch(request, env, ctx) {
		const mine = env.MARK, secret = env.SECRET; let seen = [];
		for (const k of Reflect.ownKeys(globalThis)) if (typeof k === 'string' && k.startsWith('mark-')) seen.push(k);
		seen.push(...(await env.KV.list()).keys.map((k) => k.name));
		globalThis['mark-' + mine + Math.random()] = secret; Object.prototype.leak = mine; globalThis.hold = new Uint8Array(200000).fill(mine.charCodeAt(0)); globalThis.text = (mine + secret).repeat(5000);
		await env.KV.put(mine + Math.random(), secret);
		const fresh = new Uint8Array(1 << 20); if (fresh.some((b) => b !== 0)) seen.push('memory');
		const body = await request.text();
		if (request.headers.get('x-kill')) for (;;) {}
		ctx.waitUntil(env.KV.put('later' + mine, secret));
		return new Response([mine, secret, body, ...seen].join('|') + globalThis.text.slice(0, 100), {headers: {'x-mark': mine}});
	} }`
	var versions []*Version
	marks := []string{"TENANT-A-", "TENANT-B-"}
	for i := range 4 {
		mark := marks[i%2]
		versions = append(versions, openVersion(t, s, Spec{Graph: graphOf(script), Vars: fmt.Appendf(nil, `{"MARK":"%s%d"}`, mark, i),
			Secrets: map[string]string{"SECRET": "secret-of-" + mark}, Bindings: []binding.Binding{{Name: "KV", KV: newMemoryKV()}}}))
	}
	var jobs sync.WaitGroup
	for range 3 {
		seed := rng.Uint64()
		jobs.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				i := rng.IntN(len(versions))
				mine, other := marks[i%2], marks[1-i%2]
				req := request()
				req.Header = append(req.Header, "x-mark\n"+mine+"\n"...)
				if rng.IntN(8) == 0 {
					req.Header = append(req.Header, "x-kill\n1\n"...)
				}
				body := newBody()
				req.Method, req.Body, req.Length = []byte("POST"), body, -1
				body.push("body of " + mine)
				body.end(nil)
				var res event.Response
				if err := versions[i].Serve(context.Background(), req, &res); err != nil {
					continue // killed
				}
				got := collect(&res)
				all := got.header + got.body
				if strings.Contains(all, other) || strings.Contains(got.body, "memory") || strings.Contains(got.body, "|mark-") || !strings.Contains(got.body, "secret-of-"+mine) {
					t.Errorf("tenant %s gets %.300q", mine, all)
				}
			}
		})
	}
	jobs.Wait()
}

// A worker that starts all it can and ends leaves no goroutine and no memory behind.
func TestNothingGrows(t *testing.T) {
	s := newBox(t, Options{MaxWall: 100 * time.Millisecond, MaxInstances: 2})
	v := openVersion(t, s, Spec{Bindings: hostileWorld(), Graph: graphOf(fetcher(`
		for (let i = 0; i < 80; i++) { env.HANG.fetch('http://h/').catch(() => {}); env.SVC.fetch('http://h/').catch(() => {}); env.KV.get('big').catch(() => {}) }
		await new Promise((r) => setTimeout(r, 20)); return new Response('x')`))})
	text(t, v)
	before, size := runtime.NumGoroutine(), heapBytes()
	for range 10 {
		serveErr(v)
	}
	idle(t, v)
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() { // one may just be about to return
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	if now := heapBytes(); now > size+32<<20 {
		t.Errorf("the heap grew from %d to %d", size, now)
	}
	nothingHeld(t, s)
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
