package hostapi

import (
	"strings"
	"testing"
)

// subtleHelp is what the scripts below have at hand.
const subtleHelp = `const s = crypto.subtle, hex = (b) => new Uint8Array(b).toHex(), from = (h) => Uint8Array.fromHex(h), text = (t) => new TextEncoder().encode(t);
const name = async (f) => { try { await f(); return 'ok'; } catch (e) { return e instanceof DOMException || e instanceof TypeError ? e.name : 'other ' + e; } };
const names = async (...fs) => { const out = []; for (const f of fs) out.push(await name(f)); return out.join(); };
const aes = (n = 'AES-GCM', u = ['encrypt', 'decrypt'], x = true) => s.generateKey({ name: n, length: 128 }, x, u);
const hmac = (u = ['sign', 'verify'], x = true) => s.importKey('raw', text('key'), { name: 'HMAC', hash: 'SHA-256' }, x, u);
`

func subtleScripts(t *testing.T, cases []struct{ script, want string }) {
	t.Helper()
	for i := range cases {
		cases[i].script = subtleHelp + cases[i].script
	}
	scripts(t, cases)
}

// What the interfaces look like (Web IDL): members, lengths, brands, no way to make a key.
func TestSubtleShape(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		{`return Object.getOwnPropertyNames(SubtleCrypto.prototype).map((n) => n + SubtleCrypto.prototype[n].length).join()`,
			"constructor0,encrypt3,decrypt3,sign3,verify4,digest2,generateKey3,deriveKey5,deriveBits2,importKey5,exportKey2,wrapKey4,unwrapKey7"},
		{`return Object.entries(Object.getOwnPropertyDescriptors(CryptoKey.prototype)).map(([n, d]) => n + d.enumerable).join() + CryptoKey.length + Object.prototype.toString.call(await hmac())`,
			"constructorfalse,typetrue,extractabletrue,algorithmtrue,usagestrue0[object CryptoKey]"},
		{`return names(() => new CryptoKey(), () => new CryptoKey({}, {}), () => CryptoKey(), () => new SubtleCrypto(), () => Object.getOwnPropertyDescriptor(CryptoKey.prototype, 'type').get.call({}),
			() => SubtleCrypto.prototype.digest.call({}, 'SHA-1', text('')), () => s.sign(), () => s.exportKey('raw', Object.create(CryptoKey.prototype)), () => s.exportKey('raw', new Proxy(hmac(), {})))`,
			strings.Repeat(",TypeError", 9)[1:]},
		// Nothing hangs on a key, and what its getters give is the same object each time, and nobody else's.
		{`const k = await hmac(); k.usages.push('x'); k.algorithm.name = 'y'; const c = structuredClone(k); return [Reflect.ownKeys(k).length, k.usages === k.usages, k.algorithm === k.algorithm, k.usages.length, c.usages.join(), JSON.stringify(c.algorithm), await name(() => s.sign('HMAC', k, text('')))].join(' ')`,
			`0 true true 3 sign,verify {"name":"HMAC","hash":{"name":"SHA-256"},"length":24} ok`},
		// Every method answers with a promise, also to nonsense, and none is settled when it is returned.
		{`const order = []; const p = s.digest('SHA-1', text('')).then(() => order.push('digest')); Promise.resolve().then(() => order.push('other')); await p; return order.join()`, "other,digest"},
		{`const all = Object.getOwnPropertyNames(SubtleCrypto.prototype).slice(1).map((n) => s[n]()); return all.every((p) => p instanceof Promise) + (await Promise.allSettled(all)).map((r) => r.reason.name).join()`, "true" + strings.Repeat(",TypeError", 12)[1:]},
	})
}

