// MessageEvent, MessageChannel and MessagePort (HTML), in one realm, and the objects that structured cloning can move.
//
// A port's place in its channel is a record, so that moving a port is giving its record to a new object.

const kMessage = coreSlot('message');

class MessageEvent extends Event {
  constructor(type, eventInitDict = undefined) {
    super(...arguments);
    const { data = null, lastEventId = '', origin = '', ports = undefined, source = null } = webDict(eventInitDict, 'eventInitDict');
    this[kMessage] = {
      data, origin: idlUSV(origin), lastEventId: `${lastEventId}`, source: messageSource(source),
      ports: Object.freeze(ports === undefined ? [] : messagePorts(ports)),
    };
  }
  get data() { eventOf(this); return this[kMessage].data; }
  get origin() { eventOf(this); return this[kMessage].origin; }
  get lastEventId() { eventOf(this); return this[kMessage].lastEventId; }
  get source() { eventOf(this); return this[kMessage].source; }
  get ports() { eventOf(this); return this[kMessage].ports; }
  initMessageEvent(type, bubbles = false, cancelable = false, data = null, origin = '', lastEventId = '', source = null, ports = []) {
    webArguments(arguments.length, 1, 'initMessageEvent');
    const state = { data, origin: idlUSV(origin), lastEventId: `${lastEventId}`, source: messageSource(source), ports: Object.freeze(messagePorts(ports)) };
    if (eventInit(eventOf(this), `${type}`, !!bubbles, !!cancelable)) this[kMessage] = state;
  }
}

function messageSource(source) {
  if (source === undefined || source === null) return null;
  if (!portIs(source)) throw new TypeError('the source of a message is not a MessagePort');
  return source;
}

function messagePorts(given) {
  if (typeof given !== 'object' && typeof given !== 'function' || given === null) throw new TypeError('the ports of a message are not a sequence');
  const ports = [...given];
  for (const port of ports) if (!portIs(port)) throw new TypeError('a port of a message is not a MessagePort');
  return ports;
}

// One end of a channel. other: the other end, null once one of them was closed. queue: messages not yet delivered.
class PortRecord {
  port = null;
  other = null;
  queue = [];
  enabled = false;
  closed = false;
  waits = null; // the task that will deliver, null if there is none

  send(message) {
    if (this.waits !== null && !this.waits()) { // its invocation ended, or was the one before the snapshot
      this.waits = null;
      this.queue = [];
    }
    this.queue.push(message);
    this.schedule();
  }

  schedule() {
    if (this.waits !== null && this.waits() || !this.enabled || this.queue.length === 0) return;
    this.waits = hostTask(() => this.deliver());
  }

  // One message is one task.
  deliver() {
    this.waits = null;
    const message = this.queue.shift();
    this.schedule();
    if (message === undefined) return;
    const event = new MessageEvent('message', { __proto__: null, data: message.copy, ports: message.moved.filter(portIs) });
    event[kEvent].trusted = true;
    eventDispatch(this.port, event, event[kEvent]);
  }

  close() {
    this.closed = true;
    const { other } = this;
    if (other === null) return;
    this.other = other.other = null;
    hostTask(() => { if (other.port !== null) eventFire(other.port, 'close'); });
  }
}

const portKey = Symbol('port');
let portIs, portRecord, portMake, portMove;

class MessagePort extends EventTarget {
  #record;

  constructor() {
    if (arguments[0] !== portKey) throw new TypeError('Illegal constructor');
    super();
    this.#record = arguments[1];
    this.#record.port = this;
  }

  static {
    portIs = (value) => typeof value === 'object' && value !== null && #record in value;
    portRecord = (port) => port.#record;
    portMake = (record) => new MessagePort(portKey, record);
    // A new object takes the place of a port, which is of no use any more.
    portMove = (port) => {
      const record = port.#record;
      port.#record = new PortRecord();
      port.#record.port = port;
      port.#record.closed = true;
      record.enabled = false;
      return portMake(record);
    };
  }

  postMessage(message, options = undefined) {
    const record = this.#record;
    webArguments(arguments.length, 1, 'MessagePort.postMessage');
    const transfer = cloneTransferList(messageTransfer(options));
    if (transfer !== null && transfer.includes(this)) throw cloneError('The port that a message is sent by');
    const doomed = transfer !== null && record.other !== null && record.other.port !== null && transfer.includes(record.other.port);
    const sent = cloneMove(message, transfer);
    const { other } = record;
    if (other === null || doomed) return;
    other.send(sent);
  }

