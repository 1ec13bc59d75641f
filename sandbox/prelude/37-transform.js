// TransformStream: a writable and a readable core, with a transformer in between that is sink of one and source of the
// other.

class TransformCore {
  transformer = null; // `this` of the callbacks
  transform = undefined; // undefined: chunks pass as they are
  flush = undefined;
  cancel = undefined;
  controller = null;
  readable = null;
  writable = null;
  backpressure = true;
  holding = false; // the sink's write waits for backpressure to go,
  held = undefined; // with this chunk
  waiting = false; // the source's pull waits for backpressure to come
  finish = null; // resolvers of the one ending: close, abort or cancel
  room = null; // called, once, when backpressure goes

  constructor(transformer, transform, flush, cancel) {
    this.transformer = transformer;
    this.transform = transform;
    this.flush = flush;
    this.cancel = cancel;
  }

  setBackpressure(backpressure) {
    this.backpressure = backpressure;
    if (backpressure) {
      if (!this.waiting) return;
      this.waiting = false;
      streamMicrotask(this.readable.onPulled);
    } else if (this.holding) {
      streamMicrotask(() => this.writeHeld());
    } else if (this.room !== null) {
      const { room } = this;
      this.room = null;
      room();
    }
  }

  forget() {
    this.transform = this.flush = this.cancel = streamNothing;
    this.transformer = null;
  }

  enqueue(chunk) {
    const { readable } = this;
    if (!readable.canEnqueue()) throw new TypeError('the readable side is closed or errored');
    try {
      readable.enqueue(chunk);
    } catch (error) {
      this.failWritable(error);
      throw readable.error;
    }
    if (!readable.wantsPull() && !this.backpressure) this.setBackpressure(true);
  }

  fail(error) {
    this.readable.fail(error);
    this.failWritable(error);
  }

  failWritable(error) {
    this.forget();
    this.writable.fail(error);
    if (this.backpressure) this.setBackpressure(false);
  }

  terminate() {
    if (this.readable.canEnqueue()) this.readable.close();
    this.failWritable(new TypeError('the stream was terminated'));
  }

  perform(chunk) {
    let result;
    try {
      if (this.transform === undefined) this.enqueue(chunk);
      else result = streamInvoke(this.transform, this.transformer, chunk, this.controller);
    } catch (error) {
      result = rejectedWith(error);
    }
    if (!isObject(result)) return undefined;
    return streamThen.call(resolvedWith(result), undefined, (error) => {
      this.fail(error);
      throw error;
    });
  }

  // The callbacks of the two cores, called with `this`.

  sinkWrite(chunk) {
    if (!this.backpressure) return this.perform(chunk);
    this.holding = true;
    this.held = chunk;
    return streamLater;
  }

  writeHeld() {
    const { held, writable } = this;
    this.holding = false;
    this.held = undefined;
    let result;
    if (writable.state === STREAM_ERRORING) result = rejectedWith(writable.error);
    else result = this.perform(held);
    whenSettled(result, writable.onWritten, writable.onWriteFailed);
  }

  sinkClose() {
    return this.end(this.flush, this.controller, () => {
      if (this.readable.state === STREAM_ERRORED) throw this.readable.error;
      if (this.readable.canEnqueue()) this.readable.close();
    }, (error) => this.readable.fail(error));
  }

  sinkAbort(reason) {
    return this.end(this.cancel, reason, () => {
      if (this.readable.state === STREAM_ERRORED) throw this.readable.error;
      this.readable.fail(reason);
    }, (error) => this.readable.fail(error));
  }

  sourcePull() {
    this.waiting = true;
    this.setBackpressure(false);
    return streamLater;
  }

  sourceCancel(reason) {
    return this.end(this.cancel, reason, () => {
      if (this.writable.state === STREAM_ERRORED) throw this.writable.error;
      this.failOther(reason);
    }, (error) => this.failOther(error));
  }

