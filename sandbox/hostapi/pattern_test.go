package hostapi

import "testing"

// URL Pattern standard: patterns as one string and by component, groups, bases, what is canonical, what is refused.
func TestURLPattern(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const p = new URLPattern({ pathname: '/books/:id(\\d+)/:rest*' }); const m = p.exec('https://a.example/books/12/x/y?q#h');
			return JSON.stringify(m.pathname) + m.protocol.groups[0] + m.search.input + p.test('https://a/books/x') + p.hasRegExpGroups`, `{"input":"/books/12/x/y","groups":{"id":"12","rest":"x/y"}}httpsqfalsetrue`},
		{`const p = new URLPattern('https://{*.}?example.com:8080/{a/}+b\\?x=:v#top'); return [p.protocol, p.hostname, p.port, p.pathname, p.search, p.hash, p.test('https://w.example.com:8080/a/a/b?x=1#top'), p.test('https://example.com/b')].join(' ')`,
			"https {*.}?example.com 8080 /{a/}+b x=:v top true false"},
		{`const p = new URLPattern('../:x', 'https://a.example/b/c/d?q'); return p.hostname + p.pathname + p.search + p.test('./../z', 'https://a.example/b/y')`, "a.example/b//:x*false"},
		{`return [new URLPattern({ protocol: 'http{s}?', port: '443' }).port, new URLPattern({ protocol: 'https', port: '443' }).port, new URLPattern('HTTPS://EX\u00c4MPLE.com/\u00fc').hostname].join('|')`, "443||xn--exmple-cua.com"},
		{`const p = new URLPattern({ pathname: '/FOO' }, { ignoreCase: true }); return p.test({ pathname: '/foo' }) + '' + new URLPattern({ pathname: '/FOO' }).test({ pathname: '/foo' })`, "truefalse"},
		{`return JSON.stringify(new URLPattern({ pathname: '/x{(a)}?b' }).exec({ pathname: '/xb' }).pathname.groups) + JSON.stringify(new URLPattern({ hash: '*' }).exec('not a url'))`, `{}null`},
		// Expressions of the pattern's own, with the flag v; those of the protocol decide whether the path is one.
		{`return new URLPattern({ pathname: '/([\\p{L}--[a-z]]+)-(x::y)' }).test({ pathname: '/AB-x::y' })`, "true"},
		{`return new URLPattern({ search: '([[a-z]--[aeiou]]+)-(x::y)' }).exec({ search: 'bcd-x::y' }).search.groups[0]`, "bcd"},
		{`return [new URLPattern('(https?)://a/b').pathname, new URLPattern('(x)://a/b').pathname, new URLPattern({ protocol: '(http|x)', pathname: 'a/./b' }).pathname].join()`, "/b,/b,a/b"},
		// Punctuation that the flag v reserves inside of classes means itself outside of them.
		{`return [new URLPattern('https://(sub.)?example(.com/)foo').test('https://example.com/foo'), new URLPattern({ hash: '(a/b-c)d' }).test({ hash: 'a/b-cd' })].join()`, "false,true"},
		// What a string passes over is empty, not anything.
		{`const p = new URLPattern('https://a/b#h'); return [p.port, p.search, p.username].join('|') + new URLPattern('https://a?q').pathname`, "||*/"},
		{`return new URLPattern({ pathname: '/([' })`, "throws TypeError: URLPattern: a piece of the pattern is not valid at character 1"},
		{`return new URLPattern({ pathname: '/([a)' })`, "throws TypeError: URLPattern: a regular expression in the pattern is not valid"},
		{`return new URLPattern({ pathname: '/:a/:a' })`, `throws TypeError: URLPattern: the name "a" stands for two groups`},
		{`return new URLPattern('/only/a/path')`, "throws TypeError: URLPattern: a relative pattern needs a base URL"},
		{`return new URLPattern({}, 'https://a/')`, "throws TypeError: URLPattern: a base URL goes with a string only"},
		{`return new URLPattern({ port: 'x' })`, `throws TypeError: URLPattern: "x" is not a valid port`},
		{`return new URLPattern({ pathname: 'x'.repeat(70000) })`, "throws TypeError: URLPattern: the input is longer than 65536 bytes"},
		{`return new URLPattern({ pathname: '/:__proto__' }).exec({ pathname: '/x' }).pathname.groups.__proto__`, "x"},
		{`return [new URLPattern(), new URLPattern(undefined, {}), new URLPattern({})].every((p) => p.test('https://a/b') && p.pathname === '*')`, "true"},
	})
}
