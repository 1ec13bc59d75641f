// WritableStream, its writer and its controller.
//
// A write request is any object with done(), fail(error) and `next`; its chunk is in the queue at the same place.

const streamCloseMark = Symbol('close'); // stands in the queue for the end

class WritableCore {
  facade = null;
  controller = null;
  state = STREAM_OPEN;
  error = undefined;
  writer = null;
  sink = null; // `this` of the callbacks
  write = undefined; // undefined: none
  close = undefined;
  abort = undefined;
  highWaterMark = 0;
  size = undefined; // undefined: every chunk counts 1
  queue = new StreamQueue();
  total = 0;
  started = false;
  requests = new StreamQueue();
  inFlight = null; // the request that the sink works on
  closeRequest = null; // resolvers, then moved to closeInFlight
  closeInFlight = null;
  pendingAbort = null; // { resolvers, reason, late: the stream was erroring already }
  backpressure = false;
  aborted = false; // with abortReason: what controller.signal says, made when somebody looks
  abortReason = undefined;
  signal = null;
  onWritten = null; // made by the first write
  onWriteFailed = null;

  constructor(sink, write, close, abort, highWaterMark, size) {
    this.sink = sink;
    this.write = write;
    this.close = close;
    this.abort = abort;
    this.highWaterMark = highWaterMark;
    this.size = size;
    this.backpressure = highWaterMark <= 0;
  }

  // Ends the set-up with what sink.start returned.
  begin(result) {
    whenSettled(result, () => {
      this.started = true;
      this.advance();
    }, (error) => {
      this.started = true;
      this.reject(error);
    });
  }

  closeQueued() {
    return this.closeRequest !== null || this.closeInFlight !== null;
  }

  desiredSize() {
    if (this.state === STREAM_ERRORED || this.state === STREAM_ERRORING) return null;
    return this.state === STREAM_CLOSED ? 0 : this.highWaterMark - this.total;
  }

  getSignal() {
    if (this.signal === null) {
      this.signal = makeSignal();
      if (this.aborted) signalAbort(this.signal, this.abortReason);
    }
    return this.signal;
  }

  // WritableStreamAbort.
  abortWith(reason) {
    if (this.state === STREAM_CLOSED || this.state === STREAM_ERRORED) return resolvedWith(undefined);
    if (!this.aborted) {
      this.aborted = true;
      this.abortReason = reason;
      if (this.signal !== null) signalAbort(this.signal, reason);
    }
    // The signal's listeners may have changed everything.
    if (this.state === STREAM_CLOSED || this.state === STREAM_ERRORED) return resolvedWith(undefined);
    if (this.pendingAbort !== null) return this.pendingAbort.resolvers.promise;
    const late = this.state === STREAM_ERRORING;
    const resolvers = newDeferred();
    this.pendingAbort = { resolvers, reason: late ? undefined : reason, late };
    if (!late) this.startErroring(reason);
    return resolvers.promise;
  }

  // WritableStreamClose; the caller has asked closeQueued.
  closeWith() {
    if (this.state === STREAM_CLOSED || this.state === STREAM_ERRORED) {
      return rejectedWith(new TypeError('the stream is closed or errored'));
    }
    this.closeRequest = newDeferred();
    const { promise } = this.closeRequest;
    if (this.writer !== null && this.backpressure && this.state === STREAM_OPEN) this.writer.ready.resolve();
    this.queue.push({ value: streamCloseMark, size: 0, next: null });
    this.advance();
    return promise;
  }

  // WritableStreamDefaultWriterCloseWithErrorPropagation.
  closeOrPropagate() {
    if (this.closeQueued() || this.state === STREAM_CLOSED) return resolvedWith(undefined);
    return this.state === STREAM_ERRORED ? rejectedWith(this.error) : this.closeWith();
  }

  // The size of a chunk by the strategy. User code: the stream may be another afterwards.
  measure(chunk) {
    if (this.size === undefined) return 1;
    try {
      const { size } = this;
      return +size(chunk);
    } catch (error) {
      this.fail(error);
      return 1;
    }
  }

