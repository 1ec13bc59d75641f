// Streams as the runtime uses them: bodies that the host feeds, and reading without anything that users can observe.

// A byte stream fed by the host. It asks for no more than is read, unless it has a high water mark.
class HostReadable extends ByteReadable {
  hostPull = undefined;
  hostCancel = undefined;
  origin = null; // the host's body that it gives, as 55-body knows it; null for none
  first = undefined; // a promise that serve got from the host and leaves to pullOne

  constructor(pull, cancel, highWaterMark) {
    super(null, HostReadable.prototype.pullOne, HostReadable.prototype.cancelHost, highWaterMark, undefined);
    this.source = this;
    this.hostPull = pull;
    this.hostCancel = cancel;
    this.started = true;
    if (highWaterMark > 0) this.begin(undefined);
  }

  // Fast path: what the host has at once goes to the reader without a queue.
  serve(request) {
    if (this.total > 0 || this.pulling || this.reader.requests.head !== null || this.wishes.head !== null) {
      super.serve(request);
      return;
    }
    let got;
    try {
      do got = this.hostPull(); while (got !== null && got.length === 0);
    } catch (error) {
      this.fail(error);
      request.fail(error);
      return;
    }
    if (got === null) {
      this.close();
      request.close();
    } else if (streamArrayKind.call(got) !== undefined) {
      request.chunk(got);
    } else {
      this.first = got;
      super.serve(request);
    }
  }

  pullOne() {
    let got = this.first;
    if (got === undefined) got = this.hostPull();
    else this.first = undefined;
    if (got !== null && streamArrayKind.call(got) === undefined) return streamThen.call(got, (value) => this.give(value));
    this.give(got);
    return undefined;
  }

  give(chunk) {
    if (!this.canEnqueue()) return; // cancelled meanwhile
    if (chunk === null) {
      this.close();
      if (this.wishes.head !== null) this.respond(0);
    } else if (chunk.length === 0) {
      this.again = true;
    } else if (this.wishes.head === null) {
      this.enqueueOwn(chunk.buffer, chunk.byteOffset, chunk.length);
    } else {
      this.enqueue(streamView(chunk));
    }
  }

  cancelHost(reason) {
    return this.hostCancel === undefined ? undefined : this.hostCancel(reason);
  }
}

// Returns a ReadableStream of bytes. pull() gives a Uint8Array over a buffer of its own, null at the end, or a promise of
// these, which may reject; it is not called again before that has settled. cancel(reason) may be undefined.
function newHostReadableStream(pull, cancel, highWaterMark = 0) {
  return wrapReadable(new HostReadable(pull, cancel, highWaterMark));
}

function isReadableStream(value) {
  return isObject(value) && value[kReadable] !== undefined;
}

// Whether something has been read from the stream, or it was cancelled.
function isDisturbed(stream) {
  return stream[kReadable].disturbed;
}

function isLocked(stream) {
  return stream[kReadable].reader !== null;
}

// Ends the stream with an error, whatever its source thinks.
function errorStream(stream, error) {
  stream[kReadable].fail(error);
}

// As stream.cancel(reason), also for a locked stream.
function cancelStream(stream, reason) {
  return stream[kReadable].cancelWith(reason);
}

// As stream.tee().
function teeStream(stream) {
  const core = stream[kReadable];
  const [one, two] = core.bytes ? teeBytes(core) : teeDefault(core);
  return [wrapReadable(one), wrapReadable(two)];
}

// Locks the stream; a TypeError if it is locked. The result is for the functions below only.
function acquireReader(stream) {
  return acquireDefault(stream[kReadable]);
}

// A promise of { value, done }, as reader.read() gives it.
function readChunk(reader) {
  return readPromise(reader);
}

function cancelReader(reader, reason) {
  return reader.stream.cancelWith(reason);
}

function releaseReader(reader) {
  reader.release();
}

// Reads a stream to its end; the read request of its own reader.
class Collector {
  reader = null;
  owned = false; // nobody else has the chunks' memory
  chunks = [];
  total = 0;
  next = null;
  inRead = false;
  more = false;
  result = newDeferred();

  constructor(core) {
    this.reader = acquireDefault(core);
    this.owned = core.bytes;
  }

  // Chunks that are there at once are taken in a loop, not by recursion.
  run() {
    do {
      this.more = false;
      this.inRead = true;
      this.next = null;
      this.reader.read(this);
      this.inRead = false;
    } while (this.more);
  }

  chunk(value) {
    if (!streamIsView(value) || streamArrayKind.call(value) !== 'Uint8Array') {
      const error = new TypeError('a chunk is not a Uint8Array');
      this.fail(error);
      markHandled(this.reader.stream.cancelWith(error));
      return;
    }
    this.chunks[this.chunks.length] = value;
    this.total += streamArrayBytes.call(value);
    if (this.inRead) this.more = true;
    else this.run();
  }

  close() { this.result.resolve(this.join()); }
  fail(error) { this.result.reject(error); }

  join() {
    const { chunks } = this;
    if (this.owned && chunks.length === 1 && streamBufferLength.call(streamArrayBuffer.call(chunks[0])) === this.total) return chunks[0];
    const bytes = new StreamBytes(this.total);
    for (let i = 0, at = 0; i < chunks.length; at += streamArrayBytes.call(chunks[i++])) streamBytesSet.call(bytes, chunks[i], at);
    return bytes;
  }
}

// A promise of all that is left of the stream, in a Uint8Array over a buffer of its own. The stream stays locked. Rejects
// with the stream's error, and with a TypeError for a chunk that is not a Uint8Array.
function readAllBytes(stream) {
  const collector = new Collector(stream[kReadable]);
  collector.run();
  return collector.result.promise;
}
