// ReadableStream, and what its two kinds share. The cores are DefaultReadable (32) and ByteReadable (33).

class ReadableCore {
  facade = null;
  controller = null; // facade of the controller: source.pull gets it
  state = STREAM_OPEN;
  error = undefined;
  disturbed = false;
  reader = null;
  source = null; // `this` of the callbacks
  pull = undefined; // undefined: none
  cancel = undefined;
  highWaterMark = 0;
  queue = new StreamQueue();
  total = 0; // size of what is in the queue
  started = false;
  closing = false; // closed by the source, the queue is not empty yet
  pulling = false;
  again = false; // asked to pull while pulling
  onPulled = null; // made by the first pull
  onPullFailed = null;

  constructor(source, pull, cancel, highWaterMark) {
    this.source = source;
    this.pull = pull;
    this.cancel = cancel;
    this.highWaterMark = highWaterMark;
  }

  // Ends the set-up with what source.start returned.
  begin(result) {
    if (!isObject(result) && this.pull === undefined) {
      this.started = true;
      return;
    }
    whenSettled(result, () => {
      this.started = true;
      this.pullIfNeeded();
    }, (error) => this.fail(error));
  }

  canEnqueue() {
    return this.state === STREAM_OPEN && !this.closing;
  }

  desiredSize() {
    if (this.state === STREAM_OPEN) return this.highWaterMark - this.total;
    return this.state === STREAM_CLOSED ? 0 : null;
  }

  // Whether someone waits for a chunk.
  wanted() {
    return this.reader !== null && this.reader.requests.head !== null;
  }

  wantsPull() {
    return this.state === STREAM_OPEN && !this.closing && this.started && (this.highWaterMark - this.total > 0 || this.wanted());
  }

  pullIfNeeded() {
    if (this.pull === undefined || !this.wantsPull()) return;
    if (this.pulling) {
      this.again = true;
      return;
    }
    this.pulling = true;
    if (this.onPulled === null) {
      this.onPulled = () => {
        this.pulling = false;
        if (this.again) {
          this.again = false;
          this.pullIfNeeded();
        }
      };
      this.onPullFailed = (error) => this.fail(error);
    }
    let result;
    try {
      result = streamInvoke(this.pull, this.source, this.controller);
    } catch (error) {
      streamMicrotask(() => this.fail(error));
      return;
    }
    whenSettled(result, this.onPulled, this.onPullFailed);
  }

  forget() {
    this.pull = this.cancel = undefined;
    this.source = null;
  }

  drop() {
    this.queue.take();
    this.total = 0;
  }

  // ReadableStreamClose.
  finish() {
    this.state = STREAM_CLOSED;
    const { reader } = this;
    if (reader === null) return;
    reader.closed.resolve();
    if (!reader.byob) for (let r = reader.requests.take(); r !== null; r = r.next) r.close();
  }

  // The controller's error: no effect on a stream that has ended.
  fail(error) {
    if (this.state !== STREAM_OPEN) return;
    this.drop();
    this.forget();
    this.state = STREAM_ERRORED;
    this.error = error;
    const { reader } = this;
    if (reader === null) return;
    reader.closed.reject(error);
    for (let r = reader.requests.take(); r !== null; r = r.next) r.fail(error);
  }

  // ReadableStreamCancel.
  cancelWith(reason) {
    this.disturbed = true;
    if (this.state === STREAM_CLOSED) return resolvedWith(undefined);
    if (this.state === STREAM_ERRORED) return rejectedWith(this.error);
    this.finish();
    const { reader } = this;
    if (reader !== null && reader.byob) for (let r = reader.requests.take(); r !== null; r = r.next) r.close(undefined);
    this.drop();
    const result = promiseCall(this.cancel, this.source, [reason]);
    this.forget();
    return streamThen.call(result, streamNothing);
  }
}

// A ReadableStream around a core; the way of everything but `new ReadableStream`.
function wrapReadable(core) {
  const stream = streamObject(ReadableStream.prototype);
  stream[kReadable] = core;
  core.facade = stream;
  return stream;
}

function readableSource(value) {
  const source = value === undefined ? emptyDict : value;
  if (!isObject(source)) throw new TypeError('underlyingSource must be an object');
  let { autoAllocateChunkSize: auto } = source;
  if (auto !== undefined) auto = webEnforceRange(auto, 'autoAllocateChunkSize');
  const cancel = streamCallback(source.cancel, 'underlyingSource.cancel');
  const pull = streamCallback(source.pull, 'underlyingSource.pull');
  const start = streamCallback(source.start, 'underlyingSource.start');
  let { type } = source;
  if (type !== undefined && (type = `${type}`) !== 'bytes') throw new TypeError(`'${type}' is no type of a readable stream`);
  return { auto, cancel, pull, start, type };
}

