// Response, and what the host gets of one.

// Places in the state, around those of the body; a Request has a string where the status is. The first five are as the
// host reads them (responseParts), the sixth is the host's own.
const responseStatus = 0;
const responseHeaders = 1; // a Headers, or packed text, which is made into one when somebody looks
const responseReason = 7;
const responseFlags = 8;

const responseIsError = 1;
const responseFrozen = 2; // its headers are immutable

const responseTextPacked = headersPack(['content-type', bodyTextType]);
const responseJSONPacked = headersPack(['content-type', 'application/json']);
const responseQueryPacked = headersPack(['content-type', bodyQueryType]);
const responseBadReason = /[^\t -~\x80-\xff]/;
const responseStringify = JSON.stringify;
const responseLength = /^[0-9]{1,15}$/;

function responseNoBody(status) { return new TypeError(`Response: the status ${status} does not allow a body`); }

// [unsigned short] as Web IDL converts it, then the range of a Response.
function responseCheckStatus(value) {
  const status = value & 0xffff;
  if (status < 200 || status > 599) throw new RangeError(`Response: the status ${status} is not between 200 and 599`);
  return status;
}

function responseCheckReason(value) {
  const reason = `${value}`;
  if (responseBadReason.test(reason)) throw new TypeError('Response: statusText has a character that a reason phrase cannot have');
  return reason;
}

// Reads init into a state, except for the body. Returns whether it says headers.
function responseInit(state, init) {
  if (typeof init !== 'object') webDict(init, 'Response: init');
  const headers = init.headers;
  if (headers !== undefined) state[responseHeaders] = headersFillPacked(headers);
  const status = init.status;
  if (status !== undefined) state[responseStatus] = responseCheckStatus(status);
  const reason = init.statusText;
  if (reason !== undefined) state[responseReason] = responseCheckReason(reason);
  return headers !== undefined;
}

// Gives a state the Content-Type that its body brings, unless its headers, filled last of all, have one.
function responseSetType(state, type, filled) {
  if (filled && headersFilledType) return;
  const brought = type === bodyTextType ? responseTextPacked : type === bodyQueryType ? responseQueryPacked
    : type === null ? responseJSONPacked : headersPack(['content-type', type]);
  state[responseHeaders] = filled ? state[responseHeaders] + brought : brought;
}

class Response {
  constructor(body, init) { // no default values: they cost as much as a call
    if (init === undefined && typeof body === 'string') {
      this[fetchSlot] = [200, responseTextPacked, bodyText, body, -1, 0, false, '', 0];
      return;
    }
    const state = this[fetchSlot] = [200, '', bodyNull, null, -1, 0, false, '', 0];
    const filled = init !== undefined && init !== null && responseInit(state, init);
    if (body === undefined || body === null) return;
    const typed = headersFilledType; // a body may run user code
    const status = state[responseStatus];
    if (status === 204 || status === 205 || status === 304) throw responseNoBody(status);
    const type = bodyExtract(state, body);
    if (type === null) return;
    headersFilledType = typed;
    responseSetType(state, type, filled);
  }

  static error() { return responseMake([0, '', bodyNull, null, -1, 0, false, '', responseIsError | responseFrozen]); }

  static redirect(url, status = 302) {
    webArguments(arguments.length, 1, 'Response.redirect');
    const location = urlParse(url, undefined);
    urlOwner = null;
    if (location === undefined) throw new TypeError('Response.redirect: the URL is not valid');
    status &= 0xffff;
    if (status !== 301 && status !== 302 && status !== 303 && status !== 307 && status !== 308) {
      throw new RangeError(`Response.redirect: ${status} is not the status of a redirect`);
    }
    return responseMake([status, headersPack(['location', location]), bodyNull, null, -1, 0, false, '', responseFrozen]);
  }

  static json(data, init) {
    const text = responseStringify(data);
    if (text === undefined) throw new TypeError('Response.json: the data has no JSON form');
    const state = [200, responseJSONPacked, bodyText, text, -1, 0, false, '', 0];
    if (init !== undefined && init !== null) {
      const filled = responseInit(state, init);
      const status = state[responseStatus];
      if (status === 204 || status === 205 || status === 304) throw responseNoBody(status);
      responseSetType(state, null, filled);
    }
    return responseMake(state);
  }

