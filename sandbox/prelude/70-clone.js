// structuredClone (HTML standard). The host tells the class of an object: brands that JavaScript code could forge, and
// proxies, which it cannot see, are told apart by the engine's own class number.

const cloneClasses = new Map(); // class number -> how to clone
const cloneErrors = {
  __proto__: null, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError,
};
const cloneTime = coreUncurry(Date.prototype.getTime);
const cloneSource = coreUncurry(coreDescriptor(RegExp.prototype, 'source').get);
const cloneFlags = coreUncurry(coreDescriptor(RegExp.prototype, 'flags').get);
const cloneResizable = coreUncurry(coreDescriptor(ArrayBuffer.prototype, 'resizable').get);
const cloneMostBytes = coreUncurry(coreDescriptor(ArrayBuffer.prototype, 'maxByteLength').get);
const cloneTransfer = coreUncurry(ArrayBuffer.prototype.transfer);
const cloneResize = ArrayBuffer.prototype.resize;
const cloneMapForEach = Map.prototype.forEach;
const cloneSetForEach = Set.prototype.forEach;
const cloneArrayValues = coreUncurry(idlTypedArray.prototype.values); // throws for an array that is out of bounds
const cloneArrayLength = idlArrayPart('length');
function cloneError(what) { return new DOMException(`${what} could not be cloned`, 'DataCloneError'); }

// One run. memory: original -> copy. Buffers to be transferred may be moved only when all else has succeeded; until
// then they and the views of them are stood in for by CloneLater, and later lists where each of those belongs.
function CloneRun(transfer) {
  this.memory = new Map();
  this.transfer = transfer;
  this.later = transfer === null ? null : [];
}

function CloneLater(make) { this.make = make; }

function cloneAny(run, value) {
  switch (typeof value) {
    case 'symbol': throw cloneError('A symbol');
    case 'function': throw cloneError(`The function ${cloneNameOf(value)}`);
    case 'object': return value === null ? null : cloneObject(run, value);
  }
  return value;
}

function cloneNameOf(fn) {
  const found = coreDescriptor(fn, 'name');
  return found !== undefined && typeof found.value === 'string' ? found.value.slice(0, 64) : '';
}

function cloneObject(run, object) {
  const seen = run.memory.get(object);
  if (seen !== undefined) return seen;
  const clone = cloneClasses.get(host.classID(object));
  if (clone === undefined) throw cloneError('This object');
  return clone(run, object);
}

function clonePut(run, target, key, copy) {
  if (copy instanceof CloneLater) {
    const later = copy;
    run.later.push(() => { target[key] = later.value; });
    copy = undefined;
  }
  coreDefine(target, key, { __proto__: null, value: copy, writable: true, enumerable: true, configurable: true });
}

// Copies own enumerable properties with string keys. A getter may remove a later one: what is gone is left out.
function cloneProperties(run, object, copy) {
  const keys = Object.keys(object);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (i > 0 && !coreHasOwn(object, key)) continue;
    const value = object[key];
    const type = typeof value;
    const done = type === 'object' || type === 'function' || type === 'symbol' ? cloneAny(run, value) : value;
    if (key === '__proto__' || run.later !== null) clonePut(run, copy, key, done);
    else copy[key] = done;
  }
  return copy;
}

function clonePlain(run, object) {
  const key = keyClone(object);
  if (key !== undefined) {
    run.memory.set(object, key);
    return key;
  }
  if (object[clonePlatform] === true) return clonePlatformObject(run, object);
  const copy = {};
  run.memory.set(object, copy);
  return cloneProperties(run, object, copy);
}

// An object of the runtime's own classes, or one that inherits from such.
function clonePlatformObject(run, object) {
  if (blobIs(object)) return cloneBlob(run, object);
  if (run !== null && run.transfer !== null && run.transfer.includes(object)) return cloneMoved(run, object, transferKind(object));
  throw cloneError(`A ${object[Symbol.toStringTag] ?? 'platform object'}`);
}

// Stands in for an object on its way, until all else has succeeded.
function cloneMoved(run, object, move) {
  const later = new CloneLater(() => move(object));
  run.memory.set(object, later);
  return later;
}

function cloneBlob(run, blob) {
  const copy = fileIs(blob) ? fileMake(blobBytes(blob), blobType(blob), blob.name, blob.lastModified) : blobAdopt(blobBytes(blob), blobType(blob));
  run?.memory.set(blob, copy);
  return copy;
}

function cloneArray(run, array) {
  const copy = [];
  copy.length = array.length;
  run.memory.set(array, copy);
  return cloneProperties(run, array, copy);
}

function cloneMap(run, map) {
  const copy = new Map();
  run.memory.set(map, copy);
  const items = [];
  coreApply(cloneMapForEach, map, [(value, key) => { items.push(key, value); }]);
  for (let i = 0; i < items.length; i++) items[i] = cloneAny(run, items[i]);
  cloneFill(run, items, () => { for (let i = 0; i < items.length; i += 2) copy.set(items[i], items[i + 1]); });
  return copy;
}

