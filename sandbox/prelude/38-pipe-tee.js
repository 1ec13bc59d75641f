// pipeTo and tee: readers that the runtime itself drives.

// One pipe. It is the read request of its own reader; reads are never two at a time.
class Pipe {
  source = null;
  dest = null;
  options = null;
  reader = null;
  writer = null;
  result = newDeferred();
  next = null;
  held = undefined; // a chunk that was read and not yet written
  holding = false;
  writes = 0; // under way
  ending = false;
  whenWritten = null; // goes on with the end once all that was read is written
  onStep = () => this.step();
  onChunk = () => this.writeHeld();
  onWritten = () => this.written();
  onAbort = null;

  constructor(source, dest, options) {
    this.source = source;
    this.dest = dest;
    this.options = options;
    this.reader = new ReaderCore(source, false);
    this.writer = new WriterCore(dest);
    source.disturbed = true;
  }

  start() {
    const { source, dest, options: { signal } } = this;
    if (signal !== undefined) {
      this.onAbort = () => this.aborted();
      if (signal[kSignal].aborted) {
        this.aborted();
        return;
      }
      signalOnAbort(signal, this.onAbort);
    }
    if (source.state === STREAM_ERRORED) this.sourceErrored(source.error);
    else if (dest.state === STREAM_ERRORED) this.destErrored(dest.error);
    else if (source.state === STREAM_CLOSED) this.sourceClosed();
    else if (dest.closeQueued() || dest.state === STREAM_CLOSED) this.destClosed();
    else {
      streamThen.call(this.reader.closed.get(), () => this.sourceClosed(), (error) => this.sourceErrored(error));
      streamThen.call(this.writer.closed.get(), undefined, (error) => this.destErrored(error));
      this.step();
    }
  }

  step() {
    if (this.ending) return;
    const { ready } = this.writer;
    if (ready.settled === 0) ready.watcher = this.onStep;
    else if (ready.settled === 1) this.reader.read(this);
  }

  // As a read request. The end and errors are seen at reader.closed.
  chunk(value) {
    this.next = null;
    this.held = value;
    this.holding = true;
    // Whoever enqueues must not find the sink at work before enqueue returns.
    streamMicrotask(this.onChunk);
  }
  close() {}
  fail() {}

  writeHeld() {
    const { held } = this;
    this.held = undefined;
    this.holding = false;
    this.writes++;
    const refused = this.writer.write(held, { done: this.onWritten, fail: this.onWritten, next: null });
    if (refused !== undefined) this.written();
    this.step();
  }

  written() {
    this.writes--;
    this.checkWritten();
  }

  checkWritten() {
    if (this.whenWritten === null || this.holding || this.writes > 0) return;
    streamMicrotask(this.whenWritten);
    this.whenWritten = null;
  }

  sourceErrored(error) {
    this.end(this.options.preventAbort ? null : () => this.dest.abortWith(error), true, error);
  }
  destErrored(error) {
    this.end(this.options.preventCancel ? null : () => this.source.cancelWith(error), true, error);
  }
  sourceClosed() {
    this.end(this.options.preventClose ? null : () => this.dest.closeOrPropagate(), false, undefined);
  }
  destClosed() {
    this.destErrored(new TypeError('the destination is closed or closing'));
  }

  aborted() {
    const { source, dest, options } = this;
    const { reason } = options.signal[kSignal];
    this.end(() => {
      const actions = [];
      if (!options.preventAbort) actions.push(dest.state === STREAM_OPEN ? dest.abortWith(reason) : undefined);
      if (!options.preventCancel) actions.push(source.state === STREAM_OPEN ? source.cancelWith(reason) : undefined);
      return streamAll.call(StreamPromise, actions);
    }, true, reason);
  }

  // Shuts down, with an action or without; failed says that the pipe fails with error.
  end(action, failed, error) {
    if (this.ending) return;
    this.ending = true;
    const act = () => {
      if (action === null) this.finalize(failed, error);
      else streamThen.call(action(), () => this.finalize(failed, error), (newError) => this.finalize(true, newError));
    };
    if (this.dest.state === STREAM_OPEN && !this.dest.closeQueued()) {
      this.whenWritten = act;
      this.checkWritten();
    } else {
      act();
    }
  }

  finalize(failed, error) {
    this.writer.release();
    this.reader.release();
    if (this.onAbort !== null) signalForget(this.options.signal, this.onAbort);
    if (failed) this.result.reject(error);
    else this.result.resolve();
  }
}

// Neither stream is locked. The promise settles as that of pipeTo.
function pipeStream(source, dest, options) {
  const pipe = new Pipe(source, dest, options);
  pipe.start();
  return pipe.result.promise;
}

// What both kinds of tee share: two branches, of which each may be cancelled; the source is cancelled with the second.
class Tee {
  source = null;
  reader = null;
  reading = false;
  cancelled = [false, false];
  reasons = [undefined, undefined];
  done = newDeferred(); // what the cancel of a branch returns
  branches = null;
  next = null;

  constructor(source) {
    this.source = source;
    this.reader = acquireDefault(source);
  }

  watch(reader) {
    streamThen.call(reader.closed.get(), undefined, (error) => {
      if (reader !== this.reader) return;
      this.branches[0].fail(error);
      this.branches[1].fail(error);
      this.over();
    });
  }

  over() {
    if (!this.cancelled[0] || !this.cancelled[1]) this.done.resolve();
  }

