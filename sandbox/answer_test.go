package sandbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// Most responses are read where they are, the others through the prelude: nobody can tell which. Each handler answers twice.
func TestResponsesReadInPlace(t *testing.T) {
	const modules = `const kept = new Response('kept');
		class Mine extends Response {}
		let stolen;
		const slots = new Proxy(new Response('bait'), { get(target, name) { if (typeof name === 'symbol') stolen ??= name; return target[name]; } });
		try { Response.prototype.text.call(slots).catch(() => {}); } catch {}`
	boxes := map[Isolation]*Sandbox{}
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		boxes[isolation] = newBox(t, Options{Isolation: isolation, MaxCPU: 50 * time.Millisecond})
	}
	for _, c := range []struct {
		handler string // the body of fetch
		want    string // status, header names, body; of both answers
		again   string // of the second, if that is another
	}{
		{"return new Response('text')", "200 content-type text", ""},
		{"return new Response()", "200  ", ""},
		{"return new Response(null, { status: 204, headers: { a: '1' } })", "204 a ", ""},
		{"return new Response('x', { status: 404, statusText: 'Gone fishing', headers: [['a', '1'], ['b', '2']] })", "404 a b content-type x", ""},
		{"return new Response(new Uint8Array([104, 105]))", "200  hi", ""},
		{"return Response.json({ a: [1] })", "200 content-type {\"a\":[1]}", ""},
		{"return Response.json(1, { status: 201, headers: { 'content-type': 'x/y' } })", "201 content-type 1", ""},
		{"return new Response('cloned').clone()", "200 content-type cloned", ""},
		{"const r = new Response('kept'); r.headers.set('a', '1'); return r", "200 content-type a kept", ""},
		{"return Response.redirect('http://a.test/')", "302 location ", ""},
		{"return new Mine('mine')", "200 content-type mine", ""},
		{"const r = new Response('more'); r.more = 1; return r", "200 content-type more", ""},
		{"return Object.freeze(new Response('frozen'))", "200 content-type frozen", ""},
		{"return new Proxy(new Response('x'), {})", "200 content-type x", ""},
		{"return Response.error()", "worker_error", ""},
		{"const r = new Response('read'); await r.text(); return r", "worker_error", ""},
		{"const r = new Response('read'); r.body.getReader(); return r", "worker_error", ""},
		{"return 'text'", "worker_error", ""},
		{"return Object.create(Response.prototype)", "worker_error", ""},
		{"return { __proto__: Response.prototype }", "worker_error", ""},
		{"context.waitUntil(Promise.resolve()); return new Response('later')", "200 content-type later", ""},
		{"const r = new Response('x'); context.waitUntil(Promise.resolve().then(() => { if (!r.bodyUsed) throw 1 })); return r", "200 content-type x", ""},
		{"return kept", "200 content-type kept", "worker_error"},
		{"const r = new Response('x'); if (stolen) r[stolen] = { get 0() { for (;;); } }; return r", "cpu_exceeded", ""},
		{"const r = new Response('x'); if (stolen) r[stolen][1] = 'a: b\\r\\n'; return r", "worker_error", ""},
		{"const r = new Response('x'); if (stolen) r[stolen][0] = 99; return r", "worker_error", ""},
	} {
		for isolation, s := range boxes {
			v := openWorker(t, s, fmt.Sprintf("%s; export default { async fetch(request, env, context) { %s } }", modules, c.handler))
			for i := range 2 {
				want := c.want
				if i == 1 && c.again != "" && isolation == IsolateWorker {
					want = c.again
				}
				if got := shown(v); got != want {
					t.Errorf("%s: answer %d under isolation %d is %q, want %q", c.handler, i, isolation, got, want)
				}
			}
		}
	}
}

// shown is an answer in one line.
func shown(v *Version) string {
	var res event.Response
	if err := v.Serve(context.Background(), request(), &res); err != nil {
		return fault.NameOf(err)
	}
	var names []string
	for i, field := range strings.Split(string(res.Header), "\n") {
		if i%2 == 0 && field != "" {
			names = append(names, field)
		}
	}
	return fmt.Sprintf("%d %s %s", res.Status, strings.Join(names, " "), res.Body)
}

// A packed header that the prelude would never make is refused all the same.
func TestCheckHeader(t *testing.T) {
	for _, c := range []struct {
		packed string
		length int64
		why    string
	}{
		{"", -1, ""},
		{"a\nb\n", -1, ""},
		{"content-length\n12\na\n\n", 12, ""},
		{"a\xff\nb\n", -1, "name"},
		{"A\nb\n", -1, "name"},
		{"a b\nc\n", -1, "name"},
		{"\nc\n", -1, "name"},
		{"a", -1, "name"},
		{"a\nb", -1, "value"},
		{"a\nb\rc\n", -1, "value"},
		{"a\nb\x00\n", -1, "value"},
		{"a\nb\nsplit\nc", -1, "value"},
		{"content-length\n1\ncontent-length\n1\n", -1, "content-length"},
		{"content-length\n-1\n", -1, "content-length"},
		{"content-length\n1,1\n", -1, "content-length"},
		{"content-length\n99999999999999999999\n", -1, "content-length"},
		{strings.Repeat("a\nb\n", 11), -1, "too many"},
		{"a\n" + strings.Repeat("b", 1000) + "\n", -1, "too large"},
	} {
		length, why := checkHeader([]byte(c.packed), 10, 500)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || why == "" && length != c.length {
			t.Errorf("%.40q: got %d, %q, want %d, %q", c.packed, length, why, c.length, c.why)
		}
	}
}

// What checkHeader accepts can be written to a connection as it is: no CR, LF or NUL inside a field, names are tokens.
func FuzzCheckHeader(f *testing.F) {
	f.Add([]byte("content-type\ntext/plain\nx\n\n"))
	f.Add([]byte("a\r\nb\n"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		if _, why := checkHeader(packed, 64, 16384); why != "" {
			return
		}
		fields := strings.Split(string(packed), "\n")
		if len(fields)%2 != 1 || fields[len(fields)-1] != "" {
			t.Fatalf("%q has an odd field", packed)
		}
		for i, s := range fields[:len(fields)-1] {
			if strings.ContainsAny(s, "\r\x00") || i%2 == 0 && (s == "" || strings.ContainsAny(s, " :\t")) {
				t.Fatalf("%q holds %q", packed, s)
			}
		}
	})
}
