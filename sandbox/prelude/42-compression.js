// CompressionStream and DecompressionStream (Compression standard). The codec's state is with the host, for the length of
// one invocation.

const compressionFormats = { __proto__: null, 'gzip': 0, 'deflate': 1, 'deflate-raw': 2 };
const compressionPiece = 65536; // the most input, and output, of one step

// A codec: its number, and the invocation that it belongs to.
class CompressionCodec {
  constructor(format, decompress) {
    this.owner = invocation;
    this.id = host.codecOpen(format, decompress);
  }

  // Gives the codec bytes, null for the end, or undefined for nothing new. Returns output, undefined if there is none.
  run(input) {
    if (this.owner !== invocation) throw new TypeError('the compression stream is from an invocation that is over');
    return host.codecRun(this.id, input);
  }

  close() {
    if (this.owner === invocation) host.codecClose(this.id);
  }

  transform(chunk, controller) {
    if (!idlIsBytes(chunk) || idlIsView(chunk) && idlIsShared(idlBytes(chunk).buffer)) {
      this.close();
      throw new TypeError('the chunk is neither an ArrayBuffer nor a view of one');
    }
    let bytes = idlBytes(chunk);
    const size = idlArrayBytes(bytes);
    if (size > compressionPiece) bytes = new Uint8Array(bytes); // it is read for longer than this call
    return this.pass(controller[kTransformController], bytes, 0, size, undefined);
  }

  // Passes on what is in hand, then goes on from position `at` of the bytes. Only output that does not fit waits for the
  // reader: a small input may unpack to more than there is memory for.
  pass(core, bytes, at, size, out) {
    try {
      for (;;) {
        while (out !== undefined) {
          if (!core.readable.canEnqueue()) return undefined; // cancelled meanwhile
          core.enqueue(out);
          out = this.run(undefined);
          if (out !== undefined && core.backpressure) {
            const { promise, resolve } = newDeferred();
            core.room = resolve;
            return coreThen(promise, () => this.pass(core, bytes, at, size, out));
          }
        }
        if (at >= size) return undefined;
        const from = at;
        at += compressionPiece;
        out = this.run(from === 0 && size <= compressionPiece ? bytes : coreApply(blobSubarray, bytes, [from, at]));
      }
    } catch (failure) {
      this.close();
      throw failure;
    }
  }

  flush(controller) {
    try {
      const core = controller[kTransformController];
      for (let out = this.run(null); out !== undefined; out = this.run(undefined)) core.enqueue(out);
    } finally {
      this.close();
    }
  }

  cancel() { this.close(); }
}

function compressionStream(format, decompress, what) {
  format = `${format}`;
  const number = compressionFormats[format];
  if (number === undefined) throw new TypeError(`${what}: the format ${format.slice(0, 64)} is not supported`);
  return newTransformStream(new CompressionCodec(number, decompress));
}

class CompressionStream {
  #stream;
  constructor(format) {
    webArguments(arguments.length, 1, 'CompressionStream');
    this.#stream = compressionStream(format, false, 'CompressionStream');
  }
  get readable() { return this.#stream.readable; }
  get writable() { return this.#stream.writable; }
}

class DecompressionStream {
  #stream;
  constructor(format) {
    webArguments(arguments.length, 1, 'DecompressionStream');
    this.#stream = compressionStream(format, true, 'DecompressionStream');
  }
  get readable() { return this.#stream.readable; }
  get writable() { return this.#stream.writable; }
}

webInterface(CompressionStream);
webInterface(DecompressionStream);
