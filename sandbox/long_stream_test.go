package sandbox

import (
	"context"
	"io"
	"testing"

	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// A body may be many times as long as the sandbox has memory, wherever it comes from and whatever is done with its chunks
// (module-worker §3.1).
func TestStreamsAreLongerThanMemory(t *testing.T) {
	const length = 96 << 20
	m := newMemoryBucket()
	m.objects["k"] = make([]byte, length)
	s := newBox(t, Options{MaxMemoryBytes: 24 << 20})
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "C", Bucket: m, Counted: true}}, Graph: graphOf(fetcher(`
		const touched = () => new TransformStream({ transform(chunk, c) { chunk[0] ^= 1; c.enqueue(chunk); } });
		let left = 96 << 20;
		const made = size => new ReadableStream({ pull(c) {
			if (left === 0) return c.close();
			left -= size;
			c.enqueue(new Uint8Array(size)); } });
		const ways = {
			small: () => new Response(made(4096)),
			large: () => new Response(made(1 << 20)),
			piped: () => new Response(made(65536).pipeThrough(touched())),
			touched: async () => new Response((await env.C.get('k')).body.pipeThrough(touched())),
			stored: async () => { await env.C.put('c', (await env.C.get('k')).body.pipeThrough(touched())); return new Response((await env.C.get('c')).body); },
			read: async () => { let n = 0; for await (const c of (await env.C.get('k')).body) n += c.length; left = n; return new Response(made(65536)); },
			echo: () => new Response(request.body.pipeThrough(touched())),
		};
		return ways[new URL(request.url).pathname.slice(1)]();`))})
	for _, way := range []string{"small", "large", "piped", "touched", "stored", "read", "echo"} {
		t.Run(way, func(t *testing.T) {
			req, res := request(), event.Response{}
			req.URL = []byte("http://worker.test/" + way)
			if way == "echo" {
				req.Method, req.Length, req.Body = []byte("POST"), -1, &slowBody{io.LimitReader(zeros{}, length), make(chan struct{})}
			}
			if err := v.Serve(context.Background(), req, &res); err != nil {
				t.Fatal(err)
			}
			defer res.Stream.Close()
			if n, err := io.Copy(io.Discard, res.Stream); n != length || err != nil {
				t.Errorf("%d of %d bytes, %v", n, length, err)
			}
		})
	}
}
