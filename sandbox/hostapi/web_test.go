package hostapi

import (
	"strings"
	"testing"
)

// scripts runs each script in a world of its own and compares what it returns.
func scripts(t *testing.T, cases []struct{ script, want string }) {
	t.Helper()
	w := newWorld(t)
	for _, c := range cases {
		if got := w.eval(c.script); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}

// The floor of globals (module-worker §5), as far as these files bring it, is there and looks as Web IDL says.
func TestGlobals(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`return ['Request', 'Response', 'Headers', 'URL', 'URLSearchParams', 'TextEncoder', 'TextDecoder', 'crypto', 'structuredClone', 'fetch', 'console']
			.filter((name) => !(name in globalThis)).join()`, ""},
		// The minimum common web API of 2025, but for what docs/runtime.md lists as missing.
		{`return ('AbortController AbortSignal Blob ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy Crypto CryptoKey CustomEvent DecompressionStream DOMException ErrorEvent Event EventTarget File FormData Headers ' +
			'MessageChannel MessageEvent MessagePort PromiseRejectionEvent ReadableByteStreamController ReadableStream ReadableStreamBYOBReader ReadableStreamBYOBRequest ReadableStreamDefaultController ReadableStreamDefaultReader ' +
			'Request Response SubtleCrypto TextDecoder TextDecoderStream TextEncoder TextEncoderStream TransformStream TransformStreamDefaultController URL URLPattern URLSearchParams WebAssembly WritableStream WritableStreamDefaultController ' +
			'WritableStreamDefaultWriter FileReader ProgressEvent QuotaExceededError atob btoa clearInterval clearTimeout console crypto fetch navigator onerror onrejectionhandled onunhandledrejection performance queueMicrotask reportError self setInterval setTimeout structuredClone')
			.split(' ').filter((name) => !(name in globalThis) && name !== 'CryptoKey').join()`, ""},
		{`return [Request, Response, Headers, URL, URLSearchParams, TextEncoder, TextDecoder, Crypto, SubtleCrypto].filter((C) => {
			const own = Object.getOwnPropertyDescriptor(globalThis, C.name), prototype = Object.getOwnPropertyDescriptor(C, 'prototype');
			return own.enumerable || !own.writable || !own.configurable || prototype.writable || C.prototype[Symbol.toStringTag] !== C.name;
		}).map((C) => C.name).join()`, ""},
		// Members are enumerable, and an accessor or method refuses a stranger.
		{`const bad = [];
		for (const C of [Request, Response, Headers, URL, URLSearchParams, TextEncoder, TextDecoder, Crypto]) {
			for (const [key, member] of Object.entries(Object.getOwnPropertyDescriptors(C.prototype))) {
				if (key === 'constructor') continue;
				if (!member.enumerable) bad.push(C.name + ' ' + key);
				try {
					const made = member.get ? member.get.call({}) : member.value.call({}, 'x', 'y');
					if (made instanceof Promise) await made;
					bad.push(C.name + ' takes a stranger: ' + key);
				} catch (e) { if (!(e instanceof TypeError)) bad.push(key + ': ' + e); }
			}
			try { C(); bad.push(C.name + ' without new'); } catch {}
		}
		return bad.join()`, ""},
		{`return [Response.length, Headers.length, Request.length, URL.length, Headers.prototype.set.length, Headers.prototype.get.length, fetch.length, structuredClone.length].join()`, "0,0,1,1,2,1,1,1"},
		// Nothing internal shows on an object, so nothing copies it; and what inherits from an object is not one.
		{`const port = new MessageChannel().port1, made = [new Request('http://a/'), new Response('x'), new Headers(), new URL('http://a/'), new URLSearchParams(), new TextDecoder(), new TextEncoder(), new AbortController(), new AbortController().signal,
			new EventTarget(), new ReadableStream(), new WritableStream(), new TransformStream(), new TextDecoderStream(), new CompressionStream('gzip'), new Blob(), new FormData(), port];
			const bad = [];
			for (const o of made) {
				if (Reflect.ownKeys(o).length > 0) bad.push('shows ' + Reflect.ownKeys(o).map(String));
				for (const stranger of [Object.create(o), Object.setPrototypeOf({ ...o }, Object.getPrototypeOf(o)), Object.assign(Object.create(Object.getPrototypeOf(o)), o)]) {
					for (let p = Object.getPrototypeOf(o); p !== Object.prototype; p = Object.getPrototypeOf(p)) for (const [key, { get }] of Object.entries(Object.getOwnPropertyDescriptors(p))) {
						if (get === undefined || key === 'isReloadNavigation') continue;
						try { get.call(stranger); bad.push(o[Symbol.toStringTag] + '.' + key); } catch (e) { if (!(e instanceof TypeError)) bad.push(key + e); }
					}
				}
			}
			return bad.join()`, ""},
		{`const r = new Response('x', { status: 201 }); return [{ ...r }, Object.create(r), Object.setPrototypeOf({ ...r }, Response.prototype)].map((v) => { try { return inner.responseParts(v)[0]; } catch (e) { return e.name; } }).join()`, "TypeError,TypeError,TypeError"},
		{`return JSON.stringify([...new Headers({ ...new Headers({ a: '1' }), b: '2' })]) + Object.keys({ ...new Request('http://a/') })`, `[["b","2"]]`},
		{`return fetch('not a url')`, "throws TypeError: Request: the URL is not valid"},
	})
}