// Algorithm normalization: names in any case of ASCII, required members, ranges, and which error comes first.
func TestSubtleNormalization(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		{`return [hex(await s.digest('sHa-1', text('abc'))).slice(0, 8), (await s.generateKey({ name: 'aes-gcm', length: 128 }, true, ['encrypt'])).algorithm.name, (await s.generateKey({ name: 'ed25519' }, true, ['sign'])).publicKey.algorithm.name].join()`, "a9993e36,AES-GCM,Ed25519"},
		{`return names(() => s.digest('\u017fHA-1', text('')), () => s.digest({}, text('')), () => s.digest(null, text('')), () => s.digest({ name: undefined }, text('')), () => s.digest('', text('')), () => s.digest('x'.repeat(1e6), text('')), () => s.digest('toString', text('')), () => s.digest('__proto__', text('')), () => s.digest(Symbol(), text('')))`,
			"NotSupportedError,TypeError,NotSupportedError,TypeError,NotSupportedError,NotSupportedError,NotSupportedError,NotSupportedError,TypeError"},
		// An algorithm is only one for the operations that it is registered for.
		{`const k = await aes(); return names(() => s.sign('AES-GCM', k, text('')), () => s.encrypt('HMAC', k, text('')), () => s.deriveBits('AES-GCM', k, 8), () => s.digest('AES-GCM', text('')), () => s.generateKey('HKDF', false, ['deriveBits']), () => s.generateKey('SHA-1', false, []))`,
			strings.Repeat(",NotSupportedError", 6)[1:]},
		{`return names(() => s.generateKey('AES-GCM', true, ['encrypt']), () => s.generateKey({ name: 'AES-GCM', length: -1 }, true, []), () => s.generateKey({ name: 'AES-GCM', length: 65536 }, true, []), () => s.generateKey({ name: 'AES-GCM', length: NaN }, true, []), () => s.generateKey({ name: 'AES-GCM', length: 128.9 }, true, ['encrypt']),
			() => s.generateKey({ name: 'RSA-PSS', modulusLength: 2048, publicExponent: [1, 0, 1], hash: 'SHA-1' }, true, ['sign']), () => s.generateKey({ name: 'ECDSA' }, true, ['sign']), () => s.importKey('raw', text('k'), { name: 'HMAC', hash: 'MD5' }, true, ['sign']), () => s.importKey('raw', text('k'), 'HMAC', true, ['sign']))`,
			"TypeError,TypeError,TypeError,TypeError,ok,TypeError,TypeError,NotSupportedError,TypeError"},
		// The order in which members are read, and each once more than the name alone.
		{`const seen = []; const spy = (o) => new Proxy(o, { get(t, k) { seen.push(k); return t[k]; } }); await s.generateKey(spy({ name: 'RSASSA-PKCS1-v1_5', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: spy({ name: 'SHA-1' }) }), true, ['sign']); return seen.join()`,
			"name,modulusLength,publicExponent,hash,name"},
		{`return names(() => s.importKey('der', text('k'), 'HKDF', false, []), () => s.importKey('raw', text('k'), 'HKDF', false, ['derive']), () => s.importKey('raw', text('k'), 'HKDF', false, 'deriveBits'), () => s.importKey('raw', text('k'), 'HKDF', false, 1), () => s.importKey('raw', 'text', 'HKDF', false, []), () => s.importKey('raw', {}, 'HKDF', false, []), () => s.importKey('jwk', text('k'), 'HKDF', false, []), () => s.importKey('raw', null, 'HKDF', false, []))`,
			strings.Repeat(",TypeError", 8)[1:]},
		// Data is read when the algorithm has been, and none is left in what was detached meanwhile.
		{`const d = text('abc'); const h = await s.digest({ get name() { d[0] = 120; return 'SHA-1'; } }, d); return hex(h) === hex(await s.digest('SHA-1', text('xbc')))`, "true"},
		{`const d = text('abc'); const h = await s.digest({ get name() { d.buffer.transfer(); return 'SHA-1'; } }, d); return hex(h)`, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{`const d = text('abc'), p = s.digest('SHA-1', d); d[0] = 0; return hex(await p).slice(0, 8)`, "a9993e36"},
		{`return names(() => s.digest('SHA-1', new Uint8Array(new SharedArrayBuffer(1))), () => s.digest('SHA-1', [1]), () => s.digest('SHA-1', 'a'))`, "TypeError,TypeError,TypeError"},
	})
}

