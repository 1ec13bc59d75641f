// FileReader (File API) and the ProgressEvent that it fires. A blob's bytes are at hand, so that reading is one step; the
// events come in tasks, as if it took longer.

class ProgressEvent extends Event {
  #init;

  constructor(type, eventInitDict = undefined) {
    super(...arguments);
    const { lengthComputable = false, loaded = 0, total = 0 } = webDict(eventInitDict, 'eventInitDict');
    this.#init = [!!lengthComputable, +loaded, +total];
  }
  get lengthComputable() { return this.#init[0]; }
  get loaded() { return this.#init[1]; }
  get total() { return this.#init[2]; }
}
webInterface(ProgressEvent);

const fileEmpty = 0, fileLoading = 1, fileDone = 2;
const filePieces = 0x3000; // bytes of a base64 piece: divisible by three
const fileBtoa = btoa;

// A string whose characters are the bytes.
function fileBinary(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i]);
  return text;
}

function fileDataURL(bytes, type) {
  let url = `data:${type === '' ? 'application/octet-stream' : type};base64,`;
  for (let at = 0; at < bytes.length; at += filePieces) url += fileBtoa(fileBinary(coreApply(blobSubarray, bytes, [at, at + filePieces])));
  return url;
}

// A text in the encoding that its first bytes mark, else that of the label that was given, else the charset of the blob's
// type, else UTF-8.
function fileText(bytes, label, type) {
  const mark = bytes[0] << 8 | bytes[1];
  const name = mark === 0xfeff ? 'utf-16be' : mark === 0xfffe ? 'utf-16le' : mark === 0xefbb && bytes[2] === 0xbf ? 'utf-8' :
    label !== undefined && host.encodingName(label) || host.encodingName(/;\s*charset="?([^";]*)/.exec(type)?.[1] ?? '') || 'utf-8';
  return new TextDecoder(name).decode(bytes);
}

class FileReader extends EventTarget {
  #state = fileEmpty;
  #result = null;
  #error = null;
  #reading = 0; // which reading the tasks that are still to come belong to

  #read(blob, what, convert) {
    if (arguments.length === 0 || !blobIs(blob)) throw new TypeError(`FileReader.${what}: the argument is not a Blob`);
    if (this.#state === fileLoading) throw new DOMException('The reader is busy', 'InvalidStateError');
    this.#state = fileLoading;
    this.#result = this.#error = null;
    const bytes = blobBytes(blob), size = idlArrayBytes(bytes);
    const reading = ++this.#reading;
    const task = (then) => hostTask(() => { if (reading === this.#reading && this.#state === fileLoading) then(); });
    task(() => this.#fire('loadstart', 0, size));
    if (size > 0) task(() => this.#fire('progress', size, size));
    task(() => {
      this.#state = fileDone;
      this.#result = convert(bytes, blobType(blob));
      this.#fire('load', size, size);
      hostTask(() => { if (reading === this.#reading) this.#fire('loadend', size, size); });
    });
  }

  #fire(type, loaded, total) {
    if (this[kListeners] === null) return;
    const event = new ProgressEvent(type, { __proto__: null, lengthComputable: true, loaded, total });
    event[kEvent].trusted = true;
    eventDispatch(this, event, event[kEvent]);
  }

  readAsArrayBuffer(blob) { this.#read(blob, 'readAsArrayBuffer', (bytes) => idlArrayBuffer(new Uint8Array(bytes))); }
  readAsBinaryString(blob) { this.#read(blob, 'readAsBinaryString', fileBinary); }
  readAsText(blob, encoding = undefined) {
    const label = encoding === undefined ? undefined : `${encoding}`;
    this.#read(blob, 'readAsText', (bytes, type) => fileText(bytes, label, type));
  }
  readAsDataURL(blob) { this.#read(blob, 'readAsDataURL', fileDataURL); }

  abort() {
    if (this.#state !== fileLoading) {
      this.#result = null;
      return;
    }
    this.#state = fileDone;
    this.#result = null;
    this.#error = new DOMException('The reading was aborted', 'AbortError');
    this.#fire('abort', 0, 0);
    if (this.#state !== fileLoading) this.#fire('loadend', 0, 0);
  }

  get readyState() { return this.#state; }
  get result() { return this.#result; }
  get error() { return this.#error; }
}
for (const type of ['loadstart', 'progress', 'load', 'abort', 'error', 'loadend']) eventHandler(FileReader.prototype, type);
for (const target of [FileReader, FileReader.prototype]) {
  for (const [name, value] of [['EMPTY', fileEmpty], ['LOADING', fileLoading], ['DONE', fileDone]]) {
    Object.defineProperty(target, name, { __proto__: null, value, enumerable: true });
  }
}
webInterface(FileReader);
