// Bodies of Request and Response. A body stays what it was made from (text, bytes, the request as it arrives) as long as
// nobody asks for the stream: reading it then needs no stream, and sending it does not encode text in JavaScript.

// The state of a Request or Response is one array in one property: every property that a new object gets costs as much
// as a call. The first six places of a Response are what the host wants to see of it (61-response); in both, these hold
// the body.
const fetchSlot = coreSlot('state');
const bodyKind = 2;
const bodySource = 3;
const bodyTaken = 6; // it was read, or moved elsewhere, without its stream

const bodyNull = 0;
const bodyText = 1; // a string, in which lone surrogates stand for U+FFFD
const bodyBytes = 2; // a Uint8Array that nobody else holds
const bodyStream = 3;
const bodyIncoming = 4; // what the host has: the source is [the invocation that it belongs to, the host's number for it]

const bodyTextType = 'text/plain;charset=UTF-8';
const bodyQueryType = 'application/x-www-form-urlencoded;charset=UTF-8';

// Converts a value to what `BodyInit` allows and makes it the body. Returns the Content-Type that it brings, or null.
// The value is neither null nor undefined. Here and below `object` is a state.
function bodyExtract(object, value) {
  if (typeof value === 'string') {
    object[bodyKind] = bodyText;
    object[bodySource] = value;
    return bodyTextType;
  }
  if (typeof value === 'object') {
    if (isReadableStream(value)) {
      if (isDisturbed(value) || isLocked(value)) throw new TypeError('The body is a stream that is locked or was read from');
      object[bodyKind] = bodyStream;
      object[bodySource] = value;
      return null;
    }
    if (idlIsBytes(value)) {
      object[bodyKind] = bodyBytes;
      object[bodySource] = idlCopyBytes(value);
      return null;
    }
    if (coreHasOwn(value, queryList)) {
      object[bodyKind] = bodyText;
      object[bodySource] = querySerialise(value[queryList]);
      return bodyQueryType;
    }
    if (blobIs(value)) {
      object[bodyKind] = bodyBytes;
      object[bodySource] = new Uint8Array(blobBytes(value));
      return blobType(value) === '' ? null : headersValue(blobType(value));
    }
    if (formIs(value)) {
      const [bytes, type] = formSerialise(formList(value));
      object[bodyKind] = bodyBytes;
      object[bodySource] = bytes;
      return type;
    }
  }
  object[bodyKind] = bodyText;
  object[bodySource] = idlUSV(value);
  return bodyTextType;
}

function fetchState(owner) {
  const state = owner[fetchSlot];
  if (state === undefined || !coreHasOwn(owner, fetchSlot)) throw idlIllegal();
  return state;
}

// Whether the body cannot be used any more: read, moved, or locked by a reader.
function bodyUnusable(object) {
  return object[bodyTaken] || object[bodyKind] === bodyStream && (isDisturbed(object[bodySource]) || isLocked(object[bodySource]));
}

// The body as a stream; from now on the stream is the body. It must not be null.
function bodyAsStream(object) {
  const kind = object[bodyKind];
  const source = object[bodySource];
  if (kind === bodyStream) return source;
  let stream;
  if (object[bodyTaken]) {
    stream = newHostReadableStream(() => null, () => {}, 0);
    readChunk(acquireReader(stream)).then(undefined, () => {});
  } else if (kind === bodyIncoming) {
    stream = bodyFromHost(source);
  } else {
    let rest = kind === bodyText ? host.utf8Encode(source) : source;
    if (rest.byteLength === 0) rest = null;
    stream = newHostReadableStream(() => {
      const chunk = rest;
      rest = null;
      return chunk;
    }, () => { rest = null; }, 0);
  }
  object[bodyKind] = bodyStream;
  object[bodySource] = stream;
  return stream;
}

// The stream of a body that the host has.
function bodyFromHost(source) {
  const stream = newHostReadableStream(() => incomingBodyPull(source), () => incomingBodyCancel(source), 0);
  stream[kReadable].origin = source;
  return stream;
}

