// The byte controller: a queue of pieces of memory, and readers that bring their own buffers.

class ByteReadable extends ReadableCore {
  bytes = true;
  auto = undefined; // autoAllocateChunkSize, undefined: off
  request = null; // facade of the byobRequest
  wishes = new StreamQueue();

  constructor(source, pull, cancel, highWaterMark, auto) {
    super(source, pull, cancel, highWaterMark);
    this.auto = auto;
  }

  getRequest() {
    const wish = this.wishes.head;
    if (this.request !== null || wish === null) return this.request;
    const view = new StreamBytes(wish.buffer, wish.offset + wish.filled, wish.length - wish.filled);
    const request = this.request = streamObject(ReadableStreamBYOBRequest.prototype);
    request[kByobRequest] = { core: this, view };
    return request;
  }

  invalidate() {
    if (this.request === null) return;
    const record = this.request[kByobRequest];
    record.core = record.view = null;
    this.request = null;
  }

  shiftWish() {
    this.invalidate();
    return this.wishes.shift();
  }

  drop() {
    super.drop();
    this.invalidate();
    this.wishes.take();
  }

  push(buffer, offset, length) {
    this.queue.push({ buffer, offset, length, next: null });
    this.total += length;
  }

  pushClone(buffer, offset, length) {
    let clone;
    try {
      clone = streamSlice.call(buffer, offset, offset + length);
    } catch (error) {
      this.fail(error);
      throw error;
    }
    this.push(clone, 0, length);
  }

  // What a reader that has left had already got goes back into the queue.
  pushLeft(wish) {
    if (wish.filled > 0) this.pushClone(wish.buffer, wish.offset, wish.filled);
    this.shiftWish();
  }

  // Takes a chunk whose buffer the caller may keep; it is detached.
  enqueue({ buffer, offset, length }) {
    const wish = this.wishes.head;
    const own = transferBuffer(buffer);
    if (wish !== null) {
      this.invalidate();
      wish.buffer = transferBuffer(wish.buffer);
      if (wish.kind === 'none') this.pushLeft(wish);
    }
    this.enqueueOwn(own, offset, length);
  }

  // The same for a buffer that nobody else has.
  enqueueOwn(buffer, offset, length) {
    const { reader } = this;
    if (reader !== null && !reader.byob) {
      this.serveQueued();
      if (reader.requests.head === null) {
        this.push(buffer, offset, length);
      } else {
        if (this.wishes.head !== null) this.shiftWish();
        reader.requests.shift().chunk(new StreamBytes(buffer, offset, length));
      }
    } else {
      this.push(buffer, offset, length);
      if (reader !== null) this.commitAll(this.fillWishes());
    }
    this.pullIfNeeded();
  }

  // Answers waiting read requests from the queue.
  serveQueued() {
    const { requests } = this.reader;
    while (requests.head !== null && this.total > 0) requests.shift().chunk(this.take());
  }

  take() {
    const node = this.queue.shift();
    this.total -= node.length;
    this.drained();
    return new StreamBytes(node.buffer, node.offset, node.length);
  }

  drained() {
    if (this.total === 0 && this.closing) {
      this.forget();
      this.finish();
    } else {
      this.pullIfNeeded();
    }
  }

  serve(request) {
    if (this.total > 0) {
      request.chunk(this.take());
      return;
    }
    if (this.auto !== undefined) {
      let buffer;
      try {
        buffer = new StreamBuffer(this.auto);
      } catch (error) {
        request.fail(error);
        return;
      }
      this.wishes.push(new PullInto(buffer, { C: StreamBytes, unit: 1, offset: 0, length: this.auto }, 1, 'default'));
    }
    this.reader.requests.push(request);
    this.pullIfNeeded();
  }

  // ReadableByteStreamControllerPullInto; min counts elements of the view.
  serveInto(view, min, request) {
    let buffer;
    try {
      buffer = transferBuffer(view.buffer);
    } catch (error) {
      request.fail(error);
      return;
    }
    const wish = new PullInto(buffer, view, min * view.unit, 'byob');
    if (this.wishes.head === null) {
      if (this.state === STREAM_CLOSED) {
        request.close(new wish.C(buffer, wish.offset, 0));
        return;
      }
      if (this.total > 0) {
        if (this.fillFromQueue(wish)) {
          const filled = wish.view();
          this.drained();
          request.chunk(filled);
          return;
        }
        if (this.closing) {
          const error = new TypeError('the stream has ended in the middle of an element');
          this.fail(error);
          request.fail(error);
          return;
        }
      }
    }
    this.wishes.push(wish);
    this.reader.requests.push(request);
    this.pullIfNeeded();
  }

  // Copies from the queue into a wish; true if that is enough for an answer.
  fillFromQueue(wish) {
    let copy = Math.min(this.total, wish.length - wish.filled);
    const most = wish.filled + copy;
    const aligned = most - most % wish.unit;
    const ready = aligned >= wish.minimum;
    if (ready) copy = aligned - wish.filled;
    const target = new StreamBytes(wish.buffer);
    while (copy > 0) {
      const node = this.queue.head;
      const n = Math.min(copy, node.length);
      streamBytesSet.call(target, new StreamBytes(node.buffer, node.offset, n), wish.offset + wish.filled);
      if (n === node.length) {
        this.queue.shift();
      } else {
        node.offset += n;
        node.length -= n;
      }
      this.total -= n;
      wish.filled += n;
      copy -= n;
    }
    return ready;
  }

