// FormData (XMLHttpRequest standard), and multipart/form-data in both directions; the host does the parsing.

const formMissing = Symbol('missing');
const formNameRest = /[\r\n"]/g;
const formNameTo = { __proto__: null, '\r': '%0D', '\n': '%0A', '"': '%22' };

let formIs, formList, formMake;

// An entry's value as the standard makes it: a string, or a File under the given name.
function formValue(value, filename) {
  if (!blobIs(value)) return idlUSV(value);
  if (fileIs(value) && filename === formMissing) return value;
  const name = filename === formMissing ? 'blob' : filename;
  return fileMake(blobBytes(value), blobType(value), name, fileIs(value) ? value.lastModified : coreNow());
}

// Reads the arguments of append and set: [name, value].
function formArguments(given, what) {
  webArguments(given.length, 2, what);
  const name = idlUSV(given[0]);
  if (given.length < 3 || given[2] === undefined && !blobIs(given[1])) return [name, formValue(given[1], formMissing)];
  if (!blobIs(given[1])) throw new TypeError(`${what}: a value with a file name must be a Blob`);
  return [name, formValue(given[1], given[2] === undefined ? formMissing : idlUSV(given[2]))];
}

class FormData {
  #list; // flat: name, value, name, value

  constructor(form = undefined) {
    if (form === formMissing) this.#list = arguments[1];
    else if (form === undefined) this.#list = [];
    else throw new TypeError('FormData: there are no forms to take the entries of');
  }

  static {
    formIs = (value) => typeof value === 'object' && value !== null && #list in value;
    formList = (form) => form.#list;
    formMake = (list) => new FormData(formMissing, list);
  }

  append(name, value) {
    const list = this.#list;
    const [key, entry] = formArguments(arguments, 'FormData.append');
    list.push(key, entry);
  }

  delete(name) {
    const list = this.#list;
    webArguments(arguments.length, 1, 'FormData.delete');
    name = idlUSV(name);
    let kept = 0;
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name) continue;
      list[kept++] = list[i];
      list[kept++] = list[i + 1];
    }
    list.length = kept;
  }

  get(name) {
    const list = this.#list;
    webArguments(arguments.length, 1, 'FormData.get');
    name = idlUSV(name);
    for (let i = 0; i < list.length; i += 2) if (list[i] === name) return list[i + 1];
    return null;
  }

  getAll(name) {
    const list = this.#list;
    webArguments(arguments.length, 1, 'FormData.getAll');
    name = idlUSV(name);
    const values = [];
    for (let i = 0; i < list.length; i += 2) if (list[i] === name) values.push(list[i + 1]);
    return values;
  }

  has(name) {
    const list = this.#list;
    webArguments(arguments.length, 1, 'FormData.has');
    name = idlUSV(name);
    for (let i = 0; i < list.length; i += 2) if (list[i] === name) return true;
    return false;
  }

  set(name, value) {
    const list = this.#list;
    const [key, entry] = formArguments(arguments, 'FormData.set');
    let kept = 0;
    let found = false;
    for (let i = 0; i < list.length; i += 2) {
      const same = list[i] === key;
      if (same && found) continue;
      list[kept++] = list[i];
      list[kept++] = same ? entry : list[i + 1];
      if (same) found = true;
    }
    list.length = kept;
    if (!found) list.push(key, entry);
  }
}

idlIterable(FormData, 'FormData', (form) => {
  if (!formIs(form)) throw idlIllegal();
  return formList(form);
});
webInterface(FormData);

function formName(name) {
  return name.replace(formNameRest, (c) => formNameTo[c]);
}

function formLines(text) { return text.replace(blobLineEnds, '\r\n'); }

// Serialises a list of entries. Returns the bytes and the Content-Type with its boundary.
function formSerialise(list) {
  const boundary = `----edged-form-${host.randomUUID().replaceAll('-', '')}`;
  const chunks = [];
  for (let i = 0; i < list.length; i += 2) {
    const value = list[i + 1];
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${formName(formLines(list[i]))}"`;
    if (typeof value === 'string') {
      chunks.push(`${head}\r\n\r\n${formLines(value)}\r\n`);
      continue;
    }
    const type = blobType(value);
    chunks.push(`${head}; filename="${formName(value.name)}"\r\nContent-Type: ${type === '' ? 'application/octet-stream' : type}\r\n\r\n`, value, '\r\n');
  }
  chunks.push(`--${boundary}--\r\n`);
  return [blobJoin(chunks, false), `multipart/form-data; boundary=${boundary}`];
}

// What a body with this Content-Type holds. mime is what host.mimeType gave, undefined for none.
function formParse(mime, kind, content) {
  if (mime !== undefined && mime[1] === 'application/x-www-form-urlencoded') {
    return formMake(queryBody(kind === bodyText ? content.toWellFormed() : host.utf8Decode(content, encodingFlagKeepBOM)));
  }
  if (mime === undefined || mime[1] !== 'multipart/form-data') throw new TypeError('The body is not a form: its Content-Type is neither multipart/form-data nor application/x-www-form-urlencoded');
  const bytes = bodyBytesOf(kind, content);
  const parts = mime[2] === undefined ? undefined : host.formParse(bytes, mime[2]);
  if (parts === undefined) throw new TypeError('The body is not a well-formed multipart/form-data');
  const list = [];
  const now = coreNow();
  for (let i = 0; i < parts.length; i += 5) {
    const body = coreApply(blobSubarray, bytes, [parts[i + 3], parts[i + 4]]);
    const filename = parts[i + 1];
    list.push(parts[i], filename === null ? host.utf8Decode(body, encodingFlagKeepBOM) : fileMake(body, blobNormalType(parts[i + 2]), filename, now));
  }
  return formMake(list);
}
