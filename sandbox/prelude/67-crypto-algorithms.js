// The algorithms of SubtleCrypto and how what a script gives is brought to one of them ("normalize an algorithm").

// A kind is what the host needs to know of an algorithm: its number, and in the next bytes the digest and the curve.
const algorithmNumbers = {
  __proto__: null, 'RSASSA-PKCS1-v1_5': 1, 'RSA-PSS': 2, 'RSA-OAEP': 3, ECDSA: 4, ECDH: 5, Ed25519: 6, X25519: 7,
  'AES-CTR': 8, 'AES-CBC': 9, 'AES-GCM': 10, 'AES-KW': 11, HMAC: 12, HKDF: 13, PBKDF2: 14,
  'SHA-1': 1, 'SHA-256': 2, 'SHA-384': 3, 'SHA-512': 4,
};
const algorithmDigests = { __proto__: null, 'SHA-1': 1, 'SHA-256': 2, 'SHA-384': 3, 'SHA-512': 4 }; // as they are mostly given
const algorithmHashes = ['', 'SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'];
const algorithmCurves = ['', 'P-256', 'P-384', 'P-521'];
const algorithmIsRSA = (kind) => (kind & 255) <= 3;
const algorithmIsEC = (kind) => (kind & 255) === 4 || (kind & 255) === 5;
const algorithmIsAES = (kind) => (kind & 255) >= 8 && (kind & 255) <= 11;
const algorithmIsHMAC = (kind) => (kind & 255) === 12;
const algorithmIsExportable = (kind) => (kind & 255) <= 12;
const algorithmHashName = (kind) => algorithmHashes[kind >> 8 & 255];
const algorithmCurveName = (kind) => algorithmCurves[kind >> 16];

// Members of a dictionary: name, type, whether it must be there; in the order in which Web IDL converts them.
const algorithmNone = [];
const algorithmHash = [['hash', 'hash', true]];
const algorithmCurve = [['namedCurve', 'string', true]];
const algorithmLength = [['length', 'u16', true]];
const algorithmMAC = [['hash', 'hash', true], ['length', 'u32', false]];
const algorithmRSA = [['modulusLength', 'u32', true], ['publicExponent', 'exponent', true], ['hash', 'hash', true]];
const algorithmPublic = [['public', 'key', true]];
const algorithmSigning = {
  'RSASSA-PKCS1-v1_5': algorithmNone, 'RSA-PSS': [['saltLength', 'u32', true]], ECDSA: algorithmHash, Ed25519: algorithmNone, HMAC: algorithmNone,
};
const algorithmCrypting = {
  'RSA-OAEP': [['label', 'bytes', false]],
  'AES-CTR': [['counter', 'bytes', true], ['length', 'u8', true]],
  'AES-CBC': [['iv', 'bytes', true]],
  'AES-GCM': [['additionalData', 'bytes', false], ['iv', 'bytes', true], ['tagLength', 'u8', false]],
};
const algorithmWrapping = { 'AES-KW': algorithmNone };
const algorithmSecret = (aes, mac) => ({ 'AES-CTR': aes, 'AES-CBC': aes, 'AES-GCM': aes, 'AES-KW': aes, HMAC: mac });
const algorithmPairs = (rsa) => ({
  'RSASSA-PKCS1-v1_5': rsa, 'RSA-PSS': rsa, 'RSA-OAEP': rsa, ECDSA: algorithmCurve, ECDH: algorithmCurve, Ed25519: algorithmNone, X25519: algorithmNone,
});

// operation -> name in capitals -> [name, members]
const algorithmOperations = { __proto__: null };
for (const [operation, names] of Object.entries({
  digest: { 'SHA-1': algorithmNone, 'SHA-256': algorithmNone, 'SHA-384': algorithmNone, 'SHA-512': algorithmNone },
  sign: algorithmSigning,
  verify: algorithmSigning,
  encrypt: algorithmCrypting,
  decrypt: algorithmCrypting,
  wrapKey: algorithmWrapping,
  unwrapKey: algorithmWrapping,
  generateKey: { ...algorithmPairs(algorithmRSA), ...algorithmSecret(algorithmLength, algorithmMAC) },
  importKey: { ...algorithmPairs(algorithmHash), ...algorithmSecret(algorithmNone, algorithmMAC), HKDF: algorithmNone, PBKDF2: algorithmNone },
  keyLength: { ...algorithmSecret(algorithmLength, algorithmMAC), HKDF: algorithmNone, PBKDF2: algorithmNone },
  deriveBits: {
    ECDH: algorithmPublic, X25519: algorithmPublic,
    HKDF: [['hash', 'hash', true], ['info', 'bytes', true], ['salt', 'bytes', true]],
    PBKDF2: [['hash', 'hash', true], ['iterations', 'u32', true], ['salt', 'bytes', true]],
  },
})) {
  algorithmOperations[operation] = { __proto__: null };
  for (const [name, members] of Object.entries(names)) algorithmOperations[operation][name.toUpperCase()] = [name, members];
}