  // Fills wishes from the queue and takes out those that can be answered. Answering is a second step: it runs user code.
  fillWishes() {
    const filled = [];
    while (this.wishes.head !== null && this.total > 0 && this.fillFromQueue(this.wishes.head)) filled.push(this.shiftWish());
    return filled;
  }

  commit(wish) {
    const request = this.reader.requests.shift();
    if (this.state === STREAM_CLOSED) request.close(wish.view());
    else request.chunk(wish.view());
  }

  commitAll(wishes) {
    for (let i = 0; i < wishes.length; i++) this.commit(wishes[i]);
  }

  close() {
    if (this.closing || this.state !== STREAM_OPEN) return;
    if (this.total > 0) {
      this.closing = true;
      return;
    }
    const wish = this.wishes.head;
    if (wish !== null && wish.filled % wish.unit !== 0) {
      const error = new TypeError('the stream has ended in the middle of an element');
      this.fail(error);
      throw error;
    }
    this.forget();
    this.finish();
  }

  respond(written) {
    const wish = this.wishes.head;
    if (this.state === STREAM_CLOSED) {
      if (written !== 0) throw new TypeError('the stream is closed: only 0 bytes can be written');
    } else {
      if (written === 0) throw new TypeError('0 bytes can be written only after close()');
      if (wish.filled + written > wish.length) throw new RangeError('more bytes written than the request has room for');
    }
    wish.buffer = transferBuffer(wish.buffer);
    this.responded(written);
  }

  respondWith(view) {
    const wish = this.wishes.head;
    if (this.state === STREAM_CLOSED) {
      if (view.length !== 0) throw new TypeError('the stream is closed: only an empty view can be given');
    } else if (view.length === 0) {
      throw new TypeError('an empty view can be given only after close()');
    }
    if (wish.offset + wish.filled !== view.offset) throw new RangeError('the view begins at another place than the request');
    if (wish.whole !== streamBufferLength.call(view.buffer)) throw new RangeError('the buffer has another length than the request');
    if (wish.filled + view.length > wish.length) throw new RangeError('the view is longer than the request');
    wish.buffer = transferBuffer(view.buffer);
    this.responded(view.length);
  }

  responded(written) {
    const wish = this.wishes.head;
    this.invalidate();
    if (this.state === STREAM_CLOSED) this.respondedClosed(wish);
    else this.respondedOpen(written, wish);
    this.pullIfNeeded();
  }

  respondedClosed(wish) {
    if (wish.kind === 'none') this.shiftWish();
    if (this.reader === null || !this.reader.byob) return;
    while (this.reader !== null && this.reader.requests.head !== null) this.commit(this.shiftWish());
  }

  respondedOpen(written, wish) {
    wish.filled += written;
    if (wish.kind === 'none') {
      this.pushLeft(wish);
      this.commitAll(this.fillWishes());
      return;
    }
    if (wish.filled < wish.minimum) return;
    this.shiftWish();
    const rest = wish.filled % wish.unit;
    if (rest > 0) {
      this.pushClone(wish.buffer, wish.offset + wish.filled - rest, rest);
      wish.filled -= rest;
    }
    const more = this.fillWishes();
    this.commit(wish);
    this.commitAll(more);
  }

  released() {
    const wish = this.wishes.take();
    if (wish === null) return;
    wish.kind = 'none';
    wish.next = null;
    this.wishes.push(wish);
  }
}

class ReadableByteStreamController {
  constructor() { throw streamIllegal(); }
  get byobRequest() { return streamCore(this, kByteController).getRequest(); }
  get desiredSize() { return streamCore(this, kByteController).desiredSize(); }
  close() {
    const core = streamCore(this, kByteController);
    if (!core.canEnqueue()) throw new TypeError('the stream is closed or errored');
    core.close();
  }
  enqueue(chunk) {
    const core = streamCore(this, kByteController);
    webArguments(arguments.length, 1, 'enqueue');
    const view = streamView(chunk);
    if (view.length === 0) throw new TypeError('the chunk is empty');
    if (!core.canEnqueue()) throw new TypeError('the stream is closed or errored');
    core.enqueue(view);
  }
  error(e = undefined) { streamCore(this, kByteController).fail(e); }
}
webInterface(ReadableByteStreamController);

class ReadableStreamBYOBRequest {
  constructor() { throw streamIllegal(); }
  get view() { return streamCore(this, kByobRequest).view; }
  respond(bytesWritten) {
    const record = streamCore(this, kByobRequest);
    webArguments(arguments.length, 1, 'respond');
    const written = webEnforceRange(bytesWritten, 'bytesWritten');
    if (record.core === null) throw new TypeError('the request was answered before');
    if (streamBufferDetached.call(streamArrayBuffer.call(record.view))) throw new TypeError('the buffer is detached');
    record.core.respond(written);
  }
  respondWithNewView(view) {
    const record = streamCore(this, kByobRequest);
    webArguments(arguments.length, 1, 'respondWithNewView');
    const given = streamView(view);
    if (record.core === null) throw new TypeError('the request was answered before');
    if (streamBufferDetached.call(given.buffer)) throw new TypeError('the buffer is detached');
    record.core.respondWith(given);
  }
}
webInterface(ReadableStreamBYOBRequest);