  // Queues a chunk of a measured size; undefined or the reason why that is not possible. writer is the one that writes.
  enqueue(chunk, size, request, writer) {
    if (this.writer !== writer) return new TypeError('the writer was released');
    if (this.state === STREAM_ERRORED) return this.error;
    if (this.closeQueued() || this.state === STREAM_CLOSED) return new TypeError('the stream is closed or closing');
    if (this.state === STREAM_ERRORING) return this.error;
    this.requests.push(request);
    if (!(size >= 0 && size < Infinity)) {
      this.fail(new RangeError('the size of a chunk must be a finite number that is not negative'));
      return undefined;
    }
    this.queue.push({ value: chunk, size, next: null });
    this.total += size;
    this.updateBackpressure();
    this.advance();
    return undefined;
  }

  updateBackpressure() {
    if (this.closeQueued() || this.state !== STREAM_OPEN) return;
    const backpressure = this.highWaterMark - this.total <= 0;
    if (backpressure === this.backpressure) return;
    this.backpressure = backpressure;
    if (this.writer === null) return;
    if (backpressure) this.writer.ready.renew();
    else this.writer.ready.resolve();
  }

  // Starts the next operation of the sink, if none is under way.
  advance() {
    if (!this.started || this.inFlight !== null) return;
    if (this.state === STREAM_ERRORING) {
      this.finishErroring();
      return;
    }
    const node = this.queue.head;
    if (node === null) return;
    if (node.value === streamCloseMark) this.processClose();
    else this.processWrite(node.value);
  }

  processWrite(chunk) {
    this.inFlight = this.requests.shift();
    if (this.onWritten === null) {
      this.onWritten = () => this.written();
      this.onWriteFailed = (error) => this.writeFailed(error);
    }
    let result;
    if (this.write !== undefined) {
      try {
        result = streamInvoke(this.write, this.sink, chunk, this.controller);
      } catch (error) {
        streamMicrotask(() => this.writeFailed(error));
        return;
      }
    }
    whenSettled(result, this.onWritten, this.onWriteFailed);
  }

  written() {
    const request = this.inFlight;
    this.inFlight = null;
    request.done();
    // Errors empty the queue only when nothing is in flight, so the chunk is still its head.
    if ((this.total -= this.queue.shift().size) < 0) this.total = 0;
    this.updateBackpressure();
    this.advance();
  }

  writeFailed(error) {
    if (this.state === STREAM_OPEN) this.forget();
    const request = this.inFlight;
    this.inFlight = null;
    request.fail(error);
    this.reject(error);
  }

  processClose() {
    this.closeInFlight = this.closeRequest;
    this.closeRequest = null;
    this.queue.shift();
    const { close, sink } = this;
    this.forget();
    streamThen.call(promiseCall(close, sink, []), () => this.closed(), (error) => this.closeFailed(error));
  }

  closed() {
    const { closeInFlight, pendingAbort } = this;
    this.closeInFlight = null;
    closeInFlight.resolve();
    if (this.state === STREAM_ERRORING) {
      this.error = undefined;
      if (pendingAbort !== null) pendingAbort.resolvers.resolve();
      this.pendingAbort = null;
    }
    this.state = STREAM_CLOSED;
    if (this.writer !== null) this.writer.closed.resolve();
  }

  closeFailed(error) {
    const { closeInFlight, pendingAbort } = this;
    this.closeInFlight = null;
    closeInFlight.reject(error);
    if (pendingAbort !== null) {
      this.pendingAbort = null;
      pendingAbort.resolvers.reject(error);
    }
    this.reject(error);
  }

  // The sink will not be called any more.
  forget() {
    this.write = this.close = this.abort = this.size = undefined;
    this.sink = null;
  }

