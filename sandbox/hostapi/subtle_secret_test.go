package hostapi

import "testing"

// secretTraps is a script that lays in wait for the bytes of a secret, 32 times 0xa5: it replaces everything that a script
// can replace by something that looks at its receiver and its arguments first, and puts accessors where inheritance could
// lead. What it finds is in `caught`.
const secretTraps = `
const caught = new Set();
const I = { apply: Reflect.apply, construct: Reflect.construct, ownKeys: Reflect.ownKeys, descriptor: Object.getOwnPropertyDescriptor, define: Object.defineProperty,
	isView: ArrayBuffer.isView, AB: ArrayBuffer, U8: Uint8Array, add: Set.prototype.add, proto: Object.getPrototypeOf,
	length: Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'length').get, abLength: Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get, String };
let busy = false;
const run = (bytes) => { let n = 0; const size = I.apply(I.length, bytes, []); for (let i = 0; i < size; i++) { n = bytes[i] === 0xa5 ? n + 1 : 0; if (n === 16) return true; } return false; };
const secret = (v, depth = 0) => {
	if (typeof v === 'string') { for (let i = 0, n = 0; i + 3 < v.length; i++) if (v[i] === 'p' && v[i + 1] === 'a' && v[i + 2] === 'W' && v[i + 3] === 'l' && ++n > 3) return true; return false; }
	if (typeof v !== 'object' || v === null) return false;
	try { if (I.isView(v)) { const size = I.apply(I.length, v, []); return size > 0 && run(v); } } catch {}
	try { I.apply(I.abLength, v, []); return run(new I.U8(v)); } catch {}
	if (depth > 2) return false;
	for (const k of I.ownKeys(v)) { const d = I.descriptor(v, k); if (d && 'value' in d && secret(d.value, depth + 1)) return true; }
	return false;
};
const look = (where, self, args) => {
	if (busy) return;
	busy = true;
	try { let found = secret(self); for (let i = 0; i < args.length && !found; i++) found = secret(args[i]); if (found) I.apply(I.add, caught, [where]); } finally { busy = false; }
};
const wrapFunction = (where, fn) => function (...args) { look(where, this, args); return new.target ? I.construct(fn, args, new.target === fn ? fn : new.target) : I.apply(fn, this, args); };
const wrapAll = (where, object) => {
	for (const key of I.ownKeys(object)) {
		const d = I.descriptor(object, key);
		if (!d.configurable || key === 'constructor') continue;
		const at = where + '.' + I.String(key.description ?? key);
		if (typeof d.value === 'function') I.define(object, key, { ...d, value: wrapFunction(at, d.value) });
		else if (d.get) I.define(object, key, { ...d, get: wrapFunction(at, d.get) });
	}
};
const plant = (object, keys) => { for (const key of keys) if (!(key in object)) I.define(object, key, { configurable: true, get() { look('get ' + I.String(key), this, []); if (key === 'then' && I.isView(this)) I.apply(I.add, caught, ['a promise for bytes']); return undefined; }, set(v) { look('set ' + I.String(key), this, [v]); I.define(this, key, { value: v, writable: true, enumerable: true, configurable: true }); } }); };
const spring = () => {
	const originals = [Object.prototype, Array.prototype, Function.prototype, Promise.prototype, I.proto(Uint8Array.prototype), Uint8Array.prototype, ArrayBuffer.prototype, String.prototype, Map.prototype, Set.prototype,
		WeakMap.prototype, Symbol.prototype, Iterator.prototype, I.proto([][Symbol.iterator]()), CryptoKey.prototype, SubtleCrypto.prototype, DOMException.prototype, Error.prototype, JSON, Reflect, Math, Object, Array, Promise, Uint8Array, ArrayBuffer, TextDecoder.prototype, TextEncoder.prototype];
	const wanted = ['then', 'k', 'd', 'x', 'y', 'kty', 'ext', 'key_ops', 'alg', 'use', 'crv', 'n', 'e', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'data', 'slot', 'kind', 'bits', 'length', 'toJSON', 'type', 'usages'];
	for (const name of ['Uint8Array', 'ArrayBuffer', 'DataView', 'Promise', 'DOMException', 'TypeError', 'Object', 'Array', 'CryptoKey', 'WeakMap', 'structuredClone', 'TextDecoder']) {
		const original = globalThis[name];
		const d = I.descriptor(globalThis, name);
		const trap = typeof original === 'function' ? wrapFunction('global ' + name, original) : original;
		for (const key of I.ownKeys(original)) { const p = I.descriptor(original, key); const now = I.descriptor(trap, key); if (!now || now.configurable || now.writable) try { I.define(trap, key, p); } catch {} }
		I.define(globalThis, name, { ...d, value: trap });
	}
	let i = 0;
	for (const object of originals) { wrapAll('object' + i++, object); }
	plant(Object.prototype, [...wanted, '0', '1', '2', '3', '32', '33']);
	plant(Array.prototype, ['0', '1', '2', '3', '4', '5', '6', '7', '8', '16', '31']);
};
Error.prepareStackTrace = (error, sites) => { for (const site of sites) { for (const key of ['getFunction', 'getThis', 'getTypeName', 'getEvalOrigin']) if (typeof site[key] === 'function') { try { look('site ' + key, site[key](), []); if (key === 'getFunction') I.apply(I.add, caught, ['a stack trace hands out functions']); } catch {} } } return ''; };
`