function pipeOptions(value) {
  const dict = webDict(value, 'options');
  const preventAbort = !!dict.preventAbort, preventCancel = !!dict.preventCancel, preventClose = !!dict.preventClose;
  const { signal } = dict;
  if (signal !== undefined) signalOf(signal);
  return { preventAbort, preventCancel, preventClose, signal };
}

class ReadableStream {
  constructor(underlyingSource = undefined, strategy = undefined) {
    if (underlyingSource !== undefined && !isObject(underlyingSource)) {
      throw new TypeError('underlyingSource must be an object');
    }
    strategy = streamStrategy(strategy);
    const { auto, cancel, pull, start, type } = readableSource(underlyingSource);
    let core;
    if (type === 'bytes') {
      if (strategy.size !== undefined) throw new RangeError('a byte stream cannot have a strategy with size');
      const mark = streamHighWaterMark(strategy, 0);
      if (auto === 0) throw new TypeError('autoAllocateChunkSize must be greater than 0');
      core = new ByteReadable(underlyingSource, pull, cancel, mark, auto);
      if (start !== undefined || pull !== undefined) {
        core.controller = streamObject(ReadableByteStreamController.prototype);
        core.controller[kByteController] = core;
      }
    } else {
      core = new DefaultReadable(underlyingSource, pull, cancel, streamHighWaterMark(strategy, 1), strategy.size);
      if (start !== undefined || pull !== undefined) {
        core.controller = streamObject(ReadableStreamDefaultController.prototype);
        core.controller[kDefaultController] = core;
      }
    }
    core.facade = this;
    this[kReadable] = core;
    core.begin(start === undefined ? undefined : streamInvoke(start, underlyingSource, core.controller));
  }
  static from(asyncIterable) {
    webArguments(arguments.length, 1, 'from');
    return wrapReadable(readableFrom(asyncIterable));
  }
  get locked() { return streamCore(this, kReadable).reader !== null; }
  cancel(reason = undefined) {
    try {
      const core = streamCore(this, kReadable);
      if (core.reader !== null) throw new TypeError('the stream is locked to a reader');
      return core.cancelWith(reason);
    } catch (error) {
      return rejectedWith(error);
    }
  }
  getReader(options = undefined) {
    const core = streamCore(this, kReadable);
    let { mode } = webDict(options, 'options');
    if (mode === undefined) return new ReadableStreamDefaultReader(this);
    if ((mode = `${mode}`) !== 'byob') throw new TypeError(`'${mode}' is no mode of a reader`);
    return new ReadableStreamBYOBReader(this);
  }
  pipeThrough(transform, options = undefined) {
    const core = streamCore(this, kReadable);
    webArguments(arguments.length, 1, 'pipeThrough');
    const pair = webDict(transform, 'transform');
    const { readable } = pair;
    streamCore(readable, kReadable);
    const writable = streamCore(pair.writable, kWritable);
    const wanted = pipeOptions(options);
    if (core.reader !== null) throw new TypeError('the stream is locked to a reader');
    if (writable.writer !== null) throw new TypeError('the writable side is locked to a writer');
    markHandled(pipeStream(core, writable, wanted));
    return readable;
  }
  pipeTo(destination, options = undefined) {
    try {
      const core = streamCore(this, kReadable);
      webArguments(arguments.length, 1, 'pipeTo');
      const writable = streamCore(destination, kWritable);
      const wanted = pipeOptions(options);
      if (core.reader !== null) throw new TypeError('the stream is locked to a reader');
      if (writable.writer !== null) throw new TypeError('the destination is locked to a writer');
      return pipeStream(core, writable, wanted);
    } catch (error) {
      return rejectedWith(error);
    }
  }
  tee() {
    const core = streamCore(this, kReadable);
    const [one, two] = core.bytes ? teeBytes(core) : teeDefault(core);
    return [wrapReadable(one), wrapReadable(two)];
  }
  values(options = undefined) {
    const core = streamCore(this, kReadable);
    const preventCancel = !!webDict(options, 'options').preventCancel;
    return streamIterator(core, preventCancel);
  }
}
webInterface(ReadableStream);
Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, {
  value: ReadableStream.prototype.values, writable: true, configurable: true,
});
