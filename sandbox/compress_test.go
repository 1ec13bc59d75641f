package sandbox

import "testing"

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
