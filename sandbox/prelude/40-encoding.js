// TextEncoder and TextDecoder. The bytes are turned by the host; here are the classes and the state between chunks.

const encodingUTF8Known = { __proto__: null, 'utf-8': true, 'utf8': true, 'UTF-8': true };
const encodingName = coreSlot('encoding');
const encodingFatal = coreSlot('fatal');
const encodingIgnoreBOM = coreSlot('ignoreBOM');
const encodingState = coreSlot('state'); // what a chunk left over: [bytes pending, the bytes..., see host], made on first use
const encodingMid = coreSlot('in mid-stream');

// Bits of the flags that the host's decoders take.
const encodingFlagFatal = 1;
const encodingFlagKeepBOM = 2;
const encodingFlagStream = 4;
const encodingStateBytes = 16;

const encodingCounts = new Uint32Array(2); // encodeInto's answer: units read, bytes written
const encodingCountBytes = new Uint8Array(encodingCounts.buffer);

function encodingBrand(object, key) {
  const value = object[key];
  if (value === undefined || !coreHasOwn(object, key)) throw idlIllegal();
  return value;
}

class TextEncoder {
  constructor() {
    this[encodingName] = 'utf-8';
  }

  get encoding() { return encodingBrand(this, encodingName); }

  encode(input = '') {
    encodingBrand(this, encodingName);
    return host.utf8Encode(typeof input === 'string' ? input : `${input}`);
  }

  encodeInto(source, destination) {
    encodingBrand(this, encodingName);
    webArguments(arguments.length, 2, 'TextEncoder.encodeInto');
    if (typeof source !== 'string') source = `${source}`;
    if (!idlIsView(destination) || idlArrayKind(destination) !== 'Uint8Array') {
      throw new TypeError('TextEncoder.encodeInto: the destination is not a Uint8Array');
    }
    if (idlArrayBytes(destination) === 0) return { read: 0, written: 0 };
    host.utf8EncodeInto(source, destination, encodingCountBytes);
    return { read: encodingCounts[0], written: encodingCounts[1] };
  }
}

class TextDecoder {
  constructor(label = 'utf-8', options = undefined) {
    if (typeof label !== 'string') label = `${label}`;
    const dictionary = webDict(options, 'TextDecoder: options');
    const fatal = !!dictionary.fatal;
    const ignoreBOM = !!dictionary.ignoreBOM;
    if (encodingUTF8Known[label] === true) {
      this[encodingName] = 'utf-8';
    } else {
      const name = host.encodingName(label);
      if (name === undefined) throw new RangeError(`TextDecoder: the encoding ${label.slice(0, 64)} is not supported`);
      this[encodingName] = name;
    }
    this[encodingFatal] = fatal;
    this[encodingIgnoreBOM] = ignoreBOM;
    this[encodingState] = null;
    this[encodingMid] = false;
  }

  get encoding() { return encodingBrand(this, encodingName); }
  get fatal() { return encodingBrand(this, encodingFatal); }
  get ignoreBOM() { return encodingBrand(this, encodingIgnoreBOM); }

  decode(input = undefined, options = undefined) {
    const fatal = encodingBrand(this, encodingFatal);
    let bytes;
    if (input === undefined) bytes = new Uint8Array(0);
    else if (idlIsBytes(input) || idlIsShared(input)) bytes = idlBytes(input);
    else throw new TypeError('TextDecoder.decode: the input is neither an ArrayBuffer nor a view of one');
    const dictionary = webDict(options, 'TextDecoder.decode: options');
    const stream = !!dictionary.stream;
    let flags = (fatal ? encodingFlagFatal : 0) | (this[encodingIgnoreBOM] ? encodingFlagKeepBOM : 0);
    let text;
    if (!stream && !this[encodingMid]) {
      text = this[encodingName] === 'utf-8' ? host.utf8Decode(bytes, flags) : host.decode(this[encodingName], bytes, flags, undefined);
    } else {
      if (!this[encodingMid]) this[encodingState] = new Uint8Array(encodingStateBytes);
      this[encodingMid] = stream;
      if (stream) flags |= encodingFlagStream;
      text = host.decode(this[encodingName], bytes, flags, this[encodingState]);
    }
    if (text !== undefined) return text;
    this[encodingMid] = false;
    throw new TypeError(`TextDecoder.decode: the bytes are not valid ${this[encodingName]}`);
  }
}

webInterface(TextEncoder);
webInterface(TextDecoder);
