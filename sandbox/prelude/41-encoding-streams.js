// TextEncoderStream and TextDecoderStream (Encoding standard), over the host's codecs.

const kEncoderStream = coreSlot('TextEncoderStream');
const kDecoderStream = coreSlot('TextDecoderStream');
const decodeChunk = TextDecoder.prototype.decode;
const decodeOn = { __proto__: null, stream: true };

function passOn(controller, chunk) {
  controller[kTransformController].enqueue(chunk);
}

class TextEncoderStream {
  constructor() {
    let lead = ''; // a high surrogate that ended a chunk
    this[kEncoderStream] = newTransformStream({
      transform(chunk, controller) {
        let text = `${chunk}`;
        if (text === '') return;
        text = lead + text;
        const last = text.charCodeAt(text.length - 1);
        lead = last >= 0xd800 && last <= 0xdbff ? text[text.length - 1] : '';
        if (lead !== '') text = text.slice(0, -1);
        if (text !== '') passOn(controller, host.utf8Encode(text));
      },
      flush(controller) {
        if (lead !== '') passOn(controller, host.utf8Encode('\ufffd'));
      },
    });
  }
  get encoding() { streamCore(this, kEncoderStream); return 'utf-8'; }
  get readable() { return streamCore(this, kEncoderStream).readable; }
  get writable() { return streamCore(this, kEncoderStream).writable; }
}

class TextDecoderStream {
  constructor(label = 'utf-8', options = undefined) {
    const decoder = new TextDecoder(label, options);
    const stream = newTransformStream({
      transform(chunk, controller) {
        // An absent input means the end to a decoder, here it is a bad chunk.
        if (chunk === undefined) throw new TypeError('the chunk is not a BufferSource');
        const text = coreApply(decodeChunk, decoder, [chunk, decodeOn]);
        if (text !== '') passOn(controller, text);
      },
      flush(controller) {
        const text = coreApply(decodeChunk, decoder, []);
        if (text !== '') passOn(controller, text);
      },
    });
    this[kDecoderStream] = { decoder, stream };
  }
  get encoding() { return streamCore(this, kDecoderStream).decoder.encoding; }
  get fatal() { return streamCore(this, kDecoderStream).decoder.fatal; }
  get ignoreBOM() { return streamCore(this, kDecoderStream).decoder.ignoreBOM; }
  get readable() { return streamCore(this, kDecoderStream).stream.readable; }
  get writable() { return streamCore(this, kDecoderStream).stream.writable; }
}

webInterface(TextEncoderStream);
webInterface(TextDecoderStream);