// generateKey: what is made, and the checks in their order: usages, parameters, then the lack of usages.
func TestSubtleGenerate(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		{`const show = (k) => [k.type, k.extractable, JSON.stringify(k.algorithm), k.usages.join('+')].join(' '); const out = [];
		for (const [a, u] of [[{ name: 'RSA-OAEP', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-512' }, ['unwrapKey', 'encrypt', 'decrypt', 'wrapKey']], [{ name: 'ECDSA', namedCurve: 'P-521' }, ['verify', 'sign']], ['X25519', ['deriveBits', 'deriveKey']]]) {
			const p = await s.generateKey(a, false, u); out.push(Object.keys(p).join(), show(p.publicKey), show(p.privateKey));
		}
		for (const [a, u] of [[{ name: 'AES-KW', length: 256 }, ['wrapKey', 'wrapKey']], [{ name: 'HMAC', hash: 'sha-384' }, ['sign']], [{ name: 'HMAC', hash: 'SHA-1', length: 9 }, ['sign']]]) { const k = await s.generateKey(a, true, u); out.push(show(k) + (await s.exportKey('raw', k)).byteLength); }
		return out.join('\n')`, strings.Join([]string{
			`privateKey,publicKey`,
			`public true {"name":"RSA-OAEP","modulusLength":1024,"publicExponent":{"0":1,"1":0,"2":1},"hash":{"name":"SHA-512"}} encrypt+wrapKey`,
			`private false {"name":"RSA-OAEP","modulusLength":1024,"publicExponent":{"0":1,"1":0,"2":1},"hash":{"name":"SHA-512"}} decrypt+unwrapKey`,
			`privateKey,publicKey`,
			`public true {"name":"ECDSA","namedCurve":"P-521"} verify`,
			`private false {"name":"ECDSA","namedCurve":"P-521"} sign`,
			`privateKey,publicKey`,
			`public true {"name":"X25519"} `,
			`private false {"name":"X25519"} deriveKey+deriveBits`,
			`secret true {"name":"AES-KW","length":256} wrapKey32`,
			`secret true {"name":"HMAC","hash":{"name":"SHA-384"},"length":1024} sign128`,
			`secret true {"name":"HMAC","hash":{"name":"SHA-1"},"length":9} sign2`}, "\n")},
		{`const rsa = (o, u = ['sign']) => () => s.generateKey({ name: 'RSA-PSS', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1', ...o }, true, u);
		return names(rsa({ publicExponent: new Uint8Array([3]) }), rsa({ publicExponent: new Uint8Array([0, 0, 1, 0, 1]) }), rsa({ publicExponent: new Uint8Array(0) }), rsa({ modulusLength: 512 }), rsa({ modulusLength: 8192 }), rsa({ modulusLength: 1025 }), rsa({}, ['encrypt']), rsa({ modulusLength: 0 }, ['encrypt']), rsa({ modulusLength: 0 }, []), rsa({}, []), rsa({}, ['verify']))`,
			"OperationError,ok,OperationError,OperationError,OperationError,OperationError,SyntaxError,SyntaxError,OperationError,SyntaxError,SyntaxError"},
		{`const g = (a, u) => () => s.generateKey(a, true, u); return names(g({ name: 'AES-GCM', length: 127 }, ['encrypt']), g({ name: 'AES-GCM', length: 127 }, ['sign']), g({ name: 'AES-GCM', length: 128 }, []), g({ name: 'HMAC', hash: 'SHA-1', length: 0 }, ['sign']), g({ name: 'HMAC', hash: 'SHA-1', length: 2 ** 32 - 1 }, ['sign']), g({ name: 'ECDH', namedCurve: 'P-255' }, ['deriveBits']), g({ name: 'ECDH', namedCurve: 'p-256' }, ['sign']), g({ name: 'ECDH', namedCurve: 'P-256' }, []), g('Ed25519', ['verify']), g('X25519', ['sign']))`,
			"OperationError,SyntaxError,SyntaxError,OperationError,OperationError,NotSupportedError,SyntaxError,SyntaxError,SyntaxError,SyntaxError"},
	})
}

