// Ground of the streams (Streams standard): promises, queues, strategies.
//
//	31  ReadableStream, what both kinds of it share     35, 36  WritableStream, its writer
//	32  the default controller, from()                      37  TransformStream
//	33  the byte controller                                 38  pipeTo and tee
//	34  readers and asynchronous iteration                  39  what the runtime itself needs
//
// Every object that users see is a facade with one symbol-keyed slot, the brand, that holds a core: a plain object that
// only these files see. A core is stream and controller in one. A facade that nobody asks for is not made, nor is a
// promise. Cores declare their fields: defining a field costs half of assigning a new one, and does not call a setter
// that users put on Object.prototype. A step that the standard puts on an already resolved promise is a microtask here:
// the same moment, for a tenth of the cost.

const StreamPromise = Promise;
const streamResolve = Promise.resolve;
const streamReject = Promise.reject;
const streamWithResolvers = Promise.withResolvers;
// Calls fn(self, ...): as fn.call, but users cannot replace it.
const streamInvoke = coreUncurry(Function.prototype.call);
const streamThen = Promise.prototype.then;
const streamAll = Promise.all;
const streamMicrotask = queueMicrotask;
const streamObject = Object.create;
const streamNothing = () => undefined;

// States of a stream. A readable one is never STREAM_ERRORING.
const STREAM_OPEN = 0;
const STREAM_CLOSED = 1;
const STREAM_ERRORED = 2;
const STREAM_ERRORING = 3;

const kReadable = coreSlot('ReadableStream');
const kDefaultController = coreSlot('ReadableStreamDefaultController');
const kByteController = coreSlot('ReadableByteStreamController');
const kByobRequest = coreSlot('ReadableStreamBYOBRequest');
const kDefaultReader = coreSlot('ReadableStreamDefaultReader');
const kByobReader = coreSlot('ReadableStreamBYOBReader');
const kWritable = coreSlot('WritableStream');
const kWriter = coreSlot('WritableStreamDefaultWriter');
const kWritableController = coreSlot('WritableStreamDefaultController');
const kTransform = coreSlot('TransformStream');
const kTransformController = coreSlot('TransformStreamDefaultController');
const kIterator = coreSlot('ReadableStreamAsyncIterator');

// The core behind a facade; a TypeError for anything else.
function streamCore(value, brand) {
  const core = value?.[brand];
  if (core === undefined || !coreHasOwn(value, brand)) throw new TypeError(`Illegal invocation: not a ${brand.description}`);
  return core;
}

function streamIllegal() {
  return new TypeError('Illegal constructor');
}

function resolvedWith(value) {
  return streamResolve.call(StreamPromise, value);
}

function rejectedWith(reason) {
  return streamReject.call(StreamPromise, reason);
}

function newDeferred() {
  return streamWithResolvers.call(StreamPromise);
}

// Nobody has to handle this promise's rejection.
function markHandled(promise) {
  streamThen.call(promise, undefined, streamNothing);
}

function isObject(value) {
  return typeof value === 'object' ? value !== null : typeof value === 'function';
}

// What a callback of our own returns when it will say itself that it is done, without a promise.
const streamLater = Symbol('later');

// Runs ok or fail(reason) when what a callback returned has settled, never at once.
function whenSettled(result, ok, fail) {
  if (isObject(result)) streamThen.call(resolvedWith(result), ok, fail);
  else if (result !== streamLater) streamMicrotask(ok);
}

// The result of a callback as a promise, a throw as a rejection. fn undefined stands for one that does nothing. WebIDL
// makes a new promise even of a promise: what the runtime does at the same time must come first.
function promiseCall(fn, self, args) {
  if (fn === undefined) return resolvedWith(undefined);
  try {
    const result = coreApply(fn, self, args);
    return new StreamPromise((resolve) => resolve(result));
  } catch (error) {
    return rejectedWith(error);
  }
}

