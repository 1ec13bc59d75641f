// Object buckets (objects §3). Bodies stay with the host where they only pass through.

const bucketMost = 5368709120;
const bucketPutMost = 314572800;
const bucketStringify = JSON.stringify;

function bucketKey(value) {
  const key = facadeString('the key', value);
  if (key === '' || !facadeWellFormed(key)) throw facadeNamed('invalid_key', 'the key is empty or has a lone surrogate');
  return key;
}

// The number of code points of a string that is not much longer than most.
function bucketChars(text, most) {
  if (text.length > 2 * most) return text.length;
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    const low = text.charCodeAt(i);
    const high = text.charCodeAt(i - 1);
    if (low >= 0xdc00 && low < 0xe000 && high >= 0xd800 && high < 0xdc00) count--;
  }
  return count;
}

// A string option of 1 to most characters, '' if it is absent.
function bucketText(what, value, most) {
  if (value === undefined) return '';
  const text = facadeString(what, value);
  if (text === '' || bucketChars(text, most) > most || !facadeWellFormed(text)) throw new TypeError(`${what} has not 1 to ${most} characters`);
  return text;
}

// Runs a call without a body; promises what read makes of the JSON that it brings.
function bucketCall(number, method, args, read) {
  return coreThen(pending(host.bucketCall(number, method, bucketStringify({ __proto__: null, ...args }))), (text) => read(coreParse(text)));
}

function bucketNothing() {}

function bucketGet(number, key, options) {
  const { ifMatch, ifNoneMatch, range } = facadeOptions('get', options, ['ifMatch', 'ifNoneMatch', 'range']);
  if (ifMatch !== undefined && ifNoneMatch !== undefined) throw new TypeError('get: ifMatch and ifNoneMatch exclude each other');
  const query = {
    __proto__: null, Key: bucketKey(key), IfMatch: bucketText('ifMatch', ifMatch, 256), IfNoneMatch: bucketText('ifNoneMatch', ifNoneMatch, 256),
    Ranged: range !== undefined, Offset: 0, Length: 0,
  };
  if (range !== undefined) {
    const part = facadeOptions('range', range, ['offset', 'length']);
    if (part.offset === undefined) throw new TypeError('range: there is no offset');
    query.Offset = facadeInteger('offset', part.offset, 0, bucketMost, 0);
    query.Length = facadeInteger('length', part.length, 1, bucketMost, 0);
  }
  const mine = invocation;
  const operation = host.bucketGet(number, bucketStringify(query));
  return coreThen(pending(operation), (text) => {
    const info = coreParse(text);
    if (info === null) return null;
    const object = { body: bodyFromHost([mine, operation]), etag: info.etag, size: info.size, partial: query.Ranged };
    if (query.Ranged) object.range = { offset: info.from ?? 0, length: info.given ?? 0 };
    if (info.type !== undefined) object.contentType = info.type;
    return object;
  });
}

// Sends a body to a bucket. most is what it may have at most, named by tooLarge.
function bucketSend(number, target, body, contentLength, counted, most) {
  if (contentLength !== undefined && typeof contentLength !== 'number') throw new TypeError('contentLength is not a number');
  const stream = isReadableStream(body);
  if (typeof body !== 'string' && !stream && !idlIsBuffer(body)) throw new TypeError('the body is not a string, an ArrayBuffer or a ReadableStream');
  if (contentLength === undefined ? stream && !counted : !(contentLength % 1 === 0 && contentLength >= 0 && contentLength <= bucketMost)) {
    throw facadeNamed('invalid_body', 'a stream needs a contentLength from 0 to 5368709120');
  }
  if (!stream) {
    const bytes = typeof body === 'string' ? host.utf8Encode(body) : body;
    if (contentLength !== undefined && contentLength !== bytes.byteLength) throw facadeNamed('invalid_body', 'contentLength is not the length of the body');
    if (bytes.byteLength > most) throw facadeNamed('value_too_large', 'the body is too large');
    return pending(host.bucketPut(number, bucketStringify(target), 1, bytes, -1));
  }
  if (contentLength !== undefined && contentLength > most) throw facadeNamed('value_too_large', 'the body is too large for one call');
  if (isDisturbed(body) || isLocked(body)) throw new TypeError('the body is a stream that is locked or was read from');
  const state = [null, null, bodyStream, body, 0, 0, false];
  const passing = bodyHandOver(state);
  const length = contentLength === undefined ? -1 : contentLength;
  if (passing >= 0) return pending(host.bucketPut(number, bucketStringify(target), 2, passing, length));
  const reader = acquireReader(body);
  const mine = invocation;
  const operation = host.bucketPut(number, bucketStringify(target), 3, null, length);
  // What becomes of a stream that fails is the store's to say: it gets no end, and refuses the body.
  exchangePump(mine, operation, reader, bucketNothing);
  return pending(operation);
}