// Imports and exports: types, usages, the order of the checks, and what may not leave.
func TestSubtleImportExport(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		{`const out = []; for (const [a, u] of [[{ name: 'RSA-OAEP', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, ['encrypt', 'decrypt']], [{ name: 'ECDH', namedCurve: 'P-384' }, ['deriveBits']], [{ name: 'Ed25519' }, ['sign', 'verify']], [{ name: 'X25519' }, ['deriveBits']]]) {
			const pair = await s.generateKey(a, true, u);
			for (const k of [pair.publicKey, pair.privateKey]) for (const f of ['raw', 'spki', 'pkcs8', 'jwk']) {
				let data; try { data = await s.exportKey(f, k); } catch (e) { out.push(e.name[0]); continue; }
				const back = await s.importKey(f, data, a, true, k.usages), again = await s.exportKey(f, back);
				out.push(back.type === k.type && JSON.stringify(back.algorithm) === JSON.stringify(k.algorithm) && (f === 'jwk' ? JSON.stringify(again) === JSON.stringify(data) : hex(again) === hex(data)));
			} } return out.join()`, "N,true,I,true,N,I,true,true" + strings.Repeat(",true,true,I,true,I,I,true,true", 3)},
		{`const k = await s.importKey('jwk', { kty: 'oct', k: 'AAECAwQFBgcICQoLDA0ODw', alg: 'A128GCM', ext: true, key_ops: ['encrypt', 'decrypt'] }, 'AES-GCM', true, ['encrypt']); const j = await s.exportKey('jwk', k); return Object.getPrototypeOf(j) === Object.prototype && JSON.stringify(j)`,
			`{"alg":"A128GCM","ext":true,"k":"AAECAwQFBgcICQoLDA0ODw","key_ops":["encrypt"],"kty":"oct"}`},
		{`const k = await s.importKey('raw', new Uint8Array([255, 255]), { name: 'HMAC', hash: 'SHA-512', length: 12 }, true, ['verify']); return hex(await s.exportKey('raw', k)) + k.algorithm.length + (await s.exportKey('jwk', k)).alg`, "fff012HS512"},
		{`const i = (d, l) => () => s.importKey('raw', new Uint8Array(d), { name: 'HMAC', hash: 'SHA-1', length: l }, true, ['sign']); return names(i(0), i(2, 17), i(2, 8), i(2, 9), i(2, 0))`, "DataError,DataError,DataError,ok,DataError"},
		// A key that is not extractable is not exported in any format, nor wrapped; some never are.
		{`const k = await aes('AES-GCM', ['encrypt', 'wrapKey'], false), x = await aes('AES-GCM', ['wrapKey']), h = await s.importKey('raw', text('k'), 'HKDF', false, ['deriveBits']), w = { name: 'AES-GCM', iv: new Uint8Array(12) };
		return names(() => s.exportKey('raw', k), () => s.exportKey('jwk', k), () => s.exportKey('spki', k), () => s.wrapKey('raw', k, x, w), () => s.exportKey('raw', h), () => s.wrapKey('raw', h, x, w), () => s.wrapKey('raw', x, k, w), () => s.wrapKey('spki', x, k, w), () => s.exportKey('x', k))`,
			"InvalidAccessError,InvalidAccessError,InvalidAccessError,InvalidAccessError,NotSupportedError,NotSupportedError,ok,NotSupportedError,TypeError"},
		{`const i = (f, d, a, u, x = true) => () => s.importKey(f, d, a, x, u), b = new Uint8Array(16); return names(i('raw', b, 'AES-GCM', []), i('raw', b, 'AES-GCM', ['sign']), i('raw', new Uint8Array(15), 'AES-GCM', ['encrypt']), i('spki', b, 'AES-GCM', ['encrypt']), i('spki', b, 'AES-GCM', ['sign']), i('pkcs8', b, { name: 'HMAC', hash: 'SHA-1' }, ['sign']), i('raw', b, 'PBKDF2', ['deriveBits']), i('raw', b, 'PBKDF2', ['encrypt'], false), i('jwk', {}, 'PBKDF2', ['deriveBits'], false), i('raw', b, 'PBKDF2', [], false), i('raw', new Uint8Array(0), 'PBKDF2', ['deriveBits'], false))`,
			"SyntaxError,SyntaxError,DataError,NotSupportedError,SyntaxError,NotSupportedError,SyntaxError,SyntaxError,NotSupportedError,SyntaxError,ok"},
		{`const i = (f, d, a, u) => () => s.importKey(f, d, a, true, u), b = new Uint8Array(32); return names(i('raw', b, { name: 'RSA-PSS', hash: 'SHA-1' }, ['verify']), i('spki', b, { name: 'RSA-PSS', hash: 'SHA-1' }, ['verify']), i('spki', b, { name: 'RSA-PSS', hash: 'SHA-1' }, ['sign']), i('raw', b, { name: 'ECDSA', namedCurve: 'P-256' }, ['verify']), i('raw', b, { name: 'ECDSA', namedCurve: 'x' }, ['sign']), i('raw', b, { name: 'ECDSA', namedCurve: 'P-256' }, ['sign']), i('raw', b, 'X25519', []), i('raw', b, 'X25519', ['deriveBits']), i('raw', b.subarray(1), 'Ed25519', ['verify']), i('pkcs8', b, 'Ed25519', ['verify']), i('pkcs8', b, 'Ed25519', ['sign']))`,
			"NotSupportedError,DataError,SyntaxError,DataError,DataError,SyntaxError,ok,SyntaxError,DataError,SyntaxError,DataError"},
		// A JsonWebKey is converted by name in alphabetical order, and its sequences are followed.
		{`const seen = []; await name(() => s.importKey('jwk', new Proxy({ kty: 'oct', k: 'AA', key_ops: new Set(['sign']) }, { get(t, k) { seen.push(k); return t[k]; } }), { name: 'HMAC', hash: 'SHA-1' }, true, ['sign'])); return seen.join()`,
			"alg,crv,d,dp,dq,e,ext,k,key_ops,kty,n,oth,p,q,qi,use,x,y"},
		{`const i = (o) => () => s.importKey('jwk', { kty: 'oct', k: 'AA', ...o }, { name: 'HMAC', hash: 'SHA-1' }, true, ['sign']); return names(i({}), i({ key_ops: new Set(['sign']) }), i({ key_ops: 1 }), i({ key_ops: ['sign', 'sign'] }), i({ key_ops: Array(1000).fill('sign') }), i({ oth: 1 }), i({ oth: [1] }), i({ k: 1 }), i({ k: Symbol() }), i({ ext: 0 }), i({ ext: 'yes' }), i({ kty: undefined }), i({ alg: 'HS256' }), i({ use: 'sig' }))`,
			"ok,ok,TypeError,DataError,DataError,TypeError,TypeError,DataError,TypeError,DataError,ok,DataError,DataError,ok"},
	})
}