// A promise that exists only once somebody has looked at it. Its rejection never counts as unhandled.
class LazyPromise {
  settled = 0; // 0 pending, 1 resolved with undefined, 2 rejected
  reason = undefined;
  made = null; // { promise, resolve, reject }
  watcher = null; // runs in a microtask after resolve

  get() {
    if (this.made !== null) return this.made.promise;
    const made = this.made = newDeferred();
    if (this.settled === 1) made.resolve();
    else if (this.settled === 2) this.refuse(made);
    return made.promise;
  }
  refuse(made) {
    markHandled(made.promise);
    made.reject(this.reason);
  }
  resolve() {
    if (this.settled !== 0) return;
    this.settled = 1;
    if (this.made !== null) this.made.resolve();
    if (this.watcher !== null) {
      streamMicrotask(this.watcher);
      this.watcher = null;
    }
  }
  // Rejects it if it is pending, else puts a rejected one in its place.
  reject(reason) {
    if (this.settled !== 0) this.made = null;
    this.settled = 2;
    this.reason = reason;
    if (this.made !== null) this.refuse(this.made);
  }
  renew() {
    this.settled = 0;
    this.made = null;
  }
}

// Queues are linked lists of nodes with a field `next`; the owner keeps their total size itself.
class StreamQueue {
  head = null;
  tail = null;

  push(node) {
    if (this.head === null) this.head = node;
    else this.tail.next = node;
    this.tail = node;
  }
  shift() {
    const node = this.head;
    this.head = node.next;
    return node;
  }
  // Empties the queue and returns its first node: a request may ask for more while the old ones are answered.
  take() {
    const node = this.head;
    this.head = null;
    return node;
  }
}

function streamCallback(value, what) {
  if (value !== undefined && typeof value !== 'function') throw new TypeError(`${what} is not a function`);
  return value;
}

const defaultStrategy = { highWaterMark: undefined, size: undefined };

// Reads a QueuingStrategy in the order that WebIDL prescribes.
function streamStrategy(value) {
  if (value === undefined) return defaultStrategy;
  const dict = webDict(value, 'strategy');
  let { highWaterMark } = dict;
  if (highWaterMark !== undefined) highWaterMark = +highWaterMark;
  return { highWaterMark, size: streamCallback(dict.size, 'strategy.size') };
}

function streamHighWaterMark(strategy, otherwise) {
  const { highWaterMark } = strategy;
  if (highWaterMark === undefined) return otherwise;
  if (!(highWaterMark >= 0)) throw new RangeError('highWaterMark must be a number that is not negative');
  return highWaterMark;
}

function checkedSize(size) {
  if (!(size >= 0 && size < Infinity)) throw new RangeError('the size of a chunk must be a finite number that is not negative');
  return size;
}

const kCountMark = coreSlot('CountQueuingStrategy');
const kByteMark = coreSlot('ByteLengthQueuingStrategy');
const { size: countSize } = { size() { return 1; } };
const { size: byteLengthSize } = { size(chunk) { return chunk.byteLength; } };

function strategyMark(init) {
  const { highWaterMark } = webDict(init, 'init');
  if (highWaterMark === undefined) throw new TypeError('init.highWaterMark is required');
  return +highWaterMark;
}

class CountQueuingStrategy {
  constructor(init) {
    webArguments(arguments.length, 1, 'CountQueuingStrategy');
    this[kCountMark] = strategyMark(init);
  }
  get highWaterMark() { return streamCore(this, kCountMark); }
  get size() { streamCore(this, kCountMark); return countSize; }
}

class ByteLengthQueuingStrategy {
  constructor(init) {
    webArguments(arguments.length, 1, 'ByteLengthQueuingStrategy');
    this[kByteMark] = strategyMark(init);
  }
  get highWaterMark() { return streamCore(this, kByteMark); }
  get size() { streamCore(this, kByteMark); return byteLengthSize; }
}
Object.defineProperty(byteLengthSize, 'length', { value: 1 });

webInterface(CountQueuingStrategy);
webInterface(ByteLengthQueuingStrategy);
