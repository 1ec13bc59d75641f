package hostapi

import (
	"strings"
	"testing"
)

// Channels of one realm: order, starting, moving, closing.
func TestMessageChannel(t *testing.T) {
	const next = `const next = (port) => new Promise((r) => { port.onmessage = r; }); `
	scripts(t, []struct{ script, want string }{
		{next + `const c = new MessageChannel(), order = []; c.port1.postMessage({ a: [1] }); order.push('sent'); Promise.resolve().then(() => order.push('job')); const e = await next(c.port2); order.push(e.data.a[0]);
			return [order, e.constructor.name, e.isTrusted, e.target === c.port2, e.ports.length, Object.isFrozen(e.ports), e.origin, e.source].join(' ')`, "sent,job,1 MessageEvent true true 0 true  "},
		// A port that is not started keeps its messages; addEventListener does not start it.
		{`const c = new MessageChannel(), got = []; c.port2.addEventListener('message', (e) => got.push(e.data)); c.port1.postMessage(1); c.port1.postMessage(2); await new Promise((r) => setTimeout(r)); const before = got.length; c.port2.start(); await new Promise((r) => setTimeout(r)); await new Promise((r) => setTimeout(r)); return before + ' ' + got`, "0 1,2"},
		// What was sent is what was there when it was sent.
		{next + `const c = new MessageChannel(), o = { n: 1 }; c.port1.postMessage(o); o.n = 2; return (await next(c.port2)).data.n`, "1"},
		{next + `const c = new MessageChannel(), b = new ArrayBuffer(8); c.port1.postMessage(b, [b]); return b.detached + ' ' + (await next(c.port2)).data.byteLength`, "true 8"},
		// A port moves with what waits for it, and its old object is dead.
		{next + `const a = new MessageChannel(), b = new MessageChannel(); b.port1.postMessage('waiting'); a.port1.postMessage('take', { transfer: [b.port2] }); const { ports: [port] } = await next(a.port2); b.port2.postMessage('lost');
			const first = (await next(port)).data; port.postMessage('back'); return first + (await next(b.port1)).data + (port !== b.port2)`, "waitingbacktrue"},
		{`const c = new MessageChannel(); try { c.port1.postMessage(0, [c.port1]); } catch (e) { return e.name; }`, "DataCloneError"},
		{`const c = new MessageChannel(); c.port1.close(); return [() => structuredClone(c.port1, { transfer: [c.port1] }), () => structuredClone(c.port2), () => c.port2.postMessage(() => 1)].map((f) => { try { f(); return 'no'; } catch (e) { return e.name; } }).join()`, "DataCloneError,DataCloneError,DataCloneError"},
		{`const c = new MessageChannel(); const closed = new Promise((r) => { c.port2.onclose = r; }); c.port1.close(); return (await closed).type`, "close"},
		{`const { port } = structuredClone({ port: new MessageChannel().port1 }, { transfer: [] })`, "throws DataCloneError: A MessagePort could not be cloned"},
		{`return new MessagePort()`, "throws TypeError: Illegal constructor"},
		{`const e = new MessageEvent('x', { data: 1, origin: 'o', lastEventId: 2, ports: [new MessageChannel().port1] }); return [e.data, e.origin, e.lastEventId, e.ports.length, e.isTrusted].join()`, "1,o,2,1,false"},
		{`return new MessageEvent('x', { source: {} })`, "throws TypeError: the source of a message is not a MessagePort"},
	})
}