// Keys in use: known answers are in package webcrypto; here is what only the whole way can show.
func TestSubtleUse(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		// Which errors come before the work: another algorithm's key, a missing usage, the wrong half.
		{`const k = await hmac(), g = await aes(), p = await s.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']), e = { name: 'ECDSA', hash: 'SHA-256' }, d = text('data');
		return names(() => s.sign('HMAC', g, d), async () => s.sign('HMAC', await hmac(['verify']), d), async () => s.verify('HMAC', await hmac(['sign']), d, d), () => s.sign(e, p.publicKey, d), () => s.verify(e, p.privateKey, d, d), () => s.sign('ECDSA', p.privateKey, d), () => s.sign({ name: 'HMAC' }, 'key', d), async () => s.encrypt({ name: 'AES-GCM', iv: d }, await aes('AES-CBC'), d), async () => s.decrypt({ name: 'AES-GCM', iv: d }, await aes('AES-GCM', ['encrypt']), d))`,
			"InvalidAccessError,InvalidAccessError,InvalidAccessError,InvalidAccessError,InvalidAccessError,TypeError,TypeError,InvalidAccessError,InvalidAccessError"},
		{`const p = await s.generateKey('Ed25519', false, ['sign', 'verify']), d = text('data'), g = await s.sign('Ed25519', p.privateKey, d);
		return [g.byteLength, await s.verify('Ed25519', p.publicKey, g, d), await s.verify('Ed25519', p.publicKey, g, text('')), await s.verify('Ed25519', p.publicKey, g.slice(1), d)].join()`, "64,true,false,false"},
		{`const p = await s.generateKey({ name: 'ECDSA', namedCurve: 'P-384' }, true, ['sign', 'verify']), e = { name: 'ECDSA', hash: { name: 'SHA-512' } }, d = text('data'), g = await s.sign(e, p.privateKey, d);
		return [g.byteLength, g instanceof ArrayBuffer, await s.verify(e, p.publicKey, g, d), await s.verify(e, p.publicKey, g, text('other')), await s.verify(e, p.publicKey, g.slice(1), d), await s.verify({ name: 'ECDSA', hash: 'SHA-1' }, p.publicKey, g, d)].join()`, "96,true,true,false,false,false"},
		{`const a = { modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, d = text('data'), out = []; for (const [n, o] of [['RSASSA-PKCS1-v1_5', {}], ['RSA-PSS', { saltLength: 20 }]]) { const p = await s.generateKey({ name: n, ...a }, true, ['sign', 'verify']), g = await s.sign({ name: n, ...o }, p.privateKey, d); out.push(g.byteLength, await s.verify({ name: n, ...o }, p.publicKey, g, d), await s.verify({ name: n, saltLength: 21 }, p.publicKey, g, d), await s.verify({ name: n, ...o }, p.publicKey, g, text(''))); 
			out.push(await names(() => s.sign({ name: n, saltLength: 0 }, p.privateKey, d), () => s.sign({ name: n, saltLength: 1000 }, p.privateKey, d), () => s.sign({ name: n, saltLength: 2 ** 32 - 1 }, p.privateKey, d))); } return out.join()`,
			"128,true,true,false,ok,ok,ok,128,true,false,false,OperationError,OperationError,OperationError"},
		{`const p = await s.generateKey({ name: 'RSA-OAEP', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1' }, true, ['encrypt', 'decrypt']), o = { name: 'RSA-OAEP', label: text('l') }, c = await s.encrypt(o, p.publicKey, text('m'));
		return new TextDecoder().decode(await s.decrypt(o, p.privateKey, c)) + await names(() => s.decrypt('RSA-OAEP', p.privateKey, c), () => s.encrypt(o, p.publicKey, new Uint8Array(87)), () => s.encrypt(o, p.privateKey, c), () => s.decrypt(o, p.publicKey, c), () => s.decrypt(o, p.privateKey, text('')))`,
			"mOperationError,OperationError,InvalidAccessError,InvalidAccessError,OperationError"},
		{`const c = (n, o, d = text('data')) => async () => s.encrypt({ name: n, ...o }, await aes(n), d), iv = new Uint8Array(16); return names(c('AES-CBC', { iv }), c('AES-CBC', { iv: iv.subarray(1) }), c('AES-CBC', {}), c('AES-CTR', { counter: iv, length: 0 }), c('AES-CTR', { counter: iv, length: 129 }), c('AES-CTR', { counter: iv, length: 256 }), c('AES-CTR', { counter: iv.subarray(1), length: 64 }), c('AES-CTR', { counter: iv, length: 1 }, new Uint8Array(33)), c('AES-CTR', { counter: iv, length: 1 }, new Uint8Array(32)), c('AES-GCM', { iv: new Uint8Array(0) }), c('AES-GCM', { iv, tagLength: 33 }), c('AES-GCM', { iv, tagLength: 32, additionalData: iv }), c('AES-GCM', { iv, additionalData: 'x' }))`,
			"ok,OperationError,TypeError,OperationError,OperationError,TypeError,OperationError,OperationError,ok,OperationError,OperationError,ok,TypeError"},
		{`const k = await aes(), a = { name: 'AES-GCM', iv: new Uint8Array(12), additionalData: text('a') }, c = await s.encrypt(a, k, text('secret')); new Uint8Array(c)[0] ^= 1; return names(() => s.decrypt(a, k, c), () => s.decrypt({ ...a, tagLength: 120 }, k, c), () => s.decrypt(a, k, new Uint8Array(15)))`, "OperationError,OperationError,OperationError"},
	})
}