  // WritableStreamDefaultControllerErrorIfNeeded.
  fail(error) {
    if (this.state !== STREAM_OPEN) return;
    this.forget();
    this.startErroring(error);
  }

  // WritableStreamDealWithRejection.
  reject(error) {
    if (this.state === STREAM_OPEN) this.startErroring(error);
    else this.finishErroring();
  }

  startErroring(reason) {
    this.state = STREAM_ERRORING;
    this.error = reason;
    if (this.writer !== null) this.writer.ready.reject(reason);
    if (this.started && this.inFlight === null && this.closeInFlight === null) this.finishErroring();
  }

  finishErroring() {
    this.state = STREAM_ERRORED;
    this.queue.take();
    this.total = 0;
    for (let r = this.requests.take(); r !== null; r = r.next) r.fail(this.error);
    const { pendingAbort } = this;
    if (pendingAbort === null) {
      this.rejectClosed();
      return;
    }
    this.pendingAbort = null;
    const { resolvers } = pendingAbort;
    if (pendingAbort.late) {
      resolvers.reject(this.error);
      this.rejectClosed();
      return;
    }
    const result = promiseCall(this.abort, this.sink, [pendingAbort.reason]);
    this.forget();
    streamThen.call(result, () => {
      resolvers.resolve();
      this.rejectClosed();
    }, (error) => {
      resolvers.reject(error);
      this.rejectClosed();
    });
  }

  rejectClosed() {
    if (this.closeRequest !== null) {
      this.closeRequest.reject(this.error);
      this.closeRequest = null;
    }
    // A writer that came after the error has its rejection already.
    if (this.writer !== null && this.writer.closed.settled === 0) this.writer.closed.reject(this.error);
  }
}

function wrapWritable(core) {
  const stream = streamObject(WritableStream.prototype);
  stream[kWritable] = core;
  core.facade = stream;
  return stream;
}

class WritableStream {
  constructor(underlyingSink = undefined, strategy = undefined) {
    if (underlyingSink !== undefined && !isObject(underlyingSink)) throw new TypeError('underlyingSink must be an object');
    strategy = streamStrategy(strategy);
    const sink = underlyingSink === undefined ? emptyDict : underlyingSink;
    const abort = streamCallback(sink.abort, 'underlyingSink.abort');
    const close = streamCallback(sink.close, 'underlyingSink.close');
    const start = streamCallback(sink.start, 'underlyingSink.start');
    if (sink.type !== undefined) throw new RangeError('underlyingSink.type is reserved');
    const write = streamCallback(sink.write, 'underlyingSink.write');
    const core = new WritableCore(underlyingSink, write, close, abort, streamHighWaterMark(strategy, 1), strategy.size);
    core.controller = streamObject(WritableStreamDefaultController.prototype);
    core.controller[kWritableController] = core;
    core.facade = this;
    this[kWritable] = core;
    core.begin(start === undefined ? undefined : streamInvoke(start, underlyingSink, core.controller));
  }
  get locked() { return streamCore(this, kWritable).writer !== null; }
  abort(reason = undefined) {
    try {
      const core = streamCore(this, kWritable);
      if (core.writer !== null) throw new TypeError('the stream is locked to a writer');
      return core.abortWith(reason);
    } catch (error) {
      return rejectedWith(error);
    }
  }
  close() {
    try {
      const core = streamCore(this, kWritable);
      if (core.writer !== null) throw new TypeError('the stream is locked to a writer');
      if (core.closeQueued()) throw new TypeError('the stream is closing');
      return core.closeWith();
    } catch (error) {
      return rejectedWith(error);
    }
  }
  getWriter() {
    streamCore(this, kWritable);
    return new WritableStreamDefaultWriter(this);
  }
}
webInterface(WritableStream);

class WritableStreamDefaultController {
  constructor() { throw streamIllegal(); }
  get signal() { return streamCore(this, kWritableController).getSignal(); }
  error(e = undefined) { streamCore(this, kWritableController).fail(e); }
}
webInterface(WritableStreamDefaultController);