function cloneSet(run, set) {
  const copy = new Set();
  run.memory.set(set, copy);
  const items = [];
  coreApply(cloneSetForEach, set, [(value) => { items.push(value); }]);
  for (let i = 0; i < items.length; i++) items[i] = cloneAny(run, items[i]);
  cloneFill(run, items, () => { for (let i = 0; i < items.length; i++) copy.add(items[i]); });
  return copy;
}

// Runs fill now, or once the transferred buffers among items exist.
function cloneFill(run, items, fill) {
  if (run.later === null) {
    fill();
    return;
  }
  run.later.push(() => {
    for (let i = 0; i < items.length; i++) if (items[i] instanceof CloneLater) items[i] = items[i].value;
    fill();
  });
}

function cloneErrorObject(run, error) {
  let name = error.name;
  name = name === undefined ? 'Error' : `${name}`;
  const message = coreDescriptor(error, 'message');
  const text = message === undefined || !coreHasOwn(message, 'value') ? undefined : `${message.value}`;
  const C = cloneErrors[name] ?? Error;
  const made = text === undefined ? new C() : new C(text);
  const stack = coreDescriptor(error, 'stack');
  if (stack !== undefined && typeof stack.value === 'string') {
    coreDefine(made, 'stack', { __proto__: null, value: stack.value, writable: true, configurable: true, enumerable: false });
  }
  run.memory.set(error, made);
  const cause = coreDescriptor(error, 'cause');
  if (cause !== undefined && coreHasOwn(cause, 'value')) {
    const value = cloneAny(run, cause.value);
    clonePut(run, made, 'cause', value);
    coreDefine(made, 'cause', { __proto__: null, enumerable: false });
  }
  return made;
}

function cloneException(run, exception) {
  const copy = new DOMException(exception.message, exception.name);
  run.memory.set(exception, copy);
  return copy;
}

function cloneBuffer(run, buffer) {
  cloneCheckBuffer(buffer);
  if (run.transfer !== null && run.transfer.includes(buffer)) {
    const later = new CloneLater(() => cloneTransfer(buffer));
    run.memory.set(buffer, later);
    return later;
  }
  const size = idlBufferLength(buffer);
  const copy = cloneResizable(buffer) ? new ArrayBuffer(size, { maxByteLength: cloneMostBytes(buffer) }) : new ArrayBuffer(size);
  new Uint8Array(copy).set(new Uint8Array(buffer));
  run.memory.set(buffer, copy);
  return copy;
}

function cloneView(run, view) {
  const kind = idlArrayKind(view);
  const typed = kind !== undefined;
  const buffer = (typed ? idlArrayBuffer : idlViewBuffer)(view);
  if (idlIsShared(buffer)) throw cloneError('A SharedArrayBuffer');
  try {
    (typed ? cloneArrayValues : idlViewBytes)(view);
  } catch {
    throw cloneError('A view that is out of bounds');
  }
  const offset = (typed ? idlArrayOffset : idlViewOffset)(view);
  const length = (typed ? cloneArrayLength : idlViewBytes)(view);
  const C = typed ? cloneArrays[kind] : DataView;
  const copied = cloneAny(run, buffer);
  const follows = cloneResizable(buffer) && cloneFollows(buffer, view, typed);
  const make = (over) => (follows ? new C(over, offset) : new C(over, offset, length));
  const copy = copied instanceof CloneLater ? new CloneLater(() => make(copied.value)) : make(copied);
  run.memory.set(view, copy);
  return copy;
}

const cloneArrays = { __proto__: null };
for (const C of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
  Float16Array, Float32Array, Float64Array]) cloneArrays[C.name] = C;

// Whether the length of a view follows its resizable buffer. No property says so: the buffer is resized to see it, and
// then brought back to what it was.
function cloneFollows(buffer, view, typed) {
  const unit = typed ? view.BYTES_PER_ELEMENT : 1;
  const size = idlBufferLength(buffer);
  const length = () => (typed ? idlArrayBytes : idlViewBytes)(view);
  const before = length();
  if (cloneMostBytes(buffer) - size >= unit) {
    coreApply(cloneResize, buffer, [size + unit]);
    const grown = length() !== before;
    coreApply(cloneResize, buffer, [size]);
    return grown;
  }
  if (size === 0) return true;
  const last = new Uint8Array(buffer)[size - 1];
  coreApply(cloneResize, buffer, [size - 1]);
  try {
    if (typed) new Uint8Array(view); // throws if the view is now out of bounds
    return length() !== before;
  } catch {
    return false;
  } finally {
    coreApply(cloneResize, buffer, [size]);
    new Uint8Array(buffer)[size - 1] = last;
  }
}

