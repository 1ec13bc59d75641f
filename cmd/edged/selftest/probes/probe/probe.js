// The worker that edged selftest asks. Each path shows one rule; what is right is judged outside.
let count = 0;
const bytes = (buffer) => [...new Uint8Array(buffer)];
const nameOf = (promise) => promise.then(() => 'resolved', (e) => e.name);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function sql(db) {
	await db.execute('delete from t');
	const changed = await nameOf(db.execute('create table u(n)'));
	const insert = await db.execute('insert into t values(?1, ?2, ?3)',
		[{ type: 'integer', value: '9007199254740993' }, { type: 'text', value: 'é' }, { type: 'blob', base64: 'AP8=' }]);
	const failed = await nameOf(db.transaction([{ sql: 'insert into t values(1, null, null)' }, { sql: 'insert into nowhere values(1)' }]));
	const refused = await nameOf(db.query('insert into t values(2, null, null)'));
	const read = await db.query('select n, s, b, 1.0 as r, null as x from t');
	return [insert.rowsWritten, changed, failed, refused, read.rows];
}

async function objects(files) {
	const body = Uint8Array.from({ length: 1024 }, (_, n) => n % 256).buffer;
	const put = await files.put('dir/a', body);
	await files.put('dir/b', 'bb');
	const part = await files.get('dir/a', { range: { offset: 512, length: 4 } });
	const seen = [put.size, part.partial, part.size, bytes(await new Response(part.body).arrayBuffer())];
	seen.push((await files.head('dir/a')).etag === put.etag);
	seen.push(await nameOf(files.put('dir/a', 'x', { ifNoneMatch: '*' })), await nameOf(files.get('dir/b', { range: { offset: 64 } })));
	const page = await files.list({ prefix: 'dir/', limit: 1 });
	seen.push(page.objects.map((o) => o.key), page.truncated);
	await files.delete('dir/a');
	seen.push(await files.head('dir/a'));
	return seen;
}

function flood(env, ctx) {
	let sent = 0;
	const piece = new Uint8Array(65536);
	return new Response(new ReadableStream({
		pull(c) { sent += piece.length; c.enqueue(piece); },
		cancel() { ctx.waitUntil(env.CACHE.put('flood', String(sent))); },
	}));
}

function cut() {
	let n = 0;
	return new Response(new ReadableStream({ pull(c) { if (n++ > 0) throw new Error('inside'); c.enqueue(new TextEncoder().encode('hello')); } }));
}

async function text(cache, key) {
	const value = await cache.get(key);
	return value === null ? '' : new TextDecoder().decode(value);
}

export default {
	async fetch(request, env, ctx) {
		const url = new URL(request.url);
		switch (url.pathname) {
		case '/host': return new Response('probe ' + url.host);
		case '/env': return Response.json([Object.keys(env).sort(), env.GREETING]);
		case '/count': { const before = typeof globalThis.mark; globalThis.mark = 1; return Response.json([++count, before]); }
		case '/claims': return Response.json([...request.headers].filter(([name]) => name.startsWith('edged-')));
		case '/own': return new Response('own', { headers: { 'Edged-Error': 'worker_error', 'X-Own': 'kept' } });
		case '/throw': throw new Error('inside');
		case '/number': return 7;
		case '/echo': return new Response(request.body.pipeThrough(new TransformStream()));
		case '/cut': return cut();
		case '/flood': return flood(env, ctx);
		case '/flooded': return new Response(await text(env.CACHE, 'flood'));
		case '/hold': await sleep(3000); return new Response('held');
		case '/ignore': return new Response('ignored');
		case '/lengths': return Response.json([request.url.length, [...request.headers].filter(([name]) => name.startsWith('x-many-')).length]);
		case '/spin': for (;;);
		case '/eat': for (const all = []; ;) all.push(new Uint8Array(1 << 20).fill(1));
		case '/kv': {
			const never = await env.CACHE.get('never'), none = await env.CACHE.list({ prefix: 'never/' });
			const long = await nameOf(env.CACHE.get('é'.repeat(234)));
			await env.CACHE.put('bytes', new Uint8Array([0, 255, 128, 65]), { metadata: { kind: 'probe' } });
			return Response.json([never, none.keys, none.listComplete, long]);
		}
		case '/kv/read': {
			const found = await env.CACHE.getWithMetadata('bytes');
			return Response.json(found && [bytes(found.value), found.metadata]);
		}
		case '/sql': return Response.json(await sql(env.DB));
		case '/objects': return Response.json(await objects(env.FILES));
		case '/send': return new Response(await env.TASKS.send(new Uint8Array([0, 255, 128])));
		case '/seen': return new Response(await text(env.CACHE, 'seen'));
		case '/peer/echo': return env.PEER.fetch(new Request('http://peer.invalid/echo', request));
		case '/peer/throw': { const r = await env.PEER.fetch('http://peer.invalid/throw'); return Response.json(['caller', r.status]); }
		}
		return new Response('probe: no such probe', { status: 404 });
	},
	async scheduled() {},
	async queue(batch, env) {
		await env.CACHE.put('seen', JSON.stringify([batch.queue, batch.messages.map((m) => [m.id, bytes(m.body), m.attempts])]));
	},
};
