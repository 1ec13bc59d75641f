package hostapi

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const u = new URL('HTTPS://u:p@Ex.com:8443/a/./b?q=1#h'); return [u.href, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin].join(' ')`,
			"https://u:p@ex.com:8443/a/b?q=1#h https: u p ex.com:8443 ex.com 8443 /a/b ?q=1 #h https://ex.com:8443"},
		{`return new URL('//b/c', 'http://a/').href + new URL('x:/.//y').pathname + new URL('x:/.//y').host + new URL('data:,x').origin`, "http://b/c//ynull"},
		{`return new URL('nope')`, "throws TypeError: Invalid URL"},
		{`return [URL.canParse('nope'), URL.canParse('x', 'http://a/'), URL.parse('nope'), URL.parse('http://a').href].join()`, "false,true,,http://a/"},
		// Two URLs used in turn do not mix up their parts, and a refused change changes nothing.
		{`const a = new URL('http://one/1?x'), b = new URL('http://two/2#y'); a.port = '81'; b.protocol = 'mailto'; a.host = ''; return [a.pathname, b.pathname, a.href, b.href, a.search, b.hash].join(' ')`,
			"/1 /2 http://one:81/1?x http://two/2#y ?x #y"},
		{`const u = new URL('http://a/'); for (const [k, v] of [['protocol', 'https'], ['username', 'ü'], ['password', ':'], ['hostname', 'b'], ['port', '8'], ['pathname', 'x y'], ['search', 'q'], ['hash', 'h']]) u[k] = v; return u`,
			"https://%C3%BC:%3A@b:8/x%20y?q#h"},
		{`const u = new URL('http://a/?x=1#h'); u.searchParams.append('y', '2 3'); const one = u.href; u.search = '?q=%20'; const two = u.searchParams.get('q'); u.searchParams.delete('q'); return [one, two, u.href].join('|')`,
			"http://a/?x=1&y=2+3#h| |http://a/#h"},
		{`const u = new URL('http://a/?x'); const p = u.searchParams; u.href = 'http://b/?y=1'; return p === u.searchParams && p.get('y') + p.has('x')`, "1false"},
	})
}

func TestURLSearchParams(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`return new URLSearchParams('?a=1&b=%2B+%zz&c&&=d&a=%ff')`, "a=1&b=%2B+%25zz&c=&=d&a=%EF%BF%BD"},
		{`return new URLSearchParams({ a: "*-._~!'()", 'ü ': '\u{1f600}' })`, "a=*-._%7E%21%27%28%29&%C3%BC+=%F0%9F%98%80"},
		{`return new URLSearchParams([['b', '1'], ['a', '\ud800']])`, "b=1&a=%EF%BF%BD"},
		{`return new URLSearchParams([['b']])`, "throws TypeError: URLSearchParams: a pair does not have two items"},
		{`const p = new URLSearchParams('a=1&b=2&a=3'); p.delete('a', '1'); p.append('c', 'x'); p.set('b', '9'); p.set('d', ''); p.sort(); return p + ' ' + p.size + p.has('a', '3') + p.has('a', '4') + p.getAll('a')`, "a=3&b=9&c=x&d= 4truefalse3"},
		{`const p = new URLSearchParams('a=1&b=2'); const seen = []; p.forEach((v, k) => { seen.push(k + v); p.delete('b'); }); return seen + [...p.keys()].join()`, "a1a"},
	})
}

func TestTextCodecs(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`return new TextEncoder().encode('aé€\u{1f600}\ud800').join()`, "97,195,169,226,130,172,240,159,152,128,239,191,189"},
		{`const d = new Uint8Array(5); const r = new TextEncoder().encodeInto('a\u{1f600}b', d); const s = new TextEncoder().encodeInto('€€', d); return JSON.stringify([r, s, d.join()])`, `[{"read":3,"written":5},{"read":1,"written":3},"226,130,172,152,128"]`},
		{`const d = new TextDecoder(); return d.encoding + d.fatal + d.ignoreBOM + d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x41, 0xf0, 0x90, 0x41, 0xe0, 0x80])).length`, "utf-8falsefalse5"},
		{`return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff]))`, "throws TypeError: TextDecoder.decode: the bytes are not valid utf-8"},
		{`return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])).length`, "1"},
		// A character in pieces, one byte at a time, whatever the encoding.
		{`const out = []; for (const [label, bytes] of [['utf-8', [0xef, 0xbb, 0xbf, 0xf0, 0x9f, 0x98, 0x80]], ['utf-16le', [0x3d, 0xd8, 0x00, 0xde]], ['utf-16be', [0xfe, 0xff, 0x20, 0xac]],
			['shift_jis', [0x82, 0xa0]], ['gb18030', [0x81, 0x30, 0x81, 0x30]], ['iso-2022-jp', [0x1b, 0x24, 0x42, 0x24, 0x22]], ['euc-jp', [0x8f, 0xb0, 0xa1]], ['windows-1252', [0x80]]]) {
			const d = new TextDecoder(label); let text = ''; for (const b of bytes) text += d.decode(new Uint8Array([b]), { stream: true }); out.push(text + d.decode());
		} return out.join()`, "😀,😀,€,あ,\u0080,あ,丂,€"},
		{`const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) + d.decode() + d.decode(new Uint8Array([0xac]))`, "\ufffd\ufffd"},
		// Only the first mark is one.
		{`const d = new TextDecoder(), bom = new Uint8Array([0xef, 0xbb, 0xbf]); return [d.decode(bom, { stream: true }).length, d.decode(bom, { stream: true }).length, d.decode(bom).length, d.decode(bom).length].join()`, "0,1,1,0"},
		// A wrong lead byte does not swallow the ASCII behind it.
		{`return ['shift_jis', 'euc-jp', 'euc-kr', 'big5', 'gbk'].map((l) => new TextDecoder(l).decode(new Uint8Array([0x82, 0x22, 0x3c]))).every((s) => s.endsWith('"<'))`, "true"},
		{`return [' UTF8 ', 'latin1', 'ascii', 'l5', 'UTF-16', 'sjis', 'x-user-defined'].map((l) => new TextDecoder(l).encoding).join()`, "utf-8,windows-1252,windows-1252,windows-1254,utf-16le,shift_jis,x-user-defined"},
		{`return new TextDecoder('gb18030').decode(new Uint8Array([0xa6, 0xd9, 0xfe, 0x59, 0xa3, 0xa0, 0xa8, 0xbc]))`, "\ufe10\u9fb4\u3000\u1e3f"},
		// What is detached has no bytes.
		{`const gone = [new ArrayBuffer(4), new Uint8Array(4), new Float64Array(1), new DataView(new ArrayBuffer(4))]; for (const v of gone) (v.buffer ?? v).transfer(); return gone.map((v) => new TextDecoder().decode(v).length + new Blob([v]).size).join()`, "0,0,0,0"},
		{`return new TextDecoder('utf-7')`, "throws RangeError: TextDecoder: the encoding utf-7 is not supported"},
		{`return new TextDecoder('replacement')`, "throws RangeError: TextDecoder: the encoding replacement is not supported"},
		{`return new TextDecoder().decode('text')`, "throws TypeError: TextDecoder.decode: the input is neither an ArrayBuffer nor a view of one"},
		{`const b = new Uint8Array([65, 66, 67, 68]).buffer; return new TextDecoder().decode(new DataView(b, 1, 2)) + new TextDecoder().decode(new Uint16Array(b, 2)) + new TextDecoder().decode(b)`, "BCCDABCD"},
	})
}

func TestCrypto(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const hex = (b) => new Uint8Array(b).toHex(); return hex(await crypto.subtle.digest('sha-1', new Uint8Array([97, 98, 99]))) + ' ' + hex(await crypto.subtle.digest({ name: 'SHA-256' }, new ArrayBuffer(0)))`,
			"a9993e364706816aba3e25717850c26c9cd0d89d e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{`return [(await crypto.subtle.digest('SHA-384', new Uint8Array(1))).byteLength, (await crypto.subtle.digest('SHA-512', new DataView(new ArrayBuffer(8)))).byteLength].join()`, "48,64"},
		{`return crypto.subtle.digest('MD5', new Uint8Array(1))`, "throws NotSupportedError: The algorithm MD5 is not supported for this operation"},
		{`return crypto.subtle.digest('SHA-1', 'text')`, "throws TypeError: SubtleCrypto.digest: the data is neither an ArrayBuffer nor a view of one"},
		{`const a = new Uint32Array(64), b = crypto.getRandomValues(a); return a === b && new Set(a).size > 60`, "true"},
		{`const a = new Uint8Array(64); crypto.getRandomValues(a.subarray(8, 56)); return a.slice(0, 8).join('') + a.slice(56).join('')`, "0000000000000000"},
		{`crypto.getRandomValues(new Uint8Array(65536)); return crypto.getRandomValues(new Uint16Array(32769))`, "throws QuotaExceededError: 65538 random bytes were asked for; the most is 65536"},
		{`return crypto.getRandomValues(new Float64Array(1))`, "throws TypeMismatchError: The array is not one of integers"},
		{`const a = crypto.randomUUID(), b = crypto.randomUUID(); return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(a) && a !== b`, "true"},
		{`return new Crypto()`, "throws TypeError: Illegal constructor"},
	})
}

