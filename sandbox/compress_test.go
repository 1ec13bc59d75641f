package sandbox

import (
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// module-worker §7: what module code left open is no part of the snapshot, and nothing of one invocation's codecs is seen
// by another. Numbers of codecs begin anew, so an old stream must not meet a new codec.
func TestCodecsEndWithTheirInvocation(t *testing.T) {
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{Isolation: isolation})
		v := openWorker(t, s, `
			const old = new DecompressionStream('gzip');
			const writer = old.writable.getWriter();
			old.readable.getReader().read().catch(() => {});
			const use = (w, data) => w.write(data).then(() => 'written', (e) => e.message);
			export default { async fetch() {
				const mine = new CompressionStream('gzip');
				const packed = new Response(mine.readable).bytes();
				const w = mine.writable.getWriter();
				const said = await use(writer, new Uint8Array(4));
				w.write(new Uint8Array(1000)); w.close();
				return new Response(said + ' ' + (await packed).subarray(0, 2).toHex());
			} }`)
		for range 3 {
			if got := serve(t, v, request()); got.body != "the compression stream is from an invocation that is over 1f8b" {
				t.Errorf("isolation %v: %q", isolation, got.body)
			}
		}
	}
}

// A form that arrives in pieces is parsed, and a response is compressed as it is produced.
func TestFormInCompressedOut(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, `export default { async fetch(request) {
		const form = await request.formData();
		const lines = new ReadableStream({ async start(c) {
			for (const [name, value] of form) {
				await new Promise((r) => setTimeout(r));
				c.enqueue(name + '=' + (typeof value === 'string' ? value : value.name + ':' + value.type + ':' + await value.text()) + ';');
			}
			c.close();
		} });
		return new Response(lines.pipeThrough(new TextEncoderStream()).pipeThrough(new CompressionStream('gzip')));
	} }`)
	const form = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\nContent-Type: text/x\r\n\r\nfile\r\n--x--\r\n"
	for range 2 {
		body := newBody()
		body.push(form[:50])
		body.push(form[50:])
		body.end(io.EOF)
		req := post(body, -1)
		req.Header = []byte("content-type\nmultipart/form-data; boundary=x\n")
		got := serve(t, v, req)
		r, err := gzip.NewReader(strings.NewReader(got.body))
		if err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "a=1;f=n.txt:text/x:file;" {
			t.Errorf("%q, %v", text, err)
		}
	}
}