func TestHeaders(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const h = new Headers({ 'X-B': '1', a: ' 2\t' }); h.append('x-b', '3'); return JSON.stringify([...h])`, `[["a","2"],["x-b","1, 3"]]`},
		// Set-Cookie is never combined, and its order is kept.
		{`const h = new Headers([['set-cookie', 'z=1'], ['b', '1'], ['Set-Cookie', 'a=2'], ['a', '0']]); return JSON.stringify([[...h], h.getSetCookie()])`,
			`[[["a","0"],["b","1"],["set-cookie","z=1"],["set-cookie","a=2"]],["z=1","a=2"]]`},
		{`const h = new Headers({ a: '1' }); h.set('A', '2'); h.append('a', '3'); h.set('a', '4'); return h.get('a') + h.has('A') + h.get('b')`, "4truenull"},
		// The name that is looked for also stands as a value.
		{`const h = new Headers([['x', 'y'], ['y', 'x']]); h.delete('x'); return h.get('y') + h.has('x') + h.get('x')`, "xfalsenull"},
		{`return new Headers([['x', ' lead'], ['y', 'trail\n']]).get('x') + new Headers({ y: 'trail\n' }).get('y')`, "leadtrail"},
		{`return new Headers({ a: 'b\r\nc: d' })`, "throws TypeError: Invalid header value: it has a NUL, CR or LF"},
		{`return new Headers({ a: '\u0100' })`, "throws TypeError: Invalid header value: it has a character above U+00FF"},
		{`return new Headers({ 'a b': '' })`, "throws TypeError: Invalid header name: a b"},
		{`return new Headers({ '': '' })`, "throws TypeError: Invalid header name: "},
		{`return new Headers([['a']])`, "throws TypeError: Headers: a pair does not have two items"},
		{`return new Headers({ a: '\u00e9\x7f\x01' }).get('a').length`, "3"},
		{`const h = new Headers({ b: '1' }); const seen = []; for (const [k] of h) { seen.push(k); if (seen.length < 3) h.append('a' + seen.length, ''); } return seen.join()`, "b,b,b"},
		// What a request brought cannot be changed; what is made from it can.
		{`const r = inner.newIncomingRequest('GET', 'http://a/', 'x\n1\nx\n2\n', 0); try { r.headers.set('x', '3'); } catch (e) { return e.name + r.headers.get('x') + new Headers(r.headers).get('X'); }`, "TypeError1, 21, 2"},
		{`return new Headers(new Request('http://a/', { headers: { q: '1' } }).headers).get('q')`, "1"},
	})
}

func TestRequest(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const r = new Request('HTTP://Ex%61mple.com:80/a/../b?q#f', { method: 'post', body: 'x' }); return [r.method, r.url, r.headers.get('content-type'), r.bodyUsed].join()`,
			"POST,http://example.com/b?q#f,text/plain;charset=UTF-8,false"},
		{`return new Request('/relative')`, "throws TypeError: Request: the URL is not valid"},
		{`return new Request('http://user@a/')`, "throws TypeError: Request: the URL has credentials"},
		{`return new Request('http://a/', { body: 'x' })`, "throws TypeError: Request: a GET or HEAD request cannot have a body"},
		{`return new Request('http://a/', { method: 'TRACE' })`, "throws TypeError: Request: the method TRACE is not allowed"},
		{`return new Request('http://a/', { method: 'patch' }).method`, "patch"},
		{`return new Request('http://a/', { method: 'POST', body: new ReadableStream() })`, `throws TypeError: Request: a stream as body needs duplex: "half"`},
		{`return new Request('http://a/', { mode: 'navigate' })`, "throws TypeError: Request: the mode cannot be navigate"},
		{`return new Request('http://a/', { redirect: 'never' })`, `throws TypeError: Request: "never" is no value of redirect`},
		// A request made from another takes its body away.
		{`const a = new Request('http://a/', { method: 'PUT', body: 'x' }), b = new Request(a, { headers: { y: '1' } }); return [a.bodyUsed, await b.text(), b.method, b.headers.get('y')].join()`, "true,x,PUT,1"},
		{`const a = new Request('http://a/', { method: 'PUT', body: 'x' }), b = a.clone(); return await a.text() + await b.text()`, "xx"},
		{`const c = new AbortController(), a = new Request('http://a/', { signal: c.signal }), b = new Request(a); c.abort('why'); return b.signal.reason + a.clone().signal.aborted`, "whytrue"},
	})
}

