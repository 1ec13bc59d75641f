package hostapi

import (
	"fmt"
	"testing"
	"time"

	"edged/sandbox/engine"
)

// What the web classes cost, per operation, in the engine. `nothing` is the loop itself.
func BenchmarkWeb(b *testing.B) {
	for _, bb := range []struct{ name, setup, step string }{
		{"nothing", "", ""},
		{"request/unread", "", "inner.newIncomingRequest('GET', 'http://example.com/a?b=c', 'host\\nexample.com\\naccept\\n*/*\\n', 0, 0)"},
		{"request/method+url", "", "const r = inner.newIncomingRequest('GET', 'http://example.com/a?b=c', 'host\\nexample.com\\naccept\\n*/*\\n', 0, 0); r.method; r.url"},
		{"request/one-header", "", "const r = inner.newIncomingRequest('GET', 'http://example.com/a?b=c', 'host\\nexample.com\\naccept\\n*/*\\nuser-agent\\ncurl\\n', 0, 0); r.headers.get('accept')"},
		{"response/text", "", "inner.responseParts(new Response('hello world'))"},
		{"response/text+header", "", "inner.responseParts(new Response('hello world', { headers: { 'content-type': 'text/plain' } }))"},
		{"response/json", "", "inner.responseParts(Response.json({ hello: 'world' }))"},
		{"response/new-header", "", "inner.responseParts(new Response('x', { headers: { 'x-request-id': 'a84f-' + i } }))"},
		{"response/headers.set", "const o = { headers: { 'content-type': 'text/plain' } };", "const r = new Response('x', o); r.headers.set('x-a', 'b'); inner.responseParts(r)"},
		{"request/constructor", "", "new Request('http://example.com/')"},
		{"url/parse", "", "new URL('https://example.com/a/b?c=d')"},
		{"url/parse+pathname", "", "new URL('https://example.com/a/b?c=d').pathname"},
		{"url/searchParams.get", "", "new URL('https://example.com/a/b?c=d&e=f+g').searchParams.get('e')"},
		{"encode/short", "const e = new TextEncoder();", "e.encode('hello world')"},
		{"decode/short", "const d = new TextDecoder(), u = new TextEncoder().encode('hello world');", "d.decode(u)"},
		{"encode/64KiB", "const e = new TextEncoder(), s = 'hello world, '.repeat(5042);", "e.encode(s)"},
		{"decode/64KiB", "const d = new TextDecoder(), u = new TextEncoder().encode('hello world, '.repeat(5042));", "d.decode(u)"},
		{"digest/SHA-256/1KiB", "const u = new Uint8Array(1024);", "crypto.subtle.digest('SHA-256', u)"},
		{"randomUUID", "", "crypto.randomUUID()"},
		{"structuredClone/small", "const o = { a: 1, b: [1, 2, 3], c: { d: 'e' } };", "structuredClone(o)"},
		{"console.log/short", "", "console.log('hello')"},
		{"console.log/object", "const o = { a: 1, b: [1, 2, 3], c: { d: 'e' } };", "console.log('hello', o)"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWorld(b)
			src := fmt.Sprintf("((n) => { %s for (let i = 0; i < n; i++) { %s } })", bb.setup, bb.step)
			fn, err := w.in.Eval([]byte(src), "bench.js")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				w.in.Arm(time.Minute)
				if _, err := w.in.Call(fn, engine.Undefined, engine.Int(1000)); err != nil {
					b.Fatal(err)
				}
				w.drain()
				w.log = w.log[:0]
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/op") // of one step
		})
	}
}