func TestStructuredClone(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const a = { n: null, u: undefined, big: 10n, d: new Date(5), r: /x/gi, m: new Map([[{ k: 1 }, new Set([1])]]), arr: [1, , 3], w: Object('s'), __proto__: null }; a.self = a;
		const b = structuredClone(a); return [b !== a, b.self === b, Object.keys(b), b.d.getTime(), b.r.flags, [...b.m.keys()][0].k, [...b.m.values()][0].has(1), 1 in b.arr, b.arr.length, typeof b.w, Object.getPrototypeOf(b) === Object.prototype].join(' ')`,
			"true true n,u,big,d,r,m,arr,w,self 5 gi 1 true false 3 object true"},
		{`const e = structuredClone(new RangeError('m', { cause: [1] })); return [e instanceof RangeError, e.name, e.message, e.cause[0], structuredClone(new DOMException('a', 'AbortError')).name, structuredClone(Object.assign(new Error('x'), { name: 'Mine' })).name].join()`, "true,RangeError,m,1,AbortError,Error"},
		{`const b = new Uint8Array([1, 2, 3, 4]); const c = structuredClone([b.subarray(1, 3), new DataView(b.buffer, 2), b.buffer]); return [c[0].join(), c[1].getUint8(0), c[0].buffer === c[2], c[2] !== b.buffer, c[0].byteOffset].join(' ')`, "2,3 3 true true 1"},
		{`return [() => 1, Symbol(), new Proxy({}, {}), new WeakMap(), Promise.resolve(), new Headers(), new Response(), new URL('http://a/'), new ReadableStream(), (function* () {})(), new SharedArrayBuffer(1), Object(Symbol()), crypto]
			.map((v) => { try { structuredClone({ v }); return 'cloned'; } catch (e) { return e.name + e.code; } }).filter((s) => s !== 'DataCloneError25').join()`, ""},
		// Forged brands: what the object is counts, not what it looks like.
		{`const m = new Map([[1, 2]]); Object.setPrototypeOf(m, Array.prototype); const f = Object.create(Date.prototype); return Object.prototype.toString.call(structuredClone(m)) + (structuredClone(f) instanceof Date) + structuredClone({ [Symbol.toStringTag]: 'Map', a: 1 }).a`, "[object Map]false1"},
		{`const b = new ArrayBuffer(8), u = new Uint8Array(b, 2, 3); u[0] = 7; const c = structuredClone({ b, u, m: new Map([[b, u]]), s: new Set([u]) }, { transfer: [b] }); return [b.detached, c.u.buffer === c.b, c.u[0], c.m.get(c.b) === c.u, c.s.has(c.u), Object.keys(c)].join(' ')`, "true true 7 true true b,u,m,s"},
		// Nothing is detached when something else cannot be cloned.
		{`const b = new ArrayBuffer(4); try { structuredClone({ b, f() {} }, { transfer: [b] }); } catch (e) { return e.name + b.detached; }`, "DataCloneErrorfalse"},
		{`const b = new ArrayBuffer(4); return structuredClone(1, { transfer: [b, b] })`, "throws DataCloneError: A buffer or object that is transferred twice could not be cloned"},
		{`const b = new ArrayBuffer(4, { maxByteLength: 8 }), c = structuredClone([new Uint8Array(b), new Uint8Array(b, 0, 4)]); c[0].buffer.resize(8); return [c[0].length, c[1].length, b.byteLength].join()`, "8,4,4"},
		{`let deep = {}; for (let i = 0, d = deep; i < 50; i++) d = d.d = {}; return JSON.stringify(structuredClone(deep)) === JSON.stringify(deep)`, "true"},
		{`const o = JSON.parse('{"__proto__":{"x":1}}'); const c = structuredClone(o); return Object.getPrototypeOf(c) === Object.prototype && Object.keys(c)[0]`, "__proto__"},
	})
}

// Every message is one text with its level; nothing that is logged can make logging fail, and its size is bounded.
func TestConsole(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`console.log('a', 1, true, null, undefined, 2n, Symbol('s'))`, "1 a 1 true null undefined 2n Symbol(s)"},
		{`console.debug('d'); console.info('i'); console.warn('w'); console.error('e')`, "0 d|2 i|3 w|4 e"},
		{`console.log('%s is %d%% %i %f %o%c.', 'x', 1.9, 2.5, '3.5', { a: [1] }, 'css', 'rest')`, "1 x is 1% 2 3.5 { a: [ 1 ] }. rest"},
		{`console.log('%s', 'a', '%s')`, "1 a %s"},
		{`console.log({ a: { b: { c: { d: { e: { f: 1 } } } } } }, [1, , 'x'], new Map([[1, { a: 2 }]]), new Set(['q']), new Uint8Array(2))`, "1 { a: { b: { c: { d: { e: [Object] } } } } } [ 1, <empty>, 'x' ] Map { 1 => { a: 2 } } Set { 'q' } Uint8Array(2) [ 0, 0 ]"},
		{`class Foo { x = 1; get y() { throw 1; } } const o = new Foo(); o.self = o; console.log(o, Object.create(null), { get a() { throw 1; } }, class A {}, function f() {})`, "1 Foo { x: 1, self: [Circular] } [Object: null prototype] {} { a: [Getter] } [class: A] [Function: f]"},
		{`console.log(new Proxy({}, { get() { throw 1; }, ownKeys() { throw 1; } }), new Date(0), /x/g, new Headers({ a: 'b' }), new Response('x', { status: 201 }))`, "1 [Proxy] 1970-01-01T00:00:00.000Z /x/g Headers { 'a' => 'b' } Response { status: 201 }"},
		{`const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw new Error('no'); } }); console.log(e)`, "1 a value that cannot be shown (Error: no"},
		{`console.group('g'); console.log('in\nner'); console.groupEnd(); console.log('out')`, "1 g|1   in\n  ner|1 out"},
		{`console.count(); console.count('b'); console.count(); console.countReset(); console.count(); console.countReset('none')`, "2 default: 1|2 b: 1|2 default: 2|2 default: 1|3 Count for 'none' does not exist"},
		{`console.assert(true, 'no'); console.assert(false); console.assert(0, 'yes %s', 1)`, "4 Assertion failed|4 Assertion failed: yes 1"},
		{`console.table([{ a: 1, b: 'x' }, { a: 2 }])`, "1 (index) | a | b\n0       | 1 | 'x'\n1       | 2 |"},
		{`console.table([{ a: 1, b: 'x', c: 0 }], ['c', 'a', 'd'])`, "1 (index) | c | a | d\n0       | 0 | 1 |"},
		{`console.timeEnd('t')`, "3 Timer 't' does not exist"},
		{`console.log('x'.repeat(1e6)); console.log({ a: 'x'.repeat(1e6) }); console.log(Array(1e6).fill(1))`, ""},
	} {
		w := newWorld(t)
		if got := w.eval(c.script); got != "undefined" {
			t.Errorf("%s: %s", c.script, got)
		}
		for _, line := range w.log {
			if len(line) > maxLogBytes {
				t.Errorf("%s: a message of %d bytes", c.script, len(line))
			}
		}
		if got := strings.Join(w.log, "|"); c.want != "" && got != c.want && !strings.HasPrefix(got, c.want+"\n") {
			t.Errorf("%s\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}