// AlgorithmIdentifier: an object as it is, anything else as a string.
function algorithmArgument(value) {
  return typeof value === 'object' && value !== null || typeof value === 'function' ? value : `${value}`;
}

const algorithmUpper = coreUncurry(String.prototype.toUpperCase);

// The entry of a name in any case. Only ASCII letters have a case here.
function algorithmFind(operation, name) {
  let found;
  if (name.length < 32) {
    let ascii = true;
    for (let i = 0; i < name.length; i++) if (name[i] > '\x7f') ascii = false;
    if (ascii) found = algorithmOperations[operation][algorithmUpper(name)];
  }
  if (found === undefined) throw new DOMException(`The algorithm ${name.slice(0, 64)} is not supported for this operation`, 'NotSupportedError');
  return found;
}

// Returns { name, number, and the members }. hash is the number of a digest, bytes are copies.
function algorithmNormalize(given, operation) {
  if (typeof given === 'string') given = { __proto__: null, name: given };
  const text = given.name;
  if (text === undefined) throw new TypeError('The algorithm has no name');
  const found = algorithmFind(operation, `${text}`);
  const name = found[0], members = found[1];
  const result = { __proto__: null, name, number: algorithmNumbers[name] };
  for (let i = 0; i < members.length; i++) {
    const key = members[i][0];
    const value = given[key];
    if (value !== undefined) result[key] = algorithmMember(value, members[i][1], key);
    else if (members[i][2]) throw new TypeError(`The algorithm ${name} needs the member ${key}`);
  }
  for (let i = 0; i < members.length; i++) {
    const key = members[i][0], type = members[i][1];
    if (result[key] === undefined) continue;
    if (type === 'bytes' || type === 'exponent') result[key] = new cryptoBytes(sourceBytes(result[key]));
    else if (type === 'hash') result[key] = algorithmNormalize(result[key], 'digest').number;
  }
  return result;
}

function algorithmMember(value, type, key) {
  switch (type) {
    case 'u8': return algorithmInteger(value, 255, key);
    case 'u16': return algorithmInteger(value, 65535, key);
    case 'u32': return algorithmInteger(value, 4294967295, key);
    case 'string': return `${value}`;
    case 'hash': return algorithmArgument(value);
    case 'key': return keyArgument(value, `The member ${key}`);
    case 'exponent':
      if (!idlIsView(value) || idlArrayKind(value) !== 'Uint8Array') throw new TypeError(`The member ${key} is not a Uint8Array`);
      return value;
  }
  return sourceArgument(value, `The member ${key}`);
}

// [EnforceRange]
function algorithmInteger(value, most, key) {
  const number = webEnforceRange(value, `The member ${key}`);
  if (number > most) throw new TypeError(`The member ${key} is above ${most}`);
  return number;
}

// The kind of a normalized algorithm of a key.
function algorithmKind(algorithm) {
  let kind = algorithm.number | (algorithm.hash ?? 0) << 8;
  if (algorithm.namedCurve !== undefined) {
    for (let i = 1; i < algorithmCurves.length; i++) if (algorithmCurves[i] === algorithm.namedCurve) kind |= i << 16;
  }
  return kind;
}

const sourceDetached = coreUncurry(coreDescriptor(ArrayBuffer.prototype, 'detached').get);

function sourceBuffer(value) {
  if (!idlIsView(value)) return value;
  return (idlArrayKind(value) === undefined ? idlViewBuffer : idlArrayBuffer)(value);
}

// BufferSource: checked here, read by sourceBytes when the standard does.
function sourceArgument(value, what) {
  if (!idlIsBytes(value) || idlIsShared(sourceBuffer(value))) throw new TypeError(`${what} is neither an ArrayBuffer nor a view of one`);
  return value;
}

// The bytes of a BufferSource, over the same memory; none if it was detached meanwhile.
function sourceBytes(value) {
  return sourceDetached(sourceBuffer(value)) ? new cryptoBytes(0) : idlBytes(value);
}