// Derivation: known answers, lengths, and keys that are derived from others.
func TestSubtleDerive(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		{`const k = await s.importKey('raw', text('password'), 'PBKDF2', false, ['deriveBits', 'deriveKey']), a = (o) => ({ name: 'PBKDF2', salt: text('salt'), iterations: 1, hash: 'SHA-1', ...o });
		const long = s.deriveBits(a({ iterations: 4096 }), k, 160); // RFC 6070
		return [hex(await s.deriveBits(a(), k, 160)), hex(await long), (await s.deriveBits(a(), k, 0)).byteLength, await names(() => s.deriveBits(a(), k), () => s.deriveBits(a(), k, null), () => s.deriveBits(a(), k, 7), () => s.deriveBits(a({ iterations: 0 }), k, 8), () => s.deriveBits(a({ iterations: 2 ** 32 - 1 }), k, 8), () => s.deriveBits(a(), k, 2 ** 32 - 8), () => s.deriveBits(a({ hash: 'x' }), k, 8), () => s.deriveBits(a({ salt: 'x' }), k, 8))].join()`,
			"0c60c80f961f0e71f3a9b524af6012062fe037a6,4b007901b765489abead49d926f721d065a429c1,0,OperationError,OperationError,OperationError,OperationError,OperationError,OperationError,NotSupportedError,TypeError"},
		{`const k = await s.importKey('raw', text('k'), 'HKDF', false, ['deriveBits', 'deriveKey']), a = { name: 'HKDF', hash: 'SHA-256', salt: text(''), info: text('') };
		return names(() => s.deriveBits(a, k, 255 * 256), () => s.deriveBits(a, k, 255 * 256 + 8), () => s.deriveBits(a, k, 0), () => s.deriveBits(a, k, 12), () => s.deriveBits(a, k), () => s.deriveBits({ ...a, info: undefined }, k, 8), () => s.deriveKey(a, k, { name: 'AES-GCM', length: 100 }, true, ['encrypt']), () => s.deriveKey(a, k, 'AES-GCM', true, ['encrypt']), () => s.deriveKey(a, k, { name: 'HMAC', hash: 'SHA-1', length: 0 }, true, ['sign']), () => s.deriveKey(a, k, { name: 'HMAC', hash: 'SHA-1' }, true, []), () => s.deriveKey(a, k, 'HKDF', false, ['deriveBits']), () => s.deriveKey(a, k, { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify']))`,
			"ok,OperationError,ok,OperationError,OperationError,TypeError,OperationError,TypeError,TypeError,SyntaxError,OperationError,NotSupportedError"},
		{`const k = await s.importKey('raw', text('k'), 'PBKDF2', false, ['deriveKey']), a = { name: 'PBKDF2', salt: text(''), iterations: 5000, hash: 'SHA-512' }; const out = [];
		for (const t of [{ name: 'HMAC', hash: 'SHA-1' }, { name: 'HMAC', hash: 'SHA-384' }, { name: 'AES-KW', length: 192 }]) { const d = await s.deriveKey(a, k, t, true, t.name === 'HMAC' ? ['sign'] : ['wrapKey']); out.push(d.algorithm.length, (await s.exportKey('raw', d)).byteLength); }
		return out.join() + await name(() => s.deriveBits(a, k, 8))`, "512,64,1024,128,192,24InvalidAccessError"},
		{`const make = (c) => s.generateKey({ name: 'ECDH', namedCurve: c }, true, ['deriveBits', 'deriveKey']), a = await make('P-521'), b = await make('P-521'), o = await make('P-256'), x = await s.generateKey('X25519', false, ['deriveBits']), d = (pub, priv, n) => s.deriveBits({ name: 'ECDH', public: pub }, priv, n);
		return [hex(await d(a.publicKey, b.privateKey)) === hex(await d(b.publicKey, a.privateKey, null)), (await d(a.publicKey, b.privateKey)).byteLength, hex(await d(a.publicKey, b.privateKey, 13)).length, (new Uint8Array(await d(a.publicKey, b.privateKey, 13))[1] & 7), (await d(a.publicKey, b.privateKey, 0)).byteLength,
			await names(() => d(a.publicKey, b.privateKey, 529), () => d(o.publicKey, b.privateKey), () => d(a.privateKey, b.privateKey), () => d(a.publicKey, b.publicKey), () => d(x.publicKey, b.privateKey), () => d({}, b.privateKey), () => s.deriveBits({ name: 'X25519', public: x.publicKey }, b.privateKey))].join()`,
			"true,66,4,0,0,OperationError,InvalidAccessError,InvalidAccessError,InvalidAccessError,InvalidAccessError,TypeError,InvalidAccessError"},
		// X25519 with a public key of small order gives nothing.
		{`const x = await s.generateKey('X25519', false, ['deriveBits']), z = await s.importKey('raw', new Uint8Array(32), 'X25519', true, []); return name(() => s.deriveBits({ name: 'X25519', public: z }, x.privateKey, 256))`, "OperationError"},
		// Ed25519 refuses the neutral element, with which every message would be signed.
		{`const z = new Uint8Array(32); z[0] = 1; const k = await s.importKey('raw', z, 'Ed25519', true, ['verify']), g = new Uint8Array(64); g[0] = 1; return s.verify('Ed25519', k, g, text('any'))`, "false"},
	})
}

