// Key-value namespaces (kv §3).

function kvKey(value) {
  const key = facadeString('the key', value);
  if (!facadeWellFormed(key)) throw facadeNamed('invalid_key', 'the key has a lone surrogate');
  return key;
}

// The JSON of a metadata map, null for none. Its limits are the host's, but for the types.
function kvMetadata(value) {
  if (value === undefined) return null;
  const map = { __proto__: null };
  if (!isObject(value)) throw new TypeError('metadata is not an object');
  const prototype = corePrototypeOf(value);
  if (prototype !== null && prototype !== coreObjectPrototype) throw new TypeError('metadata is not a plain object');
  const names = idlOwnKeys(value);
  for (let i = 0; i < names.length; i++) {
    const key = names[i];
    const text = value[key];
    if (typeof key !== 'string' || typeof text !== 'string') throw new TypeError('metadata maps strings to strings');
    coreDefine(map, key, { __proto__: null, value: text.toWellFormed(), enumerable: true });
  }
  return kvStringify(map);
}

const kvStringify = JSON.stringify;

facadeClass('kv', 'KVNamespace', {
  get: (number, key) => host.kvGet(number, kvKey(key), false),

  getWithMetadata: (number, key) => coreThen(pending(host.kvGet(number, kvKey(key), true)), (found) => {
    if (found === null) return null;
    return found[1] === null ? { value: found[0] } : { value: found[0], metadata: coreParse(found[1]) };
  }),

  put(number, key, value, options) {
    const { metadata, expirationTtlSeconds } = facadeOptions('put', options, ['metadata', 'expirationTtlSeconds']);
    const name = kvKey(key);
    const packed = kvMetadata(metadata);
    const seconds = facadeInteger('expirationTtlSeconds', expirationTtlSeconds, 60, 315360000, 0);
    if (typeof value !== 'string' && !idlIsBytes(value)) throw new TypeError('the value is neither a string nor bytes');
    return host.kvPut(number, name, value, packed, seconds);
  },

  delete: (number, key) => host.kvDelete(number, kvKey(key)),

  list(number, options) {
    const { prefix = '', limit, cursor } = facadeOptions('list', options, ['prefix', 'limit', 'cursor']);
    facadeString('prefix', prefix);
    if (!facadeWellFormed(prefix) || host.utf8Encode(prefix).length > 467) throw new TypeError('prefix is not a string of at most 467 bytes');
    const most = facadeInteger('limit', limit, 1, 1000, 100);
    if (cursor !== undefined) {
      facadeString('cursor', cursor);
      if (cursor.length < 1 || cursor.length > 4096) throw facadeNamed('invalid_cursor', 'the cursor was not issued by list');
    }
    return coreThen(pending(host.kvList(number, prefix, most, cursor === undefined ? null : cursor)), (text) => {
      const page = coreParse(text);
      const names = page[0];
      const next = page[1];
      const keys = [];
      for (let i = 0; i < names.length; i++) keys[i] = { name: names[i] };
      return next === null ? { keys, listComplete: true } : { keys, listComplete: false, cursor: next };
    });
  },
}, { get: [1, 1], getWithMetadata: [1, 1], put: [2, 3], delete: [1, 1], list: [0, 1] });
