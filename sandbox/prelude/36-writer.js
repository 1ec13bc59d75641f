// The writer of a WritableStream.

class WriterCore {
  stream = null; // null once released
  ready = new LazyPromise();
  closed = new LazyPromise();

  constructor(stream) {
    if (stream.writer !== null) throw new TypeError('the stream is locked to a writer');
    this.stream = stream;
    stream.writer = this;
    if (stream.state === STREAM_OPEN) {
      if (stream.closeQueued() || !stream.backpressure) this.ready.resolve();
    } else if (stream.state === STREAM_CLOSED) {
      this.ready.resolve();
      this.closed.resolve();
    } else {
      this.ready.reject(stream.error);
      if (stream.state === STREAM_ERRORED) this.closed.reject(stream.error);
    }
  }

  // Writes; undefined or the reason why that is not possible.
  write(chunk, request) {
    const { stream } = this;
    const size = stream.measure(chunk);
    return stream.enqueue(chunk, size, request, this);
  }

  release() {
    const { stream } = this;
    if (stream === null) return;
    const error = new TypeError('the writer was released');
    this.ready.reject(error);
    this.closed.reject(error);
    stream.writer = null;
    this.stream = null;
  }
}

class WriteRequest {
  next = null;
  promise = null;
  done = null;
  fail = null;

  constructor() {
    this.promise = new StreamPromise((resolve, reject) => {
      this.done = resolve;
      this.fail = reject;
    });
  }
}

function writerHeld(value) {
  const writer = streamCore(value, kWriter);
  if (writer.stream === null) throw new TypeError('the writer was released');
  return writer;
}

class WritableStreamDefaultWriter {
  constructor(stream) {
    webArguments(arguments.length, 1, 'WritableStreamDefaultWriter');
    this[kWriter] = new WriterCore(streamCore(stream, kWritable));
  }
  get closed() {
    try {
      return streamCore(this, kWriter).closed.get();
    } catch (error) {
      return rejectedWith(error);
    }
  }
  get desiredSize() { return writerHeld(this).stream.desiredSize(); }
  get ready() {
    try {
      return streamCore(this, kWriter).ready.get();
    } catch (error) {
      return rejectedWith(error);
    }
  }
  abort(reason = undefined) {
    try {
      return writerHeld(this).stream.abortWith(reason);
    } catch (error) {
      return rejectedWith(error);
    }
  }
  close() {
    try {
      const { stream } = writerHeld(this);
      if (stream.closeQueued()) throw new TypeError('the stream is closing');
      return stream.closeWith();
    } catch (error) {
      return rejectedWith(error);
    }
  }
  releaseLock() { streamCore(this, kWriter).release(); }
  write(chunk = undefined) {
    try {
      const writer = writerHeld(this);
      const request = new WriteRequest();
      const refused = writer.write(chunk, request);
      return refused === undefined ? request.promise : rejectedWith(refused);
    } catch (error) {
      return rejectedWith(error);
    }
  }
}
webInterface(WritableStreamDefaultWriter);