  start() {
    this.#record.enabled = true;
    this.#record.schedule();
  }

  close() { this.#record.close(); }
}

// What the second argument of postMessage says is to be transferred: it is a sequence, or an object with one.
function messageTransfer(options) {
  if (options === undefined || options === null) return undefined;
  if (typeof options !== 'object' && typeof options !== 'function') throw new TypeError('postMessage: the options are not an object');
  const method = options[idlIterator];
  return method !== undefined && method !== null ? options : options.transfer;
}

for (const type of ['message', 'messageerror', 'close']) eventHandler(MessagePort.prototype, type);

// Setting onmessage starts the port.
{
  const { get, set } = coreDescriptor(MessagePort.prototype, 'onmessage');
  coreDefine(MessagePort.prototype, 'onmessage', {
    get,
    set: coreDescriptor({
      set onmessage(value) {
        coreApply(set, this, [value]);
        portRecord(this).enabled = true;
        portRecord(this).schedule();
      },
    }, 'onmessage').set,
  });
}

class MessageChannel {
  #one;
  #two;
  constructor() {
    const one = new PortRecord(), two = new PortRecord();
    one.other = two;
    two.other = one;
    this.#one = portMake(one);
    this.#two = portMake(two);
  }
  get port1() { return this.#one; }
  get port2() { return this.#two; }
}

for (const C of [MessageEvent, MessagePort, MessageChannel]) webInterface(C);
coreDefine(MessageChannel.prototype, clonePlatform, { __proto__: null, value: true });

// Streams on their way: the new one reads, or writes, the old one, which is locked for good, and clones every chunk.

const transferReadableStream = ReadableStream, transferWritableStream = WritableStream, transferWriter = WritableStreamDefaultWriter;
const transferWrite = transferWriter.prototype.write, transferClose = transferWriter.prototype.close, transferAbort = transferWriter.prototype.abort;

function transferReadable(stream) {
  const reader = acquireReader(stream);
  return new transferReadableStream({
    __proto__: null,
    pull(controller) {
      const core = controller[kDefaultController];
      return coreThen(readChunk(reader), (result) => {
        if (result.done) {
          core.close();
          return;
        }
        let copy;
        try {
          copy = cloneMove(result.value, null).copy;
        } catch (failure) {
          markHandled(cancelReader(reader, failure));
          throw failure;
        }
        core.enqueue(copy);
      });
    },
    cancel(reason) { return cancelReader(reader, cloneMove(reason, null).copy); },
  }, { __proto__: null, highWaterMark: 0 });
}

function transferWritable(stream) {
  const writer = new transferWriter(stream);
  return new transferWritableStream({
    __proto__: null,
    write(chunk) {
      let copy;
      try {
        ({ copy } = cloneMove(chunk, null));
      } catch (failure) {
        markHandled(coreApply(transferAbort, writer, [failure]));
        throw failure;
      }
      return coreApply(transferWrite, writer, [copy]);
    },
    close() { return coreApply(transferClose, writer, []); },
    abort(reason) { return coreApply(transferAbort, writer, [cloneMove(reason, null).copy]); },
  });
}

function transferTransform(stream) {
  const { readable, writable } = stream[kTransform];
  const moved = streamObject(TransformStream.prototype);
  moved[kTransform] = { readable: { facade: transferReadable(readable.facade) }, writable: { facade: transferWritable(writable.facade) } };
  return moved;
}

// How to move an object; undefined if that cannot be done.
function transferKind(object) {
  if (portIs(object)) return portMove;
  if (coreHasOwn(object, kReadable)) return transferReadable;
  if (coreHasOwn(object, kWritable)) return transferWritable;
  return coreHasOwn(object, kTransform) ? transferTransform : undefined;
}

// Refuses what can be moved, but not in the state it is in.
function transferCheck(object) {
  if (portIs(object)) {
    if (portRecord(object).closed) throw cloneError('A closed MessagePort');
    return;
  }
  const transform = object[kTransform];
  const sides = transform === undefined ? [object] : [transform.readable.facade, transform.writable.facade];
  for (const side of sides) {
    const core = side[kReadable] ?? side[kWritable];
    if ((core.reader ?? core.writer ?? null) !== null) throw cloneError('A locked stream');
  }
}