  failOther(error) {
    this.writable.fail(error);
    if (this.backpressure) this.setBackpressure(false);
  }

  // Runs a last callback once; a second ending gets the outcome of the first. ok may throw the outcome.
  end(callback, argument, ok, failed) {
    if (this.finish !== null) return this.finish.promise;
    const { resolve, reject, promise } = this.finish = newDeferred();
    const result = promiseCall(callback, this.transformer, [argument]);
    this.forget();
    streamThen.call(result, () => {
      try {
        ok();
        resolve();
      } catch (error) {
        reject(error);
      }
    }, (error) => {
      failed(error);
      reject(error);
    });
    return promise;
  }
}

class TransformStream {
  constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
    if (transformer !== undefined && !isObject(transformer)) throw new TypeError('transformer must be an object');
    writableStrategy = streamStrategy(writableStrategy);
    readableStrategy = streamStrategy(readableStrategy);
    const given = transformer === undefined ? emptyDict : transformer;
    const cancel = streamCallback(given.cancel, 'transformer.cancel');
    const flush = streamCallback(given.flush, 'transformer.flush');
    if (given.readableType !== undefined) throw new RangeError('transformer.readableType is reserved');
    const start = streamCallback(given.start, 'transformer.start');
    const transform = streamCallback(given.transform, 'transformer.transform');
    if (given.writableType !== undefined) throw new RangeError('transformer.writableType is reserved');
    const readableMark = streamHighWaterMark(readableStrategy, 0);
    const writableMark = streamHighWaterMark(writableStrategy, 1);
    const core = new TransformCore(transformer, transform, flush, cancel);
    transformSetUp(this, core, writableMark, writableStrategy.size, readableMark, readableStrategy.size);
    transformBegin(core, start === undefined ? undefined : streamInvoke(start, transformer, core.controller));
  }
  get readable() { return streamCore(this, kTransform).readable.facade; }
  get writable() { return streamCore(this, kTransform).writable.facade; }
}

function transformSetUp(stream, core, writableMark, writableSize, readableMark, readableSize) {
  core.writable = new WritableCore(core, core.sinkWrite, core.sinkClose, core.sinkAbort, writableMark, writableSize);
  core.readable = new DefaultReadable(core, core.sourcePull, core.sourceCancel, readableMark, readableSize);
  wrapWritable(core.writable);
  wrapReadable(core.readable);
  core.controller = streamObject(TransformStreamDefaultController.prototype);
  core.controller[kTransformController] = core;
  stream[kTransform] = core;
}

function transformBegin(core, result) {
  let started;
  if (isObject(result)) {
    const resolvers = newDeferred();
    resolvers.resolve(result);
    started = resolvers.promise;
    markHandled(started);
  }
  // The standard makes a promise for the start, and of that one for each side: the sides start two microtasks late.
  streamMicrotask(() => streamMicrotask(() => {
    core.writable.begin(started);
    core.readable.begin(started);
  }));
}

// A TransformStream for the runtime: transformer has transform(chunk, controller) and may have flush(controller) and
// cancel(reason).
function newTransformStream(transformer) {
  const stream = streamObject(TransformStream.prototype);
  const core = new TransformCore(transformer, transformer.transform, transformer.flush, transformer.cancel);
  transformSetUp(stream, core, 1, undefined, 0, undefined);
  transformBegin(core, undefined);
  return stream;
}
webInterface(TransformStream);

class TransformStreamDefaultController {
  constructor() { throw streamIllegal(); }
  get desiredSize() { return streamCore(this, kTransformController).readable.desiredSize(); }
  enqueue(chunk = undefined) { streamCore(this, kTransformController).enqueue(chunk); }
  error(reason = undefined) { streamCore(this, kTransformController).fail(reason); }
  terminate() { streamCore(this, kTransformController).terminate(); }
}
webInterface(TransformStreamDefaultController);
