// Memory in byte streams. A buffer that goes in or out is detached from whoever had it before.

const streamTypedArray = Object.getPrototypeOf(Uint8Array);
const streamArrayKind = Object.getOwnPropertyDescriptor(streamTypedArray.prototype, Symbol.toStringTag).get;
const streamArrayBytes = Object.getOwnPropertyDescriptor(streamTypedArray.prototype, 'byteLength').get;
const streamArrayOffset = Object.getOwnPropertyDescriptor(streamTypedArray.prototype, 'byteOffset').get;
const streamArrayBuffer = Object.getOwnPropertyDescriptor(streamTypedArray.prototype, 'buffer').get;
const streamViewBytes = Object.getOwnPropertyDescriptor(DataView.prototype, 'byteLength').get;
const streamViewOffset = Object.getOwnPropertyDescriptor(DataView.prototype, 'byteOffset').get;
const streamViewBuffer = Object.getOwnPropertyDescriptor(DataView.prototype, 'buffer').get;
const streamBufferLength = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get;
const streamBufferDetached = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'detached').get;
const streamBufferResizable = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'resizable').get;
const streamTransfer = ArrayBuffer.prototype.transfer;
const streamSlice = ArrayBuffer.prototype.slice;
const streamIsView = ArrayBuffer.isView;
const StreamBuffer = ArrayBuffer;
const StreamBytes = Uint8Array;
const streamBytesSet = Uint8Array.prototype.set;

const streamViews = { __proto__: null };
for (const C of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array,
  BigUint64Array, Float16Array, Float32Array, Float64Array]) {
  streamViews[C.name] = { C, unit: C.BYTES_PER_ELEMENT };
}
const streamDataView = { C: DataView, unit: 1 };

// What a view is over, by its internals: { C, unit, buffer, offset, length in bytes }. Shared and resizable memory is
// refused, as WebIDL does for an ArrayBufferView.
function streamView(view) {
  if (!streamIsView(view)) throw new TypeError('the value is not a view of an ArrayBuffer');
  const kind = streamArrayKind.call(view);
  const known = kind === undefined ? streamDataView : streamViews[kind];
  const buffer = (kind === undefined ? streamViewBuffer : streamArrayBuffer).call(view);
  if (streamBufferResizable.call(buffer)) throw new TypeError('the buffer is resizable'); // throws for shared memory
  // A DataView over a detached buffer throws where a typed array says 0.
  if (streamBufferDetached.call(buffer)) return { C: known.C, unit: known.unit, buffer, offset: 0, length: 0 };
  return {
    C: known.C, unit: known.unit, buffer,
    offset: (kind === undefined ? streamViewOffset : streamArrayOffset).call(view),
    length: (kind === undefined ? streamViewBytes : streamArrayBytes).call(view),
  };
}

function transferBuffer(buffer) {
  if (streamBufferDetached.call(buffer)) throw new TypeError('the buffer is detached');
  if (wasmBuffers.has(buffer)) throw new TypeError('the buffer belongs to a WebAssembly.Memory');
  return streamTransfer.call(buffer);
}

// One wish to fill a buffer. kind: 'byob', 'default' (autoAllocateChunkSize) or 'none' (its reader has left).
class PullInto {
  buffer = null;
  whole = 0; // length of the buffer
  offset = 0;
  length = 0;
  filled = 0;
  minimum = 0; // bytes
  unit = 1;
  C = null;
  kind = '';
  next = null;

  constructor(buffer, view, minimum, kind) {
    this.buffer = buffer;
    this.whole = streamBufferLength.call(buffer);
    this.offset = view.offset;
    this.length = view.length;
    this.minimum = minimum;
    this.unit = view.unit;
    this.C = view.C;
    this.kind = kind;
  }
  view() {
    const { C } = this;
    return new C(transferBuffer(this.buffer), this.offset, this.filled / this.unit);
  }
}
