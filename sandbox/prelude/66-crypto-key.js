// CryptoKey (Web Cryptography API). The key's material is in a private field: no script can name it, no proxy and no
// clone gives it away. What has to be kept from scripts never meets anything that a script could have replaced: no
// global, no method, no promise (which would look for its `then`), no plain object that inherits.

const cryptoBytes = Uint8Array;
const keyUsages = ['encrypt', 'decrypt', 'sign', 'verify', 'deriveKey', 'deriveBits', 'wrapKey', 'unwrapKey'];
const keyUsageBits = { __proto__: null };
for (let i = 0; i < keyUsages.length; i++) keyUsageBits[keyUsages[i]] = 1 << i;
const keyTypes = ['secret', 'public', 'private'];
const keyPublic = 1;
const keyMint = {}; // whoever has it can make keys
let keyMake; // (slot) -> CryptoKey
let keySlot; // (value) -> its slot, undefined for everything that is no CryptoKey. It creates no error and calls nothing

// A slot: kind and name of the algorithm (67-crypto-algorithms), bits of the key or modulus, exponent (RSA), usages as a
// set of bits, extractable, and the stored key, whose first byte is the type. Slots are never changed, but for the two
// objects that the getters keep.
class CryptoKey {
  #slot;

  constructor() {
    if (arguments[0] !== keyMint) throw new TypeError('Illegal constructor');
    this.#slot = arguments[1];
  }

  static {
    keyMake = (slot) => new CryptoKey(keyMint, slot);
    keySlot = (value) => (typeof value === 'object' && value !== null && #slot in value ? value.#slot : undefined);
  }

  get type() { return keyTypes[keyOf(this).data[0]]; }
  get extractable() { return keyOf(this).extractable; }
  get algorithm() {
    const slot = keyOf(this);
    return slot.algorithm ??= keyAlgorithm(slot);
  }
  get usages() {
    const slot = keyOf(this);
    return slot.list ??= keyUsageList(slot.usages);
  }
}
webInterface(CryptoKey);

// The slot of `this` of a member.
function keyOf(value) {
  const slot = keySlot(value);
  if (slot === undefined) throw idlIllegal();
  return slot;
}

// The slot of an argument.
function keyArgument(value, what) {
  const slot = keySlot(value);
  if (slot === undefined) throw new TypeError(`${what} is not a CryptoKey`);
  return slot;
}

// Makes the key of a stored one. `bits` is the length of an HMAC key that is not whole bytes, else undefined.
function keyOfStored(algorithm, kind, data, extractable, usages, bits) {
  const slot = { __proto__: null, kind, name: algorithm.name, bits, exponent: undefined, usages, extractable, data, algorithm: undefined, list: undefined };
  if (algorithmIsRSA(kind)) {
    const described = host.subtleRSA(kind, data);
    slot.bits = described[0] << 8 | described[1];
    slot.exponent = new cryptoBytes(idlArrayBuffer(described), 2);
  } else {
    slot.bits ??= (idlArrayBytes(data) - 1) * 8;
  }
  return keyMake(slot);
}

// The object that `key.algorithm` shows.
function keyAlgorithm(slot) {
  const { name, kind } = slot;
  if (algorithmIsRSA(kind)) {
    return { name, modulusLength: slot.bits, publicExponent: new cryptoBytes(slot.exponent), hash: { name: algorithmHashName(kind) } };
  }
  if (algorithmIsEC(kind)) return { name, namedCurve: algorithmCurveName(kind) };
  if (algorithmIsAES(kind)) return { name, length: slot.bits };
  if (algorithmIsHMAC(kind)) return { name, hash: { name: algorithmHashName(kind) }, length: slot.bits };
  return { name };
}

function keyUsageList(bits) {
  const list = [];
  let n = 0;
  for (let i = 0; i < keyUsages.length; i++) {
    if (bits & 1 << i) coreDefine(list, n++, { __proto__: null, value: keyUsages[i], writable: true, enumerable: true, configurable: true });
  }
  return list;
}

// sequence<KeyUsage>, as a set.
function keyUsageArgument(value) {
  if (typeof value !== 'object' && typeof value !== 'function' || value === null) throw new TypeError('The usages are not a sequence');
  let bits = 0;
  for (const item of value) {
    const bit = keyUsageBits[`${item}`];
    if (bit === undefined) throw new TypeError(`${`${item}`.slice(0, 64)} is not a key usage`);
    bits |= bit;
  }
  return bits;
}

// For structuredClone: a key with the same material, undefined if the object is no key.
function keyClone(object) {
  const slot = keySlot(object);
  return slot === undefined ? undefined : keyMake({ __proto__: null, ...slot, algorithm: undefined, list: undefined });
}