  get type() { return responseState(this)[responseFlags] & responseIsError ? 'error' : 'default'; }
  get url() {
    responseState(this);
    return '';
  }
  get redirected() {
    responseState(this);
    return false;
  }
  get status() { return responseState(this)[responseStatus]; }
  get ok() {
    const status = responseState(this)[responseStatus];
    return status >= 200 && status <= 299;
  }
  get statusText() { return responseState(this)[responseReason]; }
  get headers() { return responseHeadersOf(responseState(this)); }

  clone() {
    const state = responseState(this);
    if (bodyUnusable(state)) throw new TypeError('Response.clone: the body was already read or is locked');
    const copy = [state[responseStatus], responsePacked(state[responseHeaders]), bodyNull, null, -1, 0, false, state[responseReason], state[responseFlags]];
    bodyClone(state, copy);
    return responseMake(copy);
  }
}

coreDefine(Response, 'length', { __proto__: null, value: 0 });
coreDefine(Response.json, 'length', { __proto__: null, value: 1 });

const responsePrototype = Response.prototype;

function responseMake(state) { return { __proto__: responsePrototype, [fetchSlot]: state }; }

function responseIs(state) { return state !== undefined && typeof state[responseStatus] === 'number'; }

function responseState(response) {
  const state = response[fetchSlot];
  if (!responseIs(state) || !coreHasOwn(response, fetchSlot)) throw idlIllegal();
  return state;
}

function responseHeadersOf(state) {
  const headers = state[responseHeaders];
  return typeof headers === 'string' ? state[responseHeaders] = headersMake(headers, (state[responseFlags] & responseFrozen) !== 0) : headers;
}

function responsePacked(headers) {
  if (typeof headers === 'string') return headers;
  const list = headers[headersSlot];
  return typeof list === 'string' ? list : headersPack(list);
}

function responseDeclaredLength(state) {
  const value = headersJoined(headersList(responseHeadersOf(state)), 'content-length');
  return value !== null && responseLength.test(value) ? +value : -1;
}

const responseFilled = [0, '', 0, null, -1, 0];

// What the host sends of a response: [status, packed headers, body kind, body, declared length, the host's own]; kinds
// as in 55-body. Of a stream the length is the declared content-length or -1. The array is only good until the next
// call. Throws a TypeError for everything that cannot be sent: no Response, a network error, a body that was read or is
// locked.
function responseParts(response) {
  const state = typeof response === 'object' && response !== null ? response[fetchSlot] : undefined;
  if (state === undefined || typeof state[responseStatus] !== 'number' || !coreHasOwn(response, fetchSlot)) throw new TypeError('The handler did not return a Response');
  const kind = state[bodyKind];
  if (state[bodyTaken] || kind === bodyStream && bodyUnusable(state)) {
    throw new TypeError('The handler returned a Response whose body was already read or is locked');
  }
  if (kind !== bodyStream) {
    if (kind !== bodyNull) state[bodyTaken] = true;
    if (typeof state[responseHeaders] === 'string' && state[responseFlags] === 0) return state;
  }
  if (state[responseFlags] & responseIsError) throw new TypeError('The handler returned Response.error()');
  const parts = responseFilled;
  parts[0] = state[responseStatus];
  parts[1] = responsePacked(state[responseHeaders]);
  parts[2] = kind;
  parts[3] = state[bodySource];
  parts[4] = kind === bodyStream ? responseDeclaredLength(state) : -1;
  return parts;
}

bodyMixInto(Response);
webInterface(Response);

idlGlobal('fetch', {
  fetch(input, init = undefined) {
    try {
      webArguments(arguments.length, 1, 'fetch');
      new Request(input, init);
      throw new TypeError('fetch failed: outbound requests are not available on this node');
    } catch (failure) {
      return CorePromise.reject(failure);
    }
  },
}.fetch);
