// crypto: random values. The files behind this one have the keys, the algorithms and SubtleCrypto.

const cryptoSlot = coreSlot('crypto');
const cryptoSubtle = coreSlot('subtle');
const cryptoIntegers = ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array'];
const cryptoMostRandom = 65536;

function cryptoBrand(value, slot) {
  if (typeof value !== 'object' || value === null || value[slot] !== true) throw idlIllegal();
}

class Crypto {
  constructor() { throw new TypeError('Illegal constructor'); }

  get subtle() {
    cryptoBrand(this, cryptoSlot);
    return subtleObject;
  }

  getRandomValues(array) {
    cryptoBrand(this, cryptoSlot);
    webArguments(arguments.length, 1, 'Crypto.getRandomValues');
    if (!idlIsView(array)) throw new TypeError('Crypto.getRandomValues: the argument is not a typed array');
    const kind = idlArrayKind(array);
    if (!cryptoIntegers.includes(kind)) throw new DOMException('The array is not one of integers', 'TypeMismatchError');
    const size = idlArrayBytes(array);
    if (size > cryptoMostRandom) throw new QuotaExceededError(`${size} random bytes were asked for; the most is ${cryptoMostRandom}`);
    if (size > 0) host.randomFill(idlBytes(array));
    return array;
  }

  randomUUID() {
    cryptoBrand(this, cryptoSlot);
    return host.randomUUID();
  }
}

const cryptoObject = coreCreate(Crypto.prototype);
coreDefine(cryptoObject, cryptoSlot, { __proto__: null, value: true });
webInterface(Crypto);
coreDefine(globalThis, 'crypto', {
  __proto__: null,
  get: coreDescriptor({ get crypto() { return cryptoObject; } }, 'crypto').get,
  set: undefined, enumerable: true, configurable: true,
});