// The material of a key that is not extractable is out of a script's reach (Web Cryptography, "CryptoKey internal slots"),
// whatever the script has replaced; the same script finds it where it must be found.
func TestSecretsStayHidden(t *testing.T) {
	const setup = subtleHelp + `const bytes = new Uint8Array(32).fill(0xa5), iv = new Uint8Array(16), a = { name: 'AES-CBC', iv };
		const wrapping = await s.generateKey({ name: 'AES-CBC', length: 256 }, false, ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey']), data = text('data');
		const clear = await s.importKey('raw', bytes, 'AES-GCM', true, ['encrypt', 'decrypt']);
		const wrapped = await s.encrypt(a, wrapping, bytes), wrappedJWK = await s.wrapKey('jwk', clear, wrapping, a);
		const edWrapped = await s.encrypt(a, wrapping, Uint8Array.from([48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32, ...bytes]));
		const hk = await s.importKey('raw', text('k'), 'PBKDF2', false, ['deriveKey']);
		bytes.fill(0);
		` + secretTraps
	const use = `
		const keys = [];
		keys.push(await s.unwrapKey('raw', wrapped, wrapping, a, 'AES-GCM', false, ['encrypt', 'decrypt']));
		keys.push(await s.unwrapKey('jwk', wrappedJWK, wrapping, a, 'AES-GCM', false, ['encrypt', 'decrypt']));
		keys.push(await s.unwrapKey('raw', wrapped, wrapping, a, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']));
		keys.push(await s.unwrapKey('raw', wrapped, wrapping, a, 'HKDF', false, ['deriveBits', 'deriveKey']));
		keys.push(await s.unwrapKey('raw', wrapped, wrapping, a, 'PBKDF2', false, ['deriveBits', 'deriveKey']));
		keys.push(await s.unwrapKey('pkcs8', edWrapped, wrapping, a, 'Ed25519', false, ['sign']));
		for (const k of keys) { structuredClone(k); structuredClone({ k }); String(k); k.type; k.usages; k.algorithm; try { console.log(k); } catch {} try { JSON.stringify(k); } catch {} for (const f of ['raw', 'jwk', 'pkcs8']) try { await s.exportKey(f, k); } catch {} try { await s.wrapKey('raw', k, wrapping, a); } catch {} }
		const c = await s.encrypt({ name: 'AES-GCM', iv }, keys[0], data); await s.decrypt({ name: 'AES-GCM', iv }, keys[0], c); try { await s.decrypt({ name: 'AES-GCM', iv }, keys[1], data); } catch {}
		const g = await s.sign('HMAC', keys[2], data); await s.verify('HMAC', keys[2], g, data); await s.sign('Ed25519', keys[5], data);
		const h = { name: 'HKDF', hash: 'SHA-256', salt: data, info: data }, p = { name: 'PBKDF2', hash: 'SHA-256', salt: data, iterations: 5000 };
		await s.deriveBits(h, keys[3], 256); await s.deriveBits(p, keys[4], 256);
		await s.deriveKey(h, keys[3], { name: 'AES-GCM', length: 256 }, false, ['encrypt']); await s.deriveKey(p, keys[4], { name: 'AES-GCM', length: 256 }, false, ['encrypt']);
		// At the edge of the stack every call may throw, in the middle of anything.
		const deep = (n) => { try { deep(n + 1); } catch {} try { s.encrypt({ name: 'AES-GCM', iv }, keys[0], data).catch(() => {}); structuredClone(keys[0]); s.unwrapKey('raw', wrapped, wrapping, a, 'AES-GCM', false, ['encrypt']).catch(() => {}); } catch {} };
		let once = 0; const edge = () => { try { edge(); } catch { if (once++ < 40) deep(0); } }; edge();
		return [...caught].join() || 'nothing';`
	w := newWorld(t)
	if got := w.eval(setup + "spring();" + use); got != "nothing" {
		t.Errorf("a secret was seen at: %s", got)
	}
	w = newWorld(t)
	if got := w.eval(setup + "spring(); const out = await s.exportKey('raw', clear); new Uint8Array(out); return caught.size > 0"); got != "true" {
		t.Errorf("the traps do not see an extractable key: %s", got)
	}
}
