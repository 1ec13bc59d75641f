// SubtleCrypto (Web Cryptography API): conversions and the checks that all algorithms share; the host does the work.

const keyFormats = { __proto__: null, raw: 1, pkcs8: 2, spki: 3, jwk: 4 };
const formatRaw = 1;
const formatJWK = 4;

// What every method is: a promise, whatever happens. It is settled in a job of its own, so that nobody takes it for one
// that was settled from the start.
function subtleRun(self, given, needed, name, work) {
  return new CorePromise((resolve, reject) => {
    const later = (settle) => (value) => { coreThen(coreResolve(), () => { settle(value); }); };
    try {
      cryptoBrand(self, cryptoSubtle);
      webArguments(given, needed, `SubtleCrypto.${name}`);
      work(later(resolve), later(reject));
    } catch (failure) {
      later(reject)(failure);
    }
  });
}

// Goes on with what the host gave, or with what it will give: a number is that of an operation. No promise in between: it
// would show a secret to a `then` that a script put on a prototype.
function subtleWait(got, done, reject) {
  if (typeof got !== 'number') {
    done(got);
    return;
  }
  coreOperations[got] = [(value) => {
    try {
      done(value);
    } catch (failure) {
      reject(failure);
    }
  }, reject];
}

function subtleAccess(text) {
  return new DOMException(text, 'InvalidAccessError');
}

function subtleFormat(value) {
  const format = keyFormats[`${value}`];
  if (format === undefined) throw new TypeError(`${`${value}`.slice(0, 64)} is not a key format`);
  return format;
}

// The checks before a key is used.
function subtleMay(algorithm, slot, usage) {
  if (algorithm.name !== slot.name) throw subtleAccess(`The key is one for ${slot.name}, not for ${algorithm.name}`);
  if ((slot.usages & keyUsageBits[usage]) === 0) throw subtleAccess(`The key may not be used for ${usage}`);
}

function subtleMayLeave(slot) {
  if (!algorithmIsExportable(slot.kind)) throw new DOMException(`A key for ${slot.name} cannot be exported`, 'NotSupportedError');
  if (!slot.extractable) throw subtleAccess('The key is not extractable');
}

// Packs what the host must know about an import or export.
const subtleHow = (format, usages, extractable) => format | usages << 4 | (extractable ? 1 << 16 : 0);

const jwkTexts = ['alg', 'crv', 'd', 'dp', 'dq', 'e', 'ext', 'k', 'key_ops', 'kty', 'n', 'oth', 'p', 'q', 'qi', 'use', 'x', 'y'];

// JsonWebKey, as an object without prototype.
function jwkArgument(value) {
  const given = webDict(value, 'The key data');
  const jwk = { __proto__: null };
  for (let i = 0; i < jwkTexts.length; i++) {
    const name = jwkTexts[i];
    const member = given[name];
    if (member === undefined) continue;
    if (name === 'ext') jwk.ext = !!member;
    else if (name === 'key_ops') jwk.key_ops = jwkSequence(member, name, (item) => `${item}`);
    else if (name === 'oth') jwk.oth = jwkSequence(member, name, (item) => { webDict(item, 'A member of oth'); });
    else jwk[name] = `${member}`;
  }
  return jwk;
}

function jwkSequence(value, name, convert) {
  if (typeof value !== 'object' && typeof value !== 'function' || value === null) throw new TypeError(`The member ${name} is not a sequence`);
  const list = [];
  let n = 0;
  for (const item of value) coreDefine(list, n++, { __proto__: null, value: convert(item), writable: true, enumerable: true, configurable: true });
  return list;
}

// Imports bytes, or a converted JsonWebKey.
function subtleImport(format, data, algorithm, extractable, usages) {
  const kind = algorithmKind(algorithm);
  const stored = host.subtleImport(kind, subtleHow(format, usages, extractable), algorithm.length ?? -1, data);
  if (usages === 0 && stored[0] !== keyPublic) throw new DOMException('A private or secret key needs usages', 'SyntaxError');
  return keyOfStored(algorithm, kind, stored, extractable, usages, algorithmIsHMAC(kind) ? algorithm.length : undefined);
}

// The bytes of an export; the text of a JsonWebKey.
function subtleExport(format, slot) {
  return host.subtleExport(slot.kind, subtleHow(format, slot.usages, slot.extractable), slot.data);
}

function subtleCrypt(encrypt, algorithm, slot, data) {
  const bits = algorithm.tagLength ?? algorithm.length ?? 128;
  return host.subtleCrypt(slot.kind | (encrypt ? 1 << 24 : 0), bits, slot.data, algorithm.iv ?? algorithm.counter ?? algorithm.label, algorithm.additionalData, data);
}

