// crypto: random values and digests. The rest of SubtleCrypto is absent.

const cryptoSlot = coreSlot('crypto');
const cryptoSubtle = coreSlot('subtle');
const cryptoIntegers = ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array'];
const cryptoMostRandom = 65536;
const cryptoDigests = { __proto__: null, 'SHA-1': 1, 'SHA-256': 2, 'SHA-384': 3, 'SHA-512': 4 };

function cryptoBrand(value, slot) {
  if (typeof value !== 'object' || value === null || value[slot] !== true) throw idlIllegal();
}

// The number of a digest by an AlgorithmIdentifier: a name in any case, or an object with one.
function cryptoDigest(algorithm) {
  if (typeof algorithm === 'object' && algorithm !== null || typeof algorithm === 'function') {
    algorithm = algorithm.name;
    if (algorithm === undefined) throw new TypeError('SubtleCrypto.digest: the algorithm has no name');
  }
  const name = `${algorithm}`.toUpperCase();
  const digest = cryptoDigests[name];
  if (digest === undefined) throw new DOMException(`The digest ${name.slice(0, 64)} is not supported`, 'NotSupportedError');
  return digest;
}

class SubtleCrypto {
  constructor() { throw new TypeError('Illegal constructor'); }

  digest(algorithm, data) {
    try {
      cryptoBrand(this, cryptoSubtle);
      webArguments(arguments.length, 2, 'SubtleCrypto.digest');
      const number = cryptoDigest(algorithm);
      if (!idlIsBytes(data)) throw new TypeError('SubtleCrypto.digest: the data is neither an ArrayBuffer nor a view of one');
      return coreResolve(coreApply(idlArrayBuffer, host.digest(number, idlBytes(data)), []));
    } catch (failure) {
      return CorePromise.reject(failure);
    }
  }
}

class Crypto {
  constructor() { throw new TypeError('Illegal constructor'); }

  get subtle() {
    cryptoBrand(this, cryptoSlot);
    return cryptoSubtleObject;
  }

  getRandomValues(array) {
    cryptoBrand(this, cryptoSlot);
    webArguments(arguments.length, 1, 'Crypto.getRandomValues');
    if (!idlIsView(array)) throw new TypeError('Crypto.getRandomValues: the argument is not a typed array');
    const kind = idlArrayKind(array);
    if (!cryptoIntegers.includes(kind)) throw new DOMException('The array is not one of integers', 'TypeMismatchError');
    const size = coreApply(idlArrayBytes, array, []);
    if (size > cryptoMostRandom) throw new DOMException(`${size} random bytes were asked for; the most is ${cryptoMostRandom}`, 'QuotaExceededError');
    if (size > 0) host.randomFill(idlBytes(array));
    return array;
  }

  randomUUID() {
    cryptoBrand(this, cryptoSlot);
    return host.randomUUID();
  }
}

const cryptoSubtleObject = coreCreate(SubtleCrypto.prototype);
const cryptoObject = coreCreate(Crypto.prototype);
coreDefine(cryptoSubtleObject, cryptoSubtle, { __proto__: null, value: true });
coreDefine(cryptoObject, cryptoSlot, { __proto__: null, value: true });

webInterface(SubtleCrypto);
webInterface(Crypto);
coreDefine(globalThis, 'crypto', {
  __proto__: null,
  get: coreDescriptor({ get crypto() { return cryptoObject; } }, 'crypto').get,
  set: undefined, enumerable: true, configurable: true,
});