// The three states of a request's body never collapse (service-binding §3), and reading needs no stream.
func TestIncomingBody(t *testing.T) {
	w := newWorld(t)
	const incoming = `const r = inner.newIncomingRequest('POST', 'http://a/b?c', 'content-type\ntext/plain\n', %; `
	none, some := strings.ReplaceAll(incoming, "%", "0)"), strings.ReplaceAll(incoming, "%", "1)")
	for _, c := range []struct {
		script string
		body   []string
		want   string
	}{
		{none + `return r.body + '|' + await r.text() + r.bodyUsed`, nil, "null|false"},
		{some + `const s = r.body instanceof ReadableStream; return s + await r.text() + r.bodyUsed`, nil, "truetrue"},
		{some + `const t = await r.text(); return t + r.bodyUsed + r.body.locked`, []string{"h\xc3", "\xa9llo"}, "héllotruetrue"},
		{some + `return JSON.stringify(await r.json())`, []string{"\xef\xbb\xbf{\"a\"", ":[1]}"}, `{"a":[1]}`},
		{some + `return r.json()`, []string{"{"}, "throws SyntaxError: Expected property name or '}' in JSON at position 1 (line 1 column 2)"},
		{some + `return (await r.bytes()).join() + (await r.arrayBuffer().catch((e) => e.name))`, []string{"ab", "c"}, "97,98,99TypeError"},
		{some + `let n = 0; for await (const chunk of r.body) n += chunk.length; return n + String(r.bodyUsed)`, []string{"ab", "c"}, "3true"},
		{some + `const q = new Request(r, { method: 'PUT' }); return r.bodyUsed + q.method + q.url + await q.text()`, []string{"moved"}, "truePUThttp://a/b?cmoved"},
		{some + `const q = r.clone(); return await r.text() + await q.text()`, []string{"twice"}, "twicetwice"},
		{some + `const reader = r.body.getReader(); return r.text()`, []string{"x"}, "throws TypeError: The body was already read or is locked"},
		{some + `return await new Response(r.body).text()`, []string{"on"}, "on"},
	} {
		w.body = nil
		for _, chunk := range c.body {
			w.body = append(w.body, []byte(chunk))
		}
		if got := w.eval(c.script); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}

func TestResponse(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const r = new Response(); return [r.status, r.ok, r.statusText, r.type, r.url, r.redirected, r.body, r.headers.get('content-type')].join()`, "200,true,,default,,false,,"},
		// module-worker §5: a 101 without a brand.
		{`return new Response(null, { status: 101 })`, "throws RangeError: Response: the status 101 is not between 200 and 599"},
		{`return new Response('', { status: 204 })`, "throws TypeError: Response: the status 204 does not allow a body"},
		{`return new Response(null, { statusText: 'a\nb' })`, "throws TypeError: Response: statusText has a character that a reason phrase cannot have"},
		{`return [new Response('x'), new Response(new URLSearchParams('a=b')), new Response(new Uint8Array(1)), new Response(new ReadableStream()), Response.json(1)].map((r) => r.headers.get('content-type')).join('|')`,
			"text/plain;charset=UTF-8|application/x-www-form-urlencoded;charset=UTF-8|||application/json"},
		{`return new Response('x', { headers: { 'Content-Type': 'a/b' } }).headers.get('content-type')`, "a/b"},
		{`return new Response('x', { headers: { a: 'content-type' } }).headers.get('content-type')`, "text/plain;charset=UTF-8"},
		{`const r = Response.redirect('http://a/b c', 303); try { r.headers.set('a', 'b'); } catch (e) { return r.status + r.headers.get('location') + e.name; }`, "303http://a/b%20cTypeError"},
		{`return Response.redirect('http://a/', 200)`, "throws RangeError: Response.redirect: 200 is not the status of a redirect"},
		{`return Response.json(undefined)`, "throws TypeError: Response.json: the data has no JSON form"},
		{`const r = new Response('a\ud800\ufeffb'); return (await r.clone().bytes()).join() + ' ' + (await r.text())`, "97,239,191,189,239,187,191,98 a\ufffd\ufeffb"},
		{`return await new Response('\ufeffabc').text()`, "abc"},
		{`const u = new Uint8Array([1, 2]); const r = new Response(u); u[0] = 9; return (await r.bytes()).join()`, "1,2"},
		{`const r = new Response('x'); const s = r.body; return s === r.body && await r.text() + s.locked + r.bodyUsed`, "xtruetrue"},
		{`const r = new Response(new ReadableStream({ start(c) { c.enqueue('no bytes'); c.close(); } })); return r.text()`, "throws TypeError: a chunk is not a Uint8Array"},
		{`Object.prototype.then = function (done) { done('stolen'); }; const p = new Response(new Response('mine').body).text(); delete Object.prototype.then; return p`, "mine"},
	})
}

// What the host gets of a response, and that what cannot be sent throws.
func TestResponseParts(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`return JSON.stringify(inner.responseParts(new Response('hi')).slice(0, 5))`, `[200,"content-type\ntext/plain;charset=UTF-8\n",1,"hi",-1]`},
		{`return JSON.stringify(inner.responseParts(new Response('hi', { status: 404, headers: { 'X-A': ' 1 ' } })).slice(0, 5))`, `[404,"x-a\n1\ncontent-type\ntext/plain;charset=UTF-8\n",1,"hi",-1]`},
		{`return JSON.stringify(inner.responseParts(new Response(null, { status: 304 })).slice(0, 5))`, `[304,"",0,null,-1]`},
		{`const r = new Response('hi'); r.headers.append('set-cookie', 'a'); r.headers.append('set-cookie', 'b'); return JSON.stringify(inner.responseParts(r)[1])`, `"content-type\ntext/plain;charset=UTF-8\nset-cookie\na\nset-cookie\nb\n"`},
		{`return JSON.stringify(inner.responseParts(Response.json({ a: 1 }, { headers: [['x', 'y']] })).slice(0, 5))`, `[200,"x\ny\ncontent-type\napplication/json\n",1,"{\"a\":1}",-1]`},
		{`const p = inner.responseParts(new Response(new Uint8Array([7]))); return p[2] + ' ' + p[3]`, "2 7"},
		{`const r = new Response(new ReadableStream(), { headers: { 'content-length': '12' } }); const p = inner.responseParts(r); return [p[2], r.body.locked, p[4]].join()`, "3,true,12"},
		{`const p = inner.responseParts(new Response(new ReadableStream(), { headers: [['content-length', '1'], ['content-length', '2']] })); return p[4]`, "-1"},
		{`const r = new Response('x'); inner.responseParts(r); return r.bodyUsed + ' ' + (await r.text().catch((e) => e.name))`, "true TypeError"},
		{`return inner.responseParts({ status: 200 })`, "throws TypeError: The handler did not return a Response"},
		{`return inner.responseParts(new Request('http://a/'))`, "throws TypeError: The handler did not return a Response"},
		{`return inner.responseParts(undefined)`, "throws TypeError: The handler did not return a Response"},
		{`return inner.responseParts(Response.error())`, "throws TypeError: The handler returned Response.error()"},
		{`const r = new Response('x'); await r.text(); return inner.responseParts(r)`, "throws TypeError: The handler returned a Response whose body was already read or is locked"},
		{`const r = new Response('x'); r.body.getReader(); return inner.responseParts(r)`, "throws TypeError: The handler returned a Response whose body was already read or is locked"},
	})
}
