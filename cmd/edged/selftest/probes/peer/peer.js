// The other worker: another host, the target of a service binding, and the one whose traffic is split.
export default {
	async fetch(request, env) {
		switch (new URL(request.url).pathname) {
		case '/version': return new Response('peer ' + env.VERSION);
		case '/mark': return new Response('peer ' + typeof globalThis.mark);
		case '/echo': return Response.json(['peer', request.method, request.headers.get('x-probe'), await request.text(), Object.keys(env).sort()]);
		case '/throw': throw new Error('inside');
		}
		return new Response('peer: no such probe', { status: 404 });
	},
};