// wrapKey and unwrapKey: every format under every algorithm that wraps, and what unwrapping refuses.
func TestSubtleWrap(t *testing.T) {
	subtleScripts(t, []struct{ script, want string }{
		{`const rsa = await s.generateKey({ name: 'RSA-OAEP', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1' }, true, ['wrapKey', 'unwrapKey']), both = async (n) => { const k = await aes(n, ['wrapKey', 'unwrapKey']); return { publicKey: k, privateKey: k }; };
		const secret = await aes('AES-CBC', ['encrypt']), ec = await s.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']); const out = [];
		for (const [a, w] of [['RSA-OAEP', rsa], ['AES-KW', await both('AES-KW')], [{ name: 'AES-GCM', iv: new Uint8Array(12) }, await both('AES-GCM')], [{ name: 'AES-CBC', iv: new Uint8Array(16) }, await both('AES-CBC')], [{ name: 'AES-CTR', counter: new Uint8Array(16), length: 64 }, await both('AES-CTR')]]) {
			for (const [f, k] of [['raw', secret], ['jwk', secret], ['pkcs8', ec.privateKey], ['spki', ec.publicKey], ['jwk', ec.privateKey]]) {
				try {
					const c = await s.wrapKey(f, k, w.publicKey, a), b = await s.unwrapKey(f, c, w.privateKey, a, k.algorithm, true, k.usages);
					out.push(JSON.stringify(await s.exportKey('jwk', b)) === JSON.stringify(await s.exportKey('jwk', k)) ? 1 : 0);
				} catch (e) { out.push(e.name[0]); }
			} out.push(' ');
		} return out.join('')`, "11111 1OOOO 11111 11111 11111 "},
		{`const k = await aes('AES-GCM', ['encrypt', 'unwrapKey']), a = { name: 'AES-GCM', iv: new Uint8Array(12) }, u = async (t, f = 'jwk', x = true, us = ['sign']) => s.unwrapKey(f, await s.encrypt(a, k, text(t)), k, a, { name: 'HMAC', hash: 'SHA-1' }, x, us);
		return names(() => u('{"kty":"oct","k":"AA"}'), () => u('{"kty":"oct","k":"AA","ext":false}'), () => u('{"kty":"oct","k":"AA","ext":false}', 'jwk', false), () => u('{"kty":"oct"}'), () => u('{"k":"AA"}'), () => u('not json'), () => u('null'), () => u(''), () => u('x', 'raw', true, []), () => u('x', 'raw', true, ['encrypt']), () => u('x', 'spki'), () => s.unwrapKey('raw', text('short'), k, a, { name: 'HMAC', hash: 'SHA-1' }, true, ['sign']), async () => s.unwrapKey('raw', text(''), await aes('AES-GCM', ['decrypt']), a, 'AES-GCM', true, ['encrypt']), () => s.unwrapKey('raw', text(''), k, { name: 'AES-CBC' }, 'AES-GCM', true, ['encrypt']), () => s.unwrapKey('raw', text(''), k, a, 'SHA-1', true, ['encrypt']))`,
			"ok,DataError,ok,DataError,DataError,DataError,DataError,DataError,SyntaxError,SyntaxError,NotSupportedError,OperationError,InvalidAccessError,TypeError,NotSupportedError"},
	})
}
