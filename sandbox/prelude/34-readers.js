// Readers. A request for a chunk is any object with chunk(value), close(value), fail(error) and `next`.

class ReaderCore {
  stream = null; // null once released
  byob = false;
  requests = new StreamQueue();
  closed = new LazyPromise();

  constructor(stream, byob) {
    this.stream = stream;
    this.byob = byob;
    if (stream.state === STREAM_CLOSED) this.closed.resolve();
    else if (stream.state === STREAM_ERRORED) this.closed.reject(stream.error);
    stream.reader = this;
  }

  // Answers request now or later.
  read(request) {
    const { stream } = this;
    stream.disturbed = true;
    if (stream.state === STREAM_OPEN) stream.serve(request);
    else if (stream.state === STREAM_CLOSED) request.close();
    else request.fail(stream.error);
  }

  release() {
    const { stream } = this;
    if (stream === null) return;
    const error = new TypeError('the reader was released');
    this.closed.reject(error);
    stream.released();
    stream.reader = null;
    this.stream = null;
    for (let r = this.requests.take(); r !== null; r = r.next) r.fail(error);
  }
}

function acquireDefault(stream) {
  if (stream.reader !== null) throw new TypeError('the stream is locked to a reader');
  return new ReaderCore(stream, false);
}

// The request behind a promise of { value, done }.
class ReadRequest {
  next = null;
  promise = null;
  resolve = null;
  reject = null;

  constructor() {
    this.promise = new StreamPromise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
  chunk(value) { this.resolve({ value, done: false }); }
  close(value) { this.resolve({ value, done: true }); }
  fail(error) { this.reject(error); }
}

// One read as a promise. What can be answered at once needs no request.
function readPromise(reader) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === STREAM_OPEN) {
    if (stream.queue.head !== null) return streamResolve.call(StreamPromise, { value: stream.take(), done: false });
    const request = new ReadRequest();
    stream.serve(request);
    return request.promise;
  }
  return stream.state === STREAM_CLOSED ? resolvedWith({ value: undefined, done: true }) : rejectedWith(stream.error);
}

function readerHeld(value, brand) {
  const reader = streamCore(value, brand);
  if (reader.stream === null) throw new TypeError('the reader was released');
  return reader;
}

function readerClosed(value, brand) {
  try {
    return streamCore(value, brand).closed.get();
  } catch (error) {
    return rejectedWith(error);
  }
}

function readerCancel(value, brand, reason) {
  try {
    return readerHeld(value, brand).stream.cancelWith(reason);
  } catch (error) {
    return rejectedWith(error);
  }
}

class ReadableStreamDefaultReader {
  constructor(stream) {
    webArguments(arguments.length, 1, 'ReadableStreamDefaultReader');
    this[kDefaultReader] = acquireDefault(streamCore(stream, kReadable));
  }
  get closed() { return readerClosed(this, kDefaultReader); }
  cancel(reason = undefined) { return readerCancel(this, kDefaultReader, reason); }
  read() {
    const reader = this?.[kDefaultReader];
    if (reader === undefined || reader.stream === null) {
      return rejectedWith(new TypeError(reader === undefined ? 'not a ReadableStreamDefaultReader' : 'the reader was released'));
    }
    return readPromise(reader);
  }
  releaseLock() { streamCore(this, kDefaultReader).release(); }
}
webInterface(ReadableStreamDefaultReader);