  cancelBranch(i, reason) {
    this.cancelled[i] = true;
    this.reasons[i] = reason;
    if (this.cancelled[1 - i]) this.done.resolve(this.source.cancelWith([this.reasons[0], this.reasons[1]]));
    return this.done.promise;
  }

  fail() { this.reading = false; }
}

// Callbacks of the branches, called with `this` the tee.
function teeCancelFirst(reason) { return this.cancelBranch(0, reason); }
function teeCancelSecond(reason) { return this.cancelBranch(1, reason); }
function teePullFirst() { this.pull(0); }
function teePullSecond() { this.pull(1); }

class DefaultTee extends Tee {
  again = false;

  pull() {
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = true;
    this.next = null;
    this.reader.read(this);
  }

  chunk(value) {
    // In a microtask, so that an error of the source still comes before the chunk.
    streamMicrotask(() => {
      this.again = false;
      for (let i = 0; i < 2; i++) {
        if (!this.cancelled[i] && this.branches[i].canEnqueue()) teeTry(() => this.branches[i].enqueue(value));
      }
      this.reading = false;
      if (this.again) this.pull();
    });
  }

  close() {
    this.reading = false;
    for (let i = 0; i < 2; i++) {
      if (!this.cancelled[i] && this.branches[i].canEnqueue()) this.branches[i].close();
    }
    this.over();
  }
}

// A branch that refuses a chunk has failed by itself; that is no matter of the other one.
function teeTry(step) {
  try {
    step();
  } catch {
    return;
  }
}

function teeDefault(source, Kind = DefaultTee) {
  const tee = new Kind(source);
  tee.branches = [
    new DefaultReadable(tee, teePullFirst, teeCancelFirst, 1, undefined),
    new DefaultReadable(tee, teePullSecond, teeCancelSecond, 1, undefined),
  ];
  tee.watch(tee.reader);
  for (const branch of tee.branches) branch.begin(undefined);
  return tee.branches;
}

// The tee of a byte stream changes between a default reader and a BYOB reader as its branches ask for it.
class ByteTee extends Tee {
  again = [false, false];

  pull(i) {
    if (this.reading) {
      this.again[i] = true;
      return;
    }
    this.reading = true;
    const request = this.branches[i].getRequest();
    if (request === null) {
      this.use(false);
      this.reader.read(new ByteTeeRequest(this));
    } else {
      this.use(true);
      readInto(this.reader, streamView(request[kByobRequest].view), 1, new ByteTeeIntoRequest(this, i));
    }
  }

  use(byob) {
    if (this.reader.byob === byob) return;
    const { reader } = this;
    this.reader = null; // its rejection is no error of the source
    reader.release();
    this.reader = new ReaderCore(this.source, byob);
    this.watch(this.reader);
  }

  // A copy for the other branch; null if there is no memory for it, and then all is over.
  copy(chunk) {
    try {
      return new StreamBytes(new StreamBytes(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    } catch (error) {
      this.branches[0].fail(error);
      this.branches[1].fail(error);
      this.done.resolve(this.source.cancelWith(error));
      return null;
    }
  }

  give(i, chunk) {
    if (!this.cancelled[i] && this.branches[i].canEnqueue()) this.branches[i].enqueue(streamView(chunk));
  }

  goOn() {
    this.reading = false;
    if (this.again[0]) this.pull(0);
    else if (this.again[1]) this.pull(1);
  }

  endBranch(i, respond) {
    if (this.cancelled[i]) return;
    this.branches[i].close();
    if (respond && this.branches[i].wishes.head !== null) this.branches[i].respond(0);
  }
}

class ByteTeeRequest {
  tee = null;
  next = null;

  constructor(tee) {
    this.tee = tee;
  }
  chunk(value) {
    const { tee } = this;
    streamMicrotask(() => {
      tee.again[0] = tee.again[1] = false;
      let second = value;
      if (!tee.cancelled[0] && !tee.cancelled[1]) {
        second = tee.copy(value);
        if (second === null) return;
      }
      tee.give(0, value);
      tee.give(1, second);
      tee.goOn();
    });
  }
  close() {
    const { tee } = this;
    tee.reading = false;
    tee.endBranch(0, true);
    tee.endBranch(1, true);
    tee.over();
  }
  fail() { this.tee.reading = false; }
}

// The read into the buffer that a reader of branch i brought.
class ByteTeeIntoRequest {
  tee = null;
  i = 0;
  next = null;

  constructor(tee, i) {
    this.tee = tee;
    this.i = i;
  }
  chunk(view) {
    const { tee, i } = this;
    streamMicrotask(() => {
      tee.again[0] = tee.again[1] = false;
      const copy = tee.cancelled[1 - i] ? undefined : tee.copy(view);
      if (copy === null) return;
      if (!tee.cancelled[i]) tee.branches[i].respondWith(streamView(view));
      if (copy !== undefined) tee.give(1 - i, copy);
      tee.goOn();
    });
  }
  close(view) {
    const { tee, i } = this;
    tee.reading = false;
    tee.endBranch(i, false);
    tee.endBranch(1 - i, view !== undefined);
    if (view !== undefined && !tee.cancelled[i]) tee.branches[i].respondWith(streamView(view));
    tee.over();
  }
  fail() { this.tee.reading = false; }
}

function teeBytes(source) {
  const tee = new ByteTee(source);
  tee.branches = [
    new ByteReadable(tee, teePullFirst, teeCancelFirst, 0, undefined),
    new ByteReadable(tee, teePullSecond, teeCancelSecond, 0, undefined),
  ];
  tee.watch(tee.reader);
  for (const branch of tee.branches) branch.begin(undefined);
  return tee.branches;
}