// Streams are moved: what comes out is a clone, errors and ends pass, and the old stream is locked.
func TestStreamTransfer(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const o = { n: 1 }, s = new ReadableStream({ start(c) { c.enqueue(o); c.close(); } }), m = structuredClone(s, { transfer: [s] }); const got = []; for await (const v of m) got.push(v); return [s.locked, m.locked, got[0].n, got[0] !== o].join()`, "true,false,1,true"},
		{`const s = new ReadableStream({ pull(c) { c.error(new RangeError('why')); } }), m = structuredClone([s], { transfer: [s] })[0]; return m.getReader().read()`, "throws RangeError: why"},
		{`let why; const s = new ReadableStream({ cancel(r) { why = r; } }), m = structuredClone(s, { transfer: [s] }); await m.cancel('enough'); return why`, "enough"},
		{`const got = [], s = new WritableStream({ write(c) { got.push(c); }, close() { got.push('end'); } }), w = structuredClone(s, { transfer: [s] }).getWriter(); await w.write('a'); await w.close(); return got + s.locked`, "a,endtrue"},
		{`const s = new TransformStream(), m = structuredClone(s, { transfer: [s] }), w = m.writable.getWriter(); w.write('x'); return (await m.readable.getReader().read()).value + (m instanceof TransformStream)`, "xtrue"},
		{`const s = new ReadableStream(); s.getReader(); return structuredClone(s, { transfer: [s] })`, "throws DataCloneError: A locked stream could not be cloned"},
		{`const s = new ReadableStream({ start(c) { c.enqueue(() => 1); } }), m = structuredClone(s, { transfer: [s] }); return m.getReader().read()`, "throws DataCloneError: The function  could not be cloned"},
		{`return structuredClone(new ReadableStream())`, "throws DataCloneError: A ReadableStream could not be cloned"},
	})
}

// HTML: what nobody catches is an event of the global object; what is not prevented goes to the log.
func TestErrorEvents(t *testing.T) {
	for _, c := range []struct{ script, want, log string }{
		{`let got; const seen = (e) => { got = e; e.preventDefault(); }; addEventListener('error', seen); const x = new RangeError('why'); reportError(x); removeEventListener('error', seen);
			return [got.message, got.error === x, got.filename, got.lineno > 0, got.isTrusted, got.cancelable, got instanceof ErrorEvent].join('|')`, "Uncaught RangeError: why|true|test.js|true|true|true|true", ""},
		{`reportError('plain')`, "undefined", "reportError: plain"},
		{`reportError({ get name() { throw 1; }, a: 1 })`, "undefined", "reportError: { name: [Getter], a: 1 }"},
		{`let args; onerror = (...a) => { args = a; return true; }; reportError(5); onerror = null; return [args.length, args[0], args[4]].join('|')`, "5|Uncaught 5|5", ""},
		{`onerror = () => { throw new Error('again'); }; reportError(1); onerror = null`, "undefined", "listener: Error: again|reportError: 1"},
		{`const got = []; const seen = (e) => { got.push(e.error); e.preventDefault(); }; addEventListener('error', seen); setTimeout(() => { throw 'timer'; }); queueMicrotask(() => { throw 'job'; });
			new EventTarget().dispatchEvent(new Event('x')); const t = new EventTarget(); t.addEventListener('x', () => { throw 'listener'; }); t.dispatchEvent(new Event('x')); await new Promise((r) => setTimeout(r)); removeEventListener('error', seen); return got.join()`, "listener,job,timer", ""},
		{`return [self === globalThis, globalThis instanceof EventTarget, addEventListener.call(undefined, 'x', null), typeof onunhandledrejection, navigator.userAgent, performance instanceof EventTarget, performance.now() > 0, Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000].join()`, "true,true,,object,edged,true,true,true", ""},
		{`queueMicrotask(1)`, "throws TypeError: queueMicrotask: the callback is not a function", ""},
	} {
		w := newWorld(t)
		if got := w.eval(c.script); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.script, got, c.want)
		}
		log := ""
		for i, r := range w.reports {
			if i > 0 {
				log += "|"
			}
			first, _, _ := strings.Cut(r, "\n")
			log += first
		}
		if log != c.log {
			t.Errorf("%s\nlogged %q, want %q", c.script, log, c.log)
		}
	}
}

// AbortSignal.any: a long-lived source does not keep what was made from it, but for those that somebody listens to.
func TestDependentSignalsAreNotKept(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const c = new AbortController(); const refs = []; for (let i = 0; i < 1000; i++) refs.push(new WeakRef(AbortSignal.any([c.signal]))); return refs.filter((r) => r.deref() !== undefined).length`, "0"},
		{`const c = new AbortController(); let n = 0; (() => { AbortSignal.any([c.signal]).addEventListener('abort', () => n++); AbortSignal.any([AbortSignal.any([c.signal])]).onabort = () => n++; new EventTarget().addEventListener('x', () => {}, { signal: AbortSignal.any([c.signal]) }); })(); c.abort(); return n`, "2"},
		{`const c = new AbortController(), s = AbortSignal.any([c.signal, AbortSignal.timeout(1e9)]); c.abort('why'); return s.aborted + s.reason`, "truewhy"},
	})
}
