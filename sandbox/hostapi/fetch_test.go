package hostapi

import "testing"

// Fetch: a data: URL is answered without a host, also while modules are evaluated.
func TestFetchData(t *testing.T) {
	const get = `const get = async (url, init) => { const r = await fetch(url, init); return [r.status, r.statusText, r.type, r.url, r.headers.get('content-type'), await r.text()].join('|'); };`
	scripts(t, []struct{ script, want string }{
		{get + `return get('data:,a%20b#c')`, "200|OK|basic|data:,a%20b|text/plain;charset=US-ASCII|a b"},
		{get + `return get('data:text/HTML;Base64,Yg==')`, "200|OK|basic|data:text/HTML;Base64,Yg==|text/html|b"},
		{get + `return get('data:;charset=utf-8,%C3%A9')`, "200|OK|basic|data:;charset=utf-8,%C3%A9|text/plain;charset=utf-8|é"},
		{get + `return get('data:x/y,z', { method: 'HEAD' })`, "200|OK|basic|data:x/y,z|x/y|"},
		{`return fetch('data:x')`, "throws TypeError: fetch failed: the data: URL has no comma"},
		{`return fetch('data:;base64,a')`, "throws TypeError: fetch failed: the data: URL is not base64"},
		{`return fetch('data:,x', { signal: AbortSignal.abort() })`, "throws AbortError: The operation was aborted"},
	})
}

// Fetch, "request-no-cors": only what a form could send passes; other guards than that and `immutable` there are none.
func TestNoCorsHeaders(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const r = new Request('http://a/', { mode: 'no-cors', method: 'POST', body: 'x', headers: { accept: 'a', 'x-y': 'z', 'content-type': 'application/json', cookie: 'c' } });
			return JSON.stringify([...r.headers])`, `[["accept","a"],["content-type","text/plain;charset=UTF-8"]]`},
		{`const h = new Request('http://a/', { mode: 'no-cors' }).headers; h.append('accept', 'a'.repeat(100)); h.append('accept', 'b'.repeat(100)); h.set('accept-language', 'en"'); h.set('content-language', 'en');
			h.delete('x'); const before = [...h].length; h.delete('content-language'); return [before, [...h].length, h.get('accept').length].join()`, "2,1,100"},
		{`const r = new Request(new Request('http://a/', { headers: { 'x-y': 'z' } }), { mode: 'no-cors' }); return [r, r.clone()].map((r) => r.headers.has('x-y')).join()`, "false,false"},
		{`const r = new Request('http://a/', { headers: { cookie: 'c', host: 'h' } }); return r.headers.get('cookie') + r.headers.get('host')`, "ch"},
	})
}
