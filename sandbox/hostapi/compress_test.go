package hostapi

import "testing"

// Compression standard: formats, pieces, errors; and what is unpacked waits for its reader.
func TestCompressionStreams(t *testing.T) {
	const through = `const through = (data, ...streams) => { let s = new Response(data).body; for (const one of streams) s = s.pipeThrough(one); return new Response(s); }; `
	scripts(t, []struct{ script, want string }{
		{through + `const text = 'hello '.repeat(50000); return (await Promise.all(['gzip', 'deflate', 'deflate-raw'].map(async (f) => {
			const packed = await through(text, new CompressionStream(f)).bytes();
			return packed.length < 2000 && await through(packed, new DecompressionStream(f)).text() === text;
		}))).join()`, "true,true,true"},
		{through + `return await through(Uint8Array.fromBase64('H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA=='), new DecompressionStream('gzip')).text()`, "hello"},
		{through + `return await through(Uint8Array.fromBase64('H4sIAAAAAAAAA8tIzcnJBwCGphA3BQAAAA=='), new DecompressionStream('gzip')).text()`, "throws TypeError: the compressed data is not valid"},
		{through + `return await through(Uint8Array.fromBase64('eJzLSM3JyQcABiwCFQ=='), new DecompressionStream('deflate')).text()`, "hello"},
		{through + `return await through(Uint8Array.fromBase64('eJzLSM3JyQcABiwCFQ==').subarray(0, 10), new DecompressionStream('deflate')).text()`, "throws TypeError: the compressed data ends too early"},
		{through + `return await through(Uint8Array.fromBase64('eJzLSM3JyQcABiwCFQAA'), new DecompressionStream('deflate')).text()`, "throws TypeError: there is more data behind the end of the compressed data"},
		{`return new CompressionStream('br')`, "throws TypeError: CompressionStream: the format br is not supported"},
		{`const w = new CompressionStream('gzip').writable.getWriter(); return w.write('text')`, "pending"},
		{`const c = new CompressionStream('gzip'), w = c.writable.getWriter(); c.readable.getReader().read().catch(() => {}); return w.write('text')`, "throws TypeError: the chunk is neither an ArrayBuffer nor a view of one"},
		// A bomb is unpacked no faster than it is read, and cancelling the reader ends it.
		{through + `const bomb = await through(new Uint8Array(16 << 20), new CompressionStream('gzip')).bytes();
			const d = new DecompressionStream('gzip'), w = d.writable.getWriter(), r = d.readable.getReader(); let written = false; w.write(bomb).then(() => written = true, () => {}); w.closed.catch(() => {});
			const sizes = []; for (let i = 0; i < 3; i++) sizes.push((await r.read()).value.length); const early = written; await r.cancel(); return bomb.length < 65536 && sizes + ' ' + early`, "65536,65536,65536 false"},
		// The same bytes read to their end are all there.
		{through + `const bomb = await through(new Uint8Array(3 << 20), new CompressionStream('deflate')).bytes(); let n = 0; for await (const c of through(bomb, new DecompressionStream('deflate')).body) n += c.length; return n`, "3145728"},
		// A large chunk that its owner changes while it waits is read as it was.
		{through + `const data = crypto.getRandomValues(new Uint8Array(65536)), big = new Uint8Array(200000); for (let i = 0; i < 200000; i++) big[i] = data[i % 60000]; const copy = big.slice();
			const c = new CompressionStream('deflate-raw'), w = c.writable.getWriter(); w.write(big); w.close(); const out = new Response(c.readable.pipeThrough(new DecompressionStream('deflate-raw'))).bytes(); await null; await null; await null; await null; big.fill(0);
			const got = await out; return got.length === 200000 && got.every((v, i) => v === copy[i])`, "true"},
		// Too many at once is refused; what has ended does not count.
		{through + `for (let i = 0; i < 50; i++) await through('x', new CompressionStream('gzip')).bytes(); const open = []; for (let i = 0; i < 100; i++) open.push(new DecompressionStream('gzip'))`, "throws RangeError: too many compression streams are open"},
	})
}