// The tee of a stream of arbitrary chunks in which the second branch gets copies of them.
class BodyTee extends DefaultTee {
  chunk(value) {
    streamMicrotask(() => {
      this.again = false;
      let copy;
      try {
        copy = this.cancelled[1] ? undefined : cloneAny(new CloneRun(null), value);
      } catch (failure) {
        for (const branch of this.branches) branch.fail(failure);
        this.done.resolve(this.source.cancelWith(failure));
        return;
      }
      for (let i = 0; i < 2; i++) {
        if (!this.cancelled[i] && this.branches[i].canEnqueue()) teeTry(() => this.branches[i].enqueue(i === 0 ? value : copy));
      }
      this.reading = false;
      if (this.again) this.pull();
    });
  }
}

function bodyTee(stream) {
  const core = stream[kReadable];
  if (core.bytes) return teeStream(stream);
  const [one, two] = teeDefault(core, BodyTee);
  return [wrapReadable(one), wrapReadable(two)];
}

// Gives `to` a body of its own with the content of from's, which must be usable.
function bodyClone(from, to) {
  const kind = from[bodyKind];
  if (kind === bodyStream || kind === bodyIncoming) {
    const [mine, other] = bodyTee(bodyAsStream(from));
    from[bodySource] = mine;
    to[bodyKind] = bodyStream;
    to[bodySource] = other;
    return;
  }
  to[bodyKind] = kind;
  to[bodySource] = kind === bodyBytes ? new Uint8Array(from[bodySource]) : from[bodySource];
}

// Gives from's body, which must be usable, to `to`; from counts as read afterwards.
function bodyMove(from, to) {
  const kind = from[bodyKind];
  const number = kind === bodyStream ? bodyHandOver(from) : -1;
  if (number >= 0) {
    to[bodyKind] = bodyIncoming;
    to[bodySource] = [invocation, number];
  } else {
    to[bodyKind] = kind;
    to[bodySource] = kind === bodyStream ? bodyRelay(from[bodySource]) : from[bodySource];
  }
  if (kind !== bodyNull) from[bodyTaken] = true;
}

// A stream that gives what another gives and locks it.
function bodyRelay(stream) {
  const reader = acquireReader(stream);
  const next = (result) => (result.done ? null : result.value);
  return newHostReadableStream(() => coreThen(readChunk(reader), next), (reason) => cancelReader(reader, reason), 0);
}

function bodyTextOf(kind, content) {
  if (kind !== bodyText) return host.utf8Decode(content, 0);
  return content.charCodeAt(0) === 0xfeff ? content.slice(1).toWellFormed() : content.toWellFormed();
}

function bodyBytesOf(kind, content) {
  return kind === bodyText ? host.utf8Encode(content) : content;
}

function bodyJSONOf(kind, content) { return coreParse(bodyTextOf(kind, content)); }

function bodyBufferOf(kind, content) {
  const bytes = bodyBytesOf(kind, content);
  const buffer = idlArrayBuffer(bytes);
  return idlBufferLength(buffer) === idlArrayBytes(bytes) ? buffer : bodyBufferOf(kind, new Uint8Array(bytes));
}

// Reads the whole body and returns a promise of what convert(kind, content) makes of it; content is text or bytes.
function bodyConsume(owner, convert) {
  try {
    const object = fetchState(owner);
    const kind = object[bodyKind];
    if (kind === bodyNull) return coreResolve(convert(bodyText, ''));
    if (bodyUnusable(object)) throw new TypeError('The body was already read or is locked');
    if (kind === bodyStream) return bodyDrain(object[bodySource], convert);
    object[bodyTaken] = true;
    const content = object[bodySource];
    object[bodySource] = null;
    return kind === bodyIncoming ? bodyCollect([], convert, content) : coreResolve(convert(kind, content));
  } catch (failure) {
    return CorePromise.reject(failure);
  }
}

