// What the classes below share of Web IDL: conversions, buffers, iteration over pairs. 20-events.js has the rest.

const idlOwnKeys = Reflect.ownKeys;
const idlIsEnumerable = coreUncurry(Object.prototype.propertyIsEnumerable);
const idlIsView = ArrayBuffer.isView;
const idlIterator = Symbol.iterator;

// Gives methods whose parameter list does not say it the number of their required arguments.
function idlLengths(C, lengths) {
  for (const key of idlOwnKeys(lengths)) coreDefine(C.prototype[key], 'length', { __proto__: null, value: lengths[key] });
}

// Defines a global function as Web IDL wants an operation of the global object: enumerable.
function idlGlobal(name, fn) {
  coreDefine(globalThis, name, { __proto__: null, value: fn, writable: true, configurable: true, enumerable: true });
}

function idlIllegal() {
  return new TypeError('Illegal invocation');
}

// Converts to USVString: lone surrogates become U+FFFD.
function idlUSV(value) {
  return (typeof value === 'string' ? value : `${value}`).toWellFormed();
}

// Whether value is a BufferSource, by its internals and not by its prototype.
function idlIsBytes(value) {
  return idlIsView(value) || idlIsBuffer(value);
}

const idlBufferLength = coreUncurry(coreDescriptor(ArrayBuffer.prototype, 'byteLength').get);
const idlSharedLength = coreUncurry(coreDescriptor(SharedArrayBuffer.prototype, 'byteLength').get);

function idlIsBuffer(value) {
  if (typeof value !== 'object' || value === null) return false;
  try {
    idlBufferLength(value);
    return true;
  } catch {
    return false;
  }
}

function idlIsShared(value) {
  if (typeof value !== 'object' || value === null || idlIsBuffer(value)) return false; // to be told by an exception costs tens of times as much
  try {
    idlSharedLength(value);
    return true;
  } catch {
    return false;
  }
}

const idlTypedArray = corePrototypeOf(Uint8Array);
const idlArrayPart = (key) => coreUncurry(coreDescriptor(idlTypedArray.prototype, key).get);
const idlViewPart = (key) => coreUncurry(coreDescriptor(DataView.prototype, key).get);
const idlArrayKind = idlArrayPart(Symbol.toStringTag); // the name of a typed array's kind, undefined for everything else
const idlArrayBuffer = idlArrayPart('buffer');
const idlArrayOffset = idlArrayPart('byteOffset');
const idlArrayBytes = idlArrayPart('byteLength');
const idlViewBuffer = idlViewPart('buffer');
const idlViewOffset = idlViewPart('byteOffset');
const idlViewBytes = idlViewPart('byteLength');

// The bytes of a BufferSource as a Uint8Array over the same memory; it may be the value itself. What is detached has none.
function idlBytes(value) {
  try {
    if (!idlIsView(value)) return new Uint8Array(value);
    const kind = idlArrayKind(value);
    if (kind === undefined) return new Uint8Array(idlViewBuffer(value), idlViewOffset(value), idlViewBytes(value));
    const size = idlArrayBytes(value);
    if (size === 0) return new Uint8Array(0); // its memory may be gone
    return kind === 'Uint8Array' ? value : new Uint8Array(idlArrayBuffer(value), idlArrayOffset(value), size);
  } catch {
    return new Uint8Array(0);
  }
}

// The bytes of a BufferSource as a Uint8Array of its own.
function idlCopyBytes(value) {
  return new Uint8Array(idlBytes(value));
}

const idlPairs = coreSlot('pairs');
const idlNext = coreSlot('next');
const idlKind = coreSlot('kind');

// Gives C the members of an iterable of pairs. pairs(object) checks the brand and returns the pairs as they are now in
// one flat array: a change in mid-iteration shows, as the standard wants.
function idlIterable(C, name, pairs) {
  const prototype = coreCreate(corePrototypeOf(corePrototypeOf([][idlIterator]())), {
    next: {
      value: function next() {
        const source = this[idlPairs];
        if (source === undefined || this[idlKind] === undefined || corePrototypeOf(this) !== prototype) throw idlIllegal();
        const list = pairs(source);
        const i = this[idlNext];
        if (i >= list.length) return { value: undefined, done: true };
        this[idlNext] = i + 2;
        const kind = this[idlKind];
        return { value: kind === 2 ? [list[i], list[i + 1]] : list[i + kind], done: false };
      },
      writable: true, configurable: true, enumerable: true,
    },
    [Symbol.toStringTag]: { value: `${name} Iterator`, configurable: true },
  });
  function PairIterator(source, kind) {
    this[idlPairs] = source;
    this[idlNext] = 0;
    this[idlKind] = kind;
  }
  PairIterator.prototype = prototype;
  const make = (source, kind) => {
    pairs(source);
    return new PairIterator(source, kind);
  };
  const members = {
    entries() { return make(this, 2); },
    keys() { return make(this, 0); },
    values() { return make(this, 1); },
    forEach(callback) {
      pairs(this);
      webArguments(arguments.length, 1, `${name}.forEach`);
      if (typeof callback !== 'function') throw new TypeError(`${name}.forEach: the callback is not a function`);
      const self = arguments[1];
      for (let i = 0, list; i < (list = pairs(this)).length; i += 2) coreApply(callback, self, [list[i + 1], list[i], this]);
    },
  };
  for (const key of idlOwnKeys(members)) {
    coreDefine(C.prototype, key, { __proto__: null, value: members[key], writable: true, configurable: true, enumerable: true });
  }
  coreDefine(C.prototype, idlIterator, { __proto__: null, value: members.entries, writable: true, configurable: true, enumerable: false });
  return members.entries;
}