// bits is null for "as many as there are".
function subtleDerive(algorithm, slot, bits) {
  const other = algorithm.public;
  return host.subtleDerive(slot.kind | (algorithm.hash ?? 0) << 8, bits ?? -1, slot.data,
    other === undefined ? 0 : other.kind, other === undefined ? undefined : other.data, algorithm.salt, algorithm.info, algorithm.iterations ?? 0);
}

// The length that a derived key of this algorithm has.
function subtleKeyLength(algorithm) {
  const { number, length } = algorithm;
  if (algorithmIsAES(number)) {
    if (length !== 128 && length !== 192 && length !== 256) throw new DOMException('An AES key has 128, 192 or 256 bits', 'OperationError');
    return length;
  }
  if (!algorithmIsHMAC(number)) return null;
  if (length === 0) throw new TypeError('The length of an HMAC key is zero');
  return length ?? (algorithm.hash <= 2 ? 512 : 1024);
}

// Normalizes for one operation, or else for another.
function subtleEither(algorithm, first, second) {
  try {
    return algorithmNormalize(algorithm, first);
  } catch {
    return algorithmNormalize(algorithm, second);
  }
}

function subtlePair(algorithm, kind, stored, extractable, usages) {
  const half = algorithm.name === 'RSA-OAEP' ? keyUsageBits.encrypt | keyUsageBits.wrapKey : keyUsageBits.verify;
  return {
    privateKey: keyOfStored(algorithm, kind, stored, extractable, usages & ~half),
    publicKey: keyOfStored(algorithm, kind, host.subtlePublic(kind, stored), true, usages & half),
  };
}

class SubtleCrypto {
  constructor() { throw new TypeError('Illegal constructor'); }

  encrypt(algorithm, key, data) { return subtleCryptMethod(this, arguments, 'encrypt', true); }
  decrypt(algorithm, key, data) { return subtleCryptMethod(this, arguments, 'decrypt', false); }

  sign(algorithm, key, data) {
    return subtleRun(this, arguments.length, 3, 'sign', (resolve) => {
      algorithm = algorithmArgument(algorithm);
      const slot = keyArgument(key, 'The key');
      sourceArgument(data, 'The data');
      const used = algorithmNormalize(algorithm, 'sign');
      subtleMay(used, slot, 'sign');
      resolve(idlArrayBuffer(host.subtleSign(slot.kind | (used.hash ?? 0) << 8, used.saltLength ?? 0, slot.data, sourceBytes(data))));
    });
  }

  verify(algorithm, key, signature, data) {
    return subtleRun(this, arguments.length, 4, 'verify', (resolve) => {
      algorithm = algorithmArgument(algorithm);
      const slot = keyArgument(key, 'The key');
      sourceArgument(signature, 'The signature');
      sourceArgument(data, 'The data');
      const used = algorithmNormalize(algorithm, 'verify');
      subtleMay(used, slot, 'verify');
      resolve(host.subtleVerify(slot.kind | (used.hash ?? 0) << 8, used.saltLength ?? 0, slot.data, sourceBytes(signature), sourceBytes(data)));
    });
  }

  digest(algorithm, data) {
    return subtleRun(this, arguments.length, 2, 'digest', (resolve) => {
      algorithm = algorithmArgument(algorithm);
      sourceArgument(data, 'SubtleCrypto.digest: the data');
      const number = typeof algorithm === 'string' && algorithmDigests[algorithm] || algorithmNormalize(algorithm, 'digest').number;
      resolve(idlArrayBuffer(host.digest(number, sourceBytes(data))));
    });
  }

  generateKey(algorithm, extractable, keyUsages) {
    return subtleRun(this, arguments.length, 3, 'generateKey', (resolve, reject) => {
      algorithm = algorithmArgument(algorithm);
      extractable = !!extractable;
      const usages = keyUsageArgument(keyUsages);
      const made = algorithmNormalize(algorithm, 'generateKey');
      const kind = algorithmKind(made);
      const bits = made.modulusLength ?? made.length ?? -1;
      subtleWait(host.subtleGenerate(kind, usages, bits, made.publicExponent), (stored) => {
        if (stored[0] !== 0) resolve(subtlePair(made, kind, stored, extractable, usages));
        else resolve(keyOfStored(made, kind, stored, extractable, usages, algorithmIsHMAC(kind) ? made.length : undefined));
      }, reject);
    });
  }

  deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    return subtleRun(this, arguments.length, 5, 'deriveKey', (resolve, reject) => {
      algorithm = algorithmArgument(algorithm);
      const slot = keyArgument(baseKey, 'The base key');
      derivedKeyType = algorithmArgument(derivedKeyType);
      extractable = !!extractable;
      const usages = keyUsageArgument(keyUsages);
      const used = algorithmNormalize(algorithm, 'deriveBits');
      const made = algorithmNormalize(derivedKeyType, 'importKey');
      const length = algorithmNormalize(derivedKeyType, 'keyLength');
      subtleMay(used, slot, 'deriveKey');
      subtleWait(subtleDerive(used, slot, subtleKeyLength(length)), (secret) => {
        resolve(subtleImport(formatRaw, secret, made, extractable, usages));
      }, reject);
    });
  }

  deriveBits(algorithm, baseKey, length = null) {
    return subtleRun(this, arguments.length, 2, 'deriveBits', (resolve, reject) => {
      algorithm = algorithmArgument(algorithm);
      const slot = keyArgument(baseKey, 'The base key');
      if (length !== null) length >>>= 0;
      const used = algorithmNormalize(algorithm, 'deriveBits');
      subtleMay(used, slot, 'deriveBits');
      subtleWait(subtleDerive(used, slot, length), (bits) => { resolve(idlArrayBuffer(bits)); }, reject);
    });
  }

  importKey(format, keyData, algorithm, extractable, keyUsages) {
    return subtleRun(this, arguments.length, 5, 'importKey', (resolve) => {
      format = subtleFormat(format);
      const isBytes = idlIsBytes(keyData);
      const data = isBytes ? sourceArgument(keyData, 'The key data') : jwkArgument(keyData);
      algorithm = algorithmArgument(algorithm);
      extractable = !!extractable;
      const usages = keyUsageArgument(keyUsages);
      const made = algorithmNormalize(algorithm, 'importKey');
      if (isBytes === (format === formatJWK)) throw new TypeError('The key data does not fit the format');
      resolve(subtleImport(format, isBytes ? sourceBytes(data) : data, made, extractable, usages));
    });
  }

  exportKey(format, key) {
    return subtleRun(this, arguments.length, 2, 'exportKey', (resolve) => {
      format = subtleFormat(format);
      const slot = keyArgument(key, 'The key');
      subtleMayLeave(slot);
      const out = subtleExport(format, slot);
      resolve(format === formatJWK ? coreParse(out) : idlArrayBuffer(out));
    });
  }

  wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    return subtleRun(this, arguments.length, 4, 'wrapKey', (resolve) => {
      format = subtleFormat(format);
      const slot = keyArgument(key, 'The key');
      const wrapping = keyArgument(wrappingKey, 'The wrapping key');
      const used = subtleEither(algorithmArgument(wrapAlgorithm), 'wrapKey', 'encrypt');
      subtleMay(used, wrapping, 'wrapKey');
      subtleMayLeave(slot);
      const out = subtleExport(format, slot);
      resolve(idlArrayBuffer(subtleCrypt(true, used, wrapping, format === formatJWK ? host.utf8Encode(out) : out)));
    });
  }

  unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    return subtleRun(this, arguments.length, 7, 'unwrapKey', (resolve) => {
      format = subtleFormat(format);
      sourceArgument(wrappedKey, 'The wrapped key');
      const slot = keyArgument(unwrappingKey, 'The unwrapping key');
      unwrapAlgorithm = algorithmArgument(unwrapAlgorithm);
      unwrappedKeyAlgorithm = algorithmArgument(unwrappedKeyAlgorithm);
      extractable = !!extractable;
      const usages = keyUsageArgument(keyUsages);
      const used = subtleEither(unwrapAlgorithm, 'unwrapKey', 'decrypt');
      const made = algorithmNormalize(unwrappedKeyAlgorithm, 'importKey');
      subtleMay(used, slot, 'unwrapKey');
      resolve(subtleImport(format, subtleCrypt(false, used, slot, sourceBytes(wrappedKey)), made, extractable, usages));
    });
  }
}

function subtleCryptMethod(self, args, name, encrypt) {
  return subtleRun(self, args.length, 3, name, (resolve) => {
    const algorithm = algorithmArgument(args[0]);
    const slot = keyArgument(args[1], 'The key');
    sourceArgument(args[2], 'The data');
    const used = algorithmNormalize(algorithm, name);
    subtleMay(used, slot, name);
    resolve(idlArrayBuffer(subtleCrypt(encrypt, used, slot, sourceBytes(args[2]))));
  });
}

const subtleObject = coreCreate(SubtleCrypto.prototype);
coreDefine(subtleObject, cryptoSubtle, { __proto__: null, value: true });
webInterface(SubtleCrypto);