function cloneRegister(clone, ...samples) {
  for (const sample of samples) cloneClasses.set(host.classID(sample), clone);
}

function cloneWrapper(C) {
  const valueOf = C.prototype.valueOf;
  cloneRegister((run, object) => {
    const copy = Object(coreApply(valueOf, object, []));
    run.memory.set(object, copy);
    return copy;
  }, Object(C(0)));
}

cloneRegister(clonePlain, {}, (function () { return arguments; })());
cloneRegister(cloneArray, []);
cloneRegister(cloneMap, new Map());
cloneRegister(cloneSet, new Set());
cloneRegister(cloneErrorObject, new Error());
cloneRegister(cloneException, new DOMException('', 'Error'));
cloneRegister(cloneBuffer, new ArrayBuffer(0));
for (const kind in cloneArrays) cloneRegister(cloneView, new cloneArrays[kind](0));
cloneRegister(cloneView, new DataView(new ArrayBuffer(0)));
for (const C of [Boolean, Number, String, BigInt]) cloneWrapper(C);
cloneRegister((run, date) => {
  const copy = new Date(cloneTime(date));
  run.memory.set(date, copy);
  return copy;
}, new Date(0));
cloneRegister((run, expression) => {
  const copy = new RegExp(cloneSource(expression), cloneFlags(expression));
  run.memory.set(expression, copy);
  return copy;
}, /x/);

// The runtime's own classes are plain objects to the engine, but cannot be cloned.
const clonePlatform = coreSlot('platform');
for (const name of ['Request', 'Response', 'Headers', 'Blob', 'FormData', 'URL', 'URLSearchParams', 'TextEncoder', 'TextDecoder', 'TextEncoderStream',
  'TextDecoderStream', 'Crypto', 'SubtleCrypto', 'EventTarget', 'Event', 'AbortController', 'ReadableStream', 'ReadableStreamDefaultReader', 'ReadableStreamBYOBReader',
  'WritableStream', 'WritableStreamDefaultWriter', 'TransformStream', 'CompressionStream', 'DecompressionStream', 'ByteLengthQueuingStrategy', 'CountQueuingStrategy']) {
  const C = globalThis[name];
  if (C !== undefined) coreDefine(C.prototype, clonePlatform, { __proto__: null, value: true });
}

// The list of objects to transfer, null if there is none. given is a sequence.
function cloneTransferList(given) {
  if (given === undefined) return null;
  if (typeof given !== 'object' && typeof given !== 'function' || given === null) throw new TypeError('transfer is not a sequence');
  const list = [...given];
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    if (typeof item !== 'object' && typeof item !== 'function' || item === null) throw new TypeError('an item to transfer is not an object');
  }
  return list.length === 0 ? null : list;
}

function cloneCheckTransfer(list) {
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    if (idlIsBuffer(item)) cloneCheckBuffer(item);
    else if (transferKind(item) === undefined) throw cloneError('An object that cannot be transferred');
    else transferCheck(item);
    if (list.indexOf(item) !== i) throw cloneError('A buffer or object that is transferred twice');
  }
}

function cloneCheckBuffer(buffer) {
  if (wasmBuffers.has(buffer)) throw cloneError('The buffer of a WebAssembly.Memory');
  if (sourceDetached(buffer)) throw cloneError('A detached ArrayBuffer');
}

// Clones a value and moves the objects of a list of cloneTransferList. Returns the copy and, in order, what became of the
// objects.
function cloneMove(value, transfer) {
  if (transfer === null) return { copy: typeof value !== 'object' || value === null ? cloneAny(null, value) : cloneAny(new CloneRun(null), value), moved: [] };
  cloneCheckTransfer(transfer);
  const run = new CloneRun(transfer);
  const copy = cloneAny(run, value);
  cloneCheckTransfer(transfer); // user code has run
  const moved = [];
  for (const item of transfer) {
    if (!idlIsBuffer(item)) transferCheck(item); // one of them may hold another
    const later = run.memory.get(item) ?? (idlIsBuffer(item) ? new CloneLater(() => cloneTransfer(item)) : cloneMoved(run, item, transferKind(item)));
    moved.push(later.value = later.make());
  }
  for (const view of run.memory.values()) if (view instanceof CloneLater && !coreHasOwn(view, 'value')) view.value = view.make();
  for (const step of run.later) step();
  return { copy: copy instanceof CloneLater ? copy.value : copy, moved };
}

idlGlobal('structuredClone', {
  structuredClone(value, options = undefined) {
    webArguments(arguments.length, 1, 'structuredClone');
    const transfer = options === undefined ? null : cloneTransferList(webDict(options, 'structuredClone: options').transfer);
    if (transfer === null && typeof value === 'object' && value !== null) return cloneAny(new CloneRun(null), value);
    return cloneMove(value, transfer).copy;
  },
}.structuredClone);
