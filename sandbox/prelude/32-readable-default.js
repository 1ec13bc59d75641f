// The default controller: a queue of values of any kind, each with the size that the strategy gives it.

class DefaultReadable extends ReadableCore {
  bytes = false;
  size = undefined; // undefined: every chunk counts 1

  constructor(source, pull, cancel, highWaterMark, size) {
    super(source, pull, cancel, highWaterMark);
    this.size = size;
  }

  enqueue(chunk) {
    const { reader } = this;
    if (reader !== null && reader.requests.head !== null) {
      reader.requests.shift().chunk(chunk);
    } else {
      let size = 1;
      if (this.size !== undefined) {
        try {
          const measure = this.size;
          size = checkedSize(+measure(chunk));
        } catch (error) {
          this.fail(error);
          throw error;
        }
      }
      this.queue.push({ value: chunk, size, next: null });
      this.total += size;
    }
    if (this.pull !== undefined) this.pullIfNeeded();
  }

  close() {
    this.closing = true;
    if (this.queue.head !== null) return;
    this.forget();
    this.finish();
  }

  forget() {
    super.forget();
    this.size = undefined;
  }

  // Takes the first chunk; there is one.
  take() {
    const node = this.queue.shift();
    // Sizes may be fractions: rounding must not leave less than nothing.
    if ((this.total -= node.size) < 0) this.total = 0;
    if (this.closing && this.queue.head === null) {
      this.forget();
      this.finish();
    } else if (this.pull !== undefined) {
      this.pullIfNeeded();
    }
    return node.value;
  }

  // Answers one read request now or later; the stream is open.
  serve(request) {
    if (this.queue.head !== null) {
      request.chunk(this.take());
    } else {
      this.reader.requests.push(request);
      this.pullIfNeeded();
    }
  }

  released() {}
}

class ReadableStreamDefaultController {
  constructor() { throw streamIllegal(); }
  get desiredSize() { return streamCore(this, kDefaultController).desiredSize(); }
  close() {
    const core = streamCore(this, kDefaultController);
    if (!core.canEnqueue()) throw new TypeError('the stream is closed or errored');
    core.close();
  }
  enqueue(chunk = undefined) {
    const core = streamCore(this, kDefaultController);
    if (core.state !== STREAM_OPEN || core.closing) throw new TypeError('the stream is closed or errored');
    core.enqueue(chunk);
  }
  error(e = undefined) { streamCore(this, kDefaultController).fail(e); }
}
webInterface(ReadableStreamDefaultController);

// The source behind ReadableStream.from: methods of the object that is `this` of the callbacks.
class IteratorSource {
  sync = false;
  iterator = null;
  next = undefined;
  core = null;

  constructor(iterable) {
    let method = iterable[Symbol.asyncIterator];
    this.sync = method === undefined || method === null;
    if (this.sync) method = iterable[Symbol.iterator];
    if (typeof method !== 'function') throw new TypeError('the value is not iterable');
    const iterator = streamInvoke(method, iterable);
    if (!isObject(iterator)) throw new TypeError('the iterator is not an object');
    this.iterator = iterator;
    this.next = iterator.next;
  }

  pull() {
    const result = streamInvoke(this.next, this.iterator);
    if (!this.sync) return streamThen.call(resolvedWith(result), (r) => this.give(r));
    if (!isObject(result)) throw new TypeError('the iterator result is not an object');
    if (result.done) return streamThen.call(resolvedWith(result.value), () => this.core.close());
    // As `for await` over a synchronous iterator: values are awaited, one that rejects ends the iterator.
    return streamThen.call(promiseCall(() => result.value, undefined, []), (value) => this.core.enqueue(value), (error) => {
      const { return: end } = this.iterator;
      if (end !== undefined && end !== null) streamInvoke(end, this.iterator);
      throw error;
    });
  }

  give(result) {
    if (!isObject(result)) throw new TypeError('the iterator result is not an object');
    if (result.done) this.core.close();
    else this.core.enqueue(result.value);
  }

  cancel(reason) {
    const { return: end } = this.iterator;
    if (end === undefined || end === null) return undefined;
    if (typeof end !== 'function') throw new TypeError('the return of an iterator is not a function');
    const result = streamInvoke(end, this.iterator, reason);
    const check = (r) => {
      if (!isObject(r)) throw new TypeError('the iterator result is not an object');
    };
    if (!this.sync) return streamThen.call(resolvedWith(result), check);
    check(result);
    return streamThen.call(resolvedWith(result.value), streamNothing);
  }
}

function readableFrom(iterable) {
  if (!isObject(iterable) && typeof iterable !== 'string') throw new TypeError('the value is not iterable');
  const source = new IteratorSource(iterable);
  const core = new DefaultReadable(source, source.pull, source.cancel, 0, undefined);
  source.core = core;
  core.begin(undefined);
  return core;
}