class ReadableStreamBYOBReader {
  constructor(stream) {
    webArguments(arguments.length, 1, 'ReadableStreamBYOBReader');
    const core = streamCore(stream, kReadable);
    if (core.reader !== null) throw new TypeError('the stream is locked to a reader');
    if (!core.bytes) throw new TypeError('only a byte stream can have a BYOB reader');
    this[kByobReader] = new ReaderCore(core, true);
  }
  get closed() { return readerClosed(this, kByobReader); }
  cancel(reason = undefined) { return readerCancel(this, kByobReader, reason); }
  read(view, options = undefined) {
    try {
      const reader = streamCore(this, kByobReader);
      webArguments(arguments.length, 1, 'read');
      const given = streamView(view);
      let { min = 1 } = webDict(options, 'options');
      min = webEnforceRange(min, 'min');
      if (given.length === 0) throw new TypeError('the view is empty or its buffer is detached');
      if (min === 0) throw new TypeError('min must be greater than 0');
      if (min * given.unit > given.length) throw new RangeError('min is more than the view has room for');
      if (reader.stream === null) throw new TypeError('the reader was released');
      const request = new ReadRequest();
      readInto(reader, given, min, request);
      return request.promise;
    } catch (error) {
      return rejectedWith(error);
    }
  }
  releaseLock() { streamCore(this, kByobReader).release(); }
}
webInterface(ReadableStreamBYOBReader);

function readInto(reader, view, min, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === STREAM_ERRORED) request.fail(stream.error);
  else stream.serveInto(view, min, request);
}

const iteratorPrototype = Object.create(Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}.prototype)), {
  [Symbol.toStringTag]: { value: 'ReadableStream AsyncIterator', configurable: true },
});

// The request of an iteration step: at the end and on an error the stream is given back before the promise settles.
class IterationRequest extends ReadRequest {
  iteration = null;

  constructor(iteration) {
    super();
    this.iteration = iteration;
  }
  chunk(value) { this.settle(() => this.resolve({ value, done: false })); }
  close() {
    this.end();
    this.settle(() => this.resolve({ value: undefined, done: true }));
  }
  fail(error) {
    this.end();
    this.settle(() => this.reject(error));
  }
  end() {
    this.iteration.finished = true;
    this.iteration.reader.release();
  }
  // One microtask later than a read: the source goes on before the consumer does.
  settle(step) {
    streamMicrotask(() => {
      this.iteration.waiting--;
      step();
    });
  }
}

class Iteration {
  reader = null;
  preventCancel = false;
  finished = false;
  waiting = 0; // steps begun and not settled: a further step goes behind the last of them
  last = null;

  constructor(core, preventCancel) {
    this.reader = acquireDefault(core);
    this.preventCancel = preventCancel;
  }

  // Steps are taken one after the other, each when the one before has settled.
  step(run) {
    this.last = this.waiting++ === 0 ? run() : streamThen.call(this.last, run, run);
    return this.last;
  }

  next() {
    if (this.finished) return this.settled({ value: undefined, done: true });
    const request = new IterationRequest(this);
    this.reader.read(request);
    return request.promise;
  }

  settled(result) {
    this.waiting--;
    return resolvedWith(result);
  }

  end(value) {
    if (this.finished) return this.settled({ value, done: true });
    this.finished = true;
    const { reader } = this;
    const result = this.preventCancel ? undefined : reader.stream.cancelWith(value);
    reader.release();
    return streamThen.call(resolvedWith(result), () => {
      this.waiting--;
      return { value, done: true };
    }, (error) => {
      this.waiting--;
      throw error;
    });
  }
}

function streamIterator(core, preventCancel) {
  const iterator = streamObject(iteratorPrototype);
  iterator[kIterator] = new Iteration(core, preventCancel);
  return iterator;
}

const { next: iteratorNext, return: iteratorReturn } = {
  next() {
    try {
      const iteration = streamCore(this, kIterator);
      return iteration.step(() => iteration.next());
    } catch (error) {
      return rejectedWith(error);
    }
  },
  return(value) {
    try {
      const iteration = streamCore(this, kIterator);
      return iteration.step(() => iteration.end(value));
    } catch (error) {
      return rejectedWith(error);
    }
  },
};
for (const [name, value] of [['next', iteratorNext], ['return', iteratorReturn]]) {
  Object.defineProperty(iteratorPrototype, name, { value, writable: true, enumerable: true, configurable: true });
}