// Reads a stream to its end. It converts before it resolves: a promise of the bytes would look for a `then` on them.
class BodyDrain extends Collector {
  convert = undefined;

  close() {
    try {
      this.result.resolve(this.convert(bodyBytes, this.join()));
    } catch (failure) {
      this.result.reject(failure);
    }
  }
}

function bodyDrain(stream, convert) {
  const drain = new BodyDrain(stream[kReadable]);
  drain.convert = convert;
  drain.run();
  return drain.result.promise;
}

// Pulls the incoming body to its end. As long as bytes are there already nothing waits and no promise is made.
function bodyCollect(chunks, convert, owner) {
  for (;;) {
    const chunk = incomingBodyPull(owner);
    if (chunk === null) return coreResolve(convert(bodyBytes, bodyJoin(chunks)));
    if (!idlIsView(chunk)) {
      return coreThen(chunk, (later) => {
        if (later === null) return convert(bodyBytes, bodyJoin(chunks));
        chunks.push(later);
        return bodyCollect(chunks, convert, owner);
      });
    }
    chunks.push(chunk);
  }
}

function bodyJoin(chunks) {
  if (chunks.length === 1) return chunks[0];
  let size = 0;
  for (let i = 0; i < chunks.length; i++) size += chunks[i].byteLength;
  const bytes = new Uint8Array(size);
  size = 0;
  for (let i = 0; i < chunks.length; i++) {
    bytes.set(chunks[i], size);
    size += chunks[i].byteLength;
  }
  return bytes;
}

// The host's number of a body that nobody has touched, which only passes through this worker: its bytes need not come in.
// -1 for every other body. The body counts as read afterwards.
function bodyHandOver(state) {
  const kind = state[bodyKind];
  const source = state[bodySource];
  if (kind === bodyIncoming) {
    if (state[bodyTaken] || source[0] !== invocation) return -1;
    state[bodyTaken] = true;
    return source[1];
  }
  if (kind !== bodyStream) return -1;
  const core = source[kReadable];
  const { origin } = core;
  if (origin === undefined || origin === null || origin[0] !== invocation || core.disturbed || core.reader !== null || core.total > 0
    || core.pulling) return -1;
  acquireDefault(core);
  core.disturbed = true;
  return origin[1];
}

// The MIME type that the headers of a Request or Response say, as host.mimeType gives it.
function bodyMime(state) {
  const headers = typeof state[requestMethod] === 'string' ? requestHeadersOf(state) : responseHeadersOf(state);
  const value = headersJoined(headersList(headers), 'content-type');
  return value === null ? undefined : host.mimeType(value);
}

// Promises what convert(mime, kind, content) makes of the body.
function bodyConsumeTyped(owner, convert) {
  return bodyConsume(owner, (kind, content) => convert(bodyMime(owner[fetchSlot]), kind, content));
}

function bodyBlobOf(mime, kind, content) {
  return blobAdopt(bodyBytesOf(kind, content), mime === undefined ? '' : blobNormalType(mime[0]));
}

// The members that Request and Response have in common. Methods of a plain object are no constructors.
const bodyMixin = {
  get body() {
    const state = fetchState(this);
    return state[bodyKind] === bodyNull ? null : bodyAsStream(state);
  },
  get bodyUsed() {
    const state = fetchState(this);
    const kind = state[bodyKind];
    return kind !== bodyNull && (state[bodyTaken] || kind === bodyStream && isDisturbed(state[bodySource]));
  },
  arrayBuffer() { return bodyConsume(this, bodyBufferOf); },
  blob() { return bodyConsumeTyped(this, bodyBlobOf); },
  bytes() { return bodyConsume(this, bodyBytesOf); },
  formData() { return bodyConsumeTyped(this, formParse); },
  json() { return bodyConsume(this, bodyJSONOf); },
  text() { return bodyConsume(this, bodyTextOf); },
};

function bodyMixInto(C) {
  for (const key of idlOwnKeys(bodyMixin)) coreDefine(C.prototype, key, coreDescriptor(bodyMixin, key));
}
