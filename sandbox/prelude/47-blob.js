// Blob and File (File API). A blob's bytes never change, so slices and copies share them.

const blobKey = Symbol('blob'); // says that the constructor's second argument is bytes that nobody else holds
const blobChunk = 65536; // bytes of one chunk of a blob's stream
const blobStrange = /[^\x20-\x7e]/;
const blobLineEnds = /\r\n|\r|\n/g;
const blobMostSize = 0x7fffffff; // more than any sandbox can hold

let blobIs, blobBytes, blobType, blobAdopt, fileIs, fileMake;

// [Clamp] long long.
function blobClamp(value) {
  value = +value;
  if (!(value >= 0 || value < 0)) return 0;
  if (value > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  if (value < -Number.MAX_SAFE_INTEGER) return -Number.MAX_SAFE_INTEGER;
  const low = Math.floor(value), rest = value - low;
  return rest < 0.5 || rest === 0.5 && low % 2 === 0 ? low : low + 1;
}

function blobNormalType(type) { return blobStrange.test(type) ? '' : type.toLowerCase(); }

// sequence<BlobPart>, each converted before the options are looked at.
function blobParts(given, what) {
  const method = typeof given === 'object' && given !== null || typeof given === 'function' ? given[idlIterator] : undefined;
  if (typeof method !== 'function') throw new TypeError(`${what}: the parts are not a sequence`);
  const parts = [];
  for (const part of { [idlIterator]: () => coreApply(method, given, []) }) {
    parts.push(blobIs(part) || idlIsBytes(part) ? part : idlUSV(part));
  }
  return parts;
}

function blobOptions(options, what) {
  const dictionary = webDict(options, `${what}: options`);
  let { endings } = dictionary;
  if (endings !== undefined) {
    endings = `${endings}`;
    if (endings !== 'transparent' && endings !== 'native') throw new TypeError(`${what}: "${endings.slice(0, 64)}" is no value of endings`);
  }
  let { type } = dictionary;
  type = type === undefined ? '' : blobNormalType(`${type}`);
  return { native: endings === 'native', type };
}

function blobJoin(parts, native) {
  const chunks = [];
  let size = 0;
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    let bytes;
    if (typeof part === 'string') bytes = host.utf8Encode(native ? part.replace(blobLineEnds, '\n') : part);
    else bytes = blobIs(part) ? blobBytes(part) : idlBytes(part);
    chunks[i] = bytes;
    size += idlArrayBytes(bytes);
  }
  if (size > blobMostSize) throw new RangeError('Blob: the parts are too large');
  const joined = new Uint8Array(size);
  for (let i = 0, at = 0; i < chunks.length; i++) {
    coreApply(blobSet, joined, [chunks[i], at]);
    at += idlArrayBytes(chunks[i]);
  }
  return joined;
}

const blobSet = Uint8Array.prototype.set;
const blobSubarray = Uint8Array.prototype.subarray;
const blobSlice = Uint8Array.prototype.slice;

function blobPromise(make) {
  try {
    return coreResolve(make());
  } catch (failure) {
    return CorePromise.reject(failure);
  }
}

class Blob {
  #bytes;
  #type;

  constructor(blobParts_ = undefined, options = undefined) {
    if (blobParts_ === blobKey) {
      this.#bytes = options;
      this.#type = arguments[2];
      return;
    }
    const what = new.target === File ? 'File' : 'Blob';
    const parts = blobParts_ === undefined ? [] : blobParts(blobParts_, what);
    const { native, type } = blobOptions(options, what);
    this.#bytes = blobJoin(parts, native);
    this.#type = type;
  }

  static {
    blobIs = (value) => typeof value === 'object' && value !== null && #bytes in value;
    blobBytes = (blob) => blob.#bytes;
    blobType = (blob) => blob.#type;
    blobAdopt = (bytes, type) => new Blob(blobKey, bytes, type);
  }

  get size() { return idlArrayBytes(this.#bytes); }
  get type() { return this.#type; }

  slice(start = undefined, end = undefined, contentType = undefined) {
    const bytes = this.#bytes;
    const size = idlArrayBytes(bytes);
    const place = (value, otherwise) => {
      if (value === undefined) return otherwise;
      const at = blobClamp(value);
      return at < 0 ? Math.max(size + at, 0) : Math.min(at, size);
    };
    const from = place(start, 0), to = Math.max(place(end, size), from);
    const type = contentType === undefined ? '' : blobNormalType(`${contentType}`);
    return blobAdopt(coreApply(blobSubarray, bytes, [from, to]), type);
  }

  stream() {
    const bytes = this.#bytes;
    let at = 0;
    const size = idlArrayBytes(bytes);
    return newHostReadableStream(() => {
      if (at >= size) return null;
      const from = at;
      at = Math.min(at + blobChunk, size);
      return coreApply(blobSlice, bytes, [from, at]);
    }, () => { at = size; }, 0);
  }

  text() { return blobPromise(() => host.utf8Decode(this.#bytes, 0)); }
  bytes() { return blobPromise(() => new Uint8Array(this.#bytes)); }
  arrayBuffer() { return blobPromise(() => idlArrayBuffer(new Uint8Array(this.#bytes))); }
}

class File extends Blob {
  #name;
  #modified;

  constructor(fileBits, fileName, options = undefined) {
    if (fileBits === blobKey) {
      super(blobKey, fileName, options);
      this.#name = arguments[3];
      this.#modified = arguments[4];
      return;
    }
    webArguments(arguments.length, 2, 'File');
    const parts = blobParts(fileBits, 'File');
    const name = idlUSV(fileName);
    const dictionary = blobOptions(options, 'File');
    const modified = webDict(options, 'File: options').lastModified;
    super(blobKey, blobJoin(parts, dictionary.native), dictionary.type);
    this.#name = name;
    this.#modified = modified === undefined ? coreNow() : blobLong(modified);
  }

  static {
    fileIs = (value) => typeof value === 'object' && value !== null && #name in value;
    fileMake = (bytes, type, name, modified) => new File(blobKey, bytes, type, name, modified);
  }

  get name() { return this.#name; }
  get lastModified() { return this.#modified; }
}

// long long.
function blobLong(value) {
  value = Math.trunc(+value);
  return Number.isFinite(value) ? Number(BigInt.asIntN(64, BigInt(value))) : 0;
}

webInterface(Blob);
webInterface(File);