function bucketPut(counted, number, key, body, options) {
  const given = facadeOptions('put', options, ['contentLength', 'contentType', 'ifMatch', 'ifNoneMatch']);
  const { ifMatch, ifNoneMatch } = given;
  if (ifMatch !== undefined && ifNoneMatch !== undefined) throw new TypeError('put: ifMatch and ifNoneMatch exclude each other');
  if (ifNoneMatch !== undefined && ifNoneMatch !== '*') throw new TypeError('put: ifNoneMatch can only be *');
  const target = {
    __proto__: null, ContentType: bucketText('contentType', given.contentType, 256), IfMatch: bucketText('ifMatch', ifMatch, 256),
    IfAbsent: ifNoneMatch !== undefined, Key: bucketKey(key),
  };
  return coreThen(bucketSend(number, target, body, given.contentLength, counted, bucketPutMost), (text) => {
    const info = coreParse(text);
    return { etag: info.etag, size: info.size };
  });
}

function bucketPart(counted, number, key, uploadId, partNumber, body, options) {
  const { contentLength } = facadeOptions('uploadPart', options, ['contentLength']);
  const part = facadeInteger('partNumber', partNumber, 1, 10000, 0);
  if (part === 0) throw new TypeError('uploadPart: there is no partNumber');
  const target = { __proto__: null, Upload: bucketText('uploadId', facadeString('uploadId', uploadId), 256), Part: part, Key: bucketKey(key) };
  return coreThen(bucketSend(number, target, body, contentLength, counted, bucketMost), (text) => ({ partNumber: part, etag: coreParse(text) }));
}

function bucketParts(parts) {
  if (!queueIsArray(parts) || parts.length < 1 || parts.length > 10000) throw new TypeError('the parts are not an array of 1 to 10000');
  const list = [];
  let last = 0;
  for (let i = 0; i < parts.length; i++) {
    const { partNumber, etag } = facadeOptions('a part', parts[i] === undefined ? null : parts[i], ['partNumber', 'etag']);
    if (partNumber === undefined || etag === undefined) throw new TypeError('a part has a partNumber and an etag');
    const number = facadeInteger('partNumber', partNumber, 1, 10000, 0);
    if (number <= last) throw new TypeError('the parts do not ascend');
    last = number;
    list[i] = { __proto__: null, Number: number, ETag: bucketText('etag', etag, 256) };
  }
  return list;
}

function bucketListed(page, delimited) {
  const objects = [];
  for (let i = 0; i < page.objects.length; i++) {
    const { key, etag, size, at } = page.objects[i];
    objects[i] = at === undefined ? { key, etag, size } : { key, etag, size, uploadedAtMillis: at };
  }
  const result = { objects, truncated: page.cursor !== '' };
  if (delimited) result.prefixes = page.prefixes ?? [];
  if (page.cursor !== '') result.cursor = page.cursor;
  return result;
}

function bucketClass(kind, counted) {
  facadeClass(kind, 'ObjectBucket', {
    head: (number, key) => bucketCall(number, 0, { Key: bucketKey(key) }, (info) => {
      if (info === null) return null;
      const head = { etag: info.etag, size: info.size };
      if (info.type !== undefined) head.contentType = info.type;
      if (info.at !== undefined) head.uploadedAtMillis = info.at;
      return head;
    }),
    get: bucketGet,
    put: (number, key, body, options) => bucketPut(counted, number, key, body, options),
    delete: (number, key) => bucketCall(number, 1, { Key: bucketKey(key) }, bucketNothing),
    list(number, options) {
      const { prefix = '', delimiter, limit, cursor } = facadeOptions('list', options, ['prefix', 'delimiter', 'limit', 'cursor']);
      facadeString('prefix', prefix);
      if (!facadeWellFormed(prefix) || host.utf8Encode(prefix).length > 979) throw new TypeError('prefix is not a string of at most 979 bytes');
      if (cursor !== undefined && (facadeString('cursor', cursor) === '' || cursor.length > 4096)) {
        throw facadeNamed('invalid_cursor', 'the cursor was not issued by list');
      }
      return bucketCall(number, 2, {
        Prefix: prefix, Delimiter: bucketText('delimiter', delimiter, 16), Limit: facadeInteger('limit', limit, 1, 1000, 100), Cursor: cursor ?? '',
      }, (page) => bucketListed(page, delimiter !== undefined));
    },
    createMultipartUpload(number, key, options) {
      const { contentType } = facadeOptions('createMultipartUpload', options, ['contentType']);
      return bucketCall(number, 3, { Key: bucketKey(key), Type: bucketText('contentType', contentType, 256) }, (uploadId) => ({ uploadId }));
    },
    uploadPart: (number, key, uploadId, partNumber, body, options) => bucketPart(counted, number, key, uploadId, partNumber, body, options),
    completeMultipartUpload: (number, key, uploadId, parts) => bucketCall(number, 4,
      { Key: bucketKey(key), Upload: bucketText('uploadId', facadeString('uploadId', uploadId), 256), Parts: bucketParts(parts) },
      (info) => ({ etag: info.etag, size: info.size })),
    abortMultipartUpload: (number, key, uploadId) => bucketCall(number, 5,
      { Key: bucketKey(key), Upload: bucketText('uploadId', facadeString('uploadId', uploadId), 256) }, bucketNothing),
  }, {
    head: [1, 1], get: [1, 2], put: [2, 3], delete: [1, 1], list: [0, 1], createMultipartUpload: [1, 2], uploadPart: [4, 5],
    completeMultipartUpload: [3, 3], abortMultipartUpload: [2, 2],
  });
}

bucketClass('bucket2', false);
bucketClass('bucket3', true);
