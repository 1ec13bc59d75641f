// Response, and what the host gets of one.

// Places in the state, around those of the body; a Request has a string where the status is. The first six are as the
// host reads them (dispatchFinish).
const responseStatus = 0;
const responseHeaders = 1; // a Headers, or packed text, which is made into one when somebody looks
const responseTasks = 5; // set when it is sent
const responseReason = 7;
const responseFlags = 8;
const responseURL = 9; // only of one that came from outside

const responseIsError = 1;
const responseFrozen = 2; // its headers are immutable
const responseIsRedirected = 4;
const responseIsBasic = 8; // it came from outside

let responseTextPacked = headersPack(['content-type', bodyTextType]);
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

  get type() {
    const flags = responseState(this)[responseFlags];
    return flags & responseIsError ? 'error' : flags & responseIsBasic ? 'basic' : 'default';
  }
  get url() { return responseState(this)[responseURL] ?? ''; }
  get redirected() { return (responseState(this)[responseFlags] & responseIsRedirected) !== 0; }
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
    const copy = [state[responseStatus], responsePacked(state[responseHeaders]), bodyNull, null, -1, 0, false, state[responseReason], state[responseFlags], state[responseURL]];
    bodyClone(state, copy);
    return responseMake(copy);
  }
}

coreDefine(Response, 'length', { __proto__: null, value: 0 });
coreDefine(Response.json, 'length', { __proto__: null, value: 1 });

const responsePrototype = Response.prototype;

// What the constructor makes, of a state that is there. An object literal with a prototype would do, but the engine gives each of those a
// shape of its own; the host knows a Response that it can read by itself by the shape (dispatchFinish).
function ResponseMade(state) { this[fetchSlot] = state; }
ResponseMade.prototype = responsePrototype;

function responseMake(state) { return new ResponseMade(state); }

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

bodyMixInto(Response);
webInterface(Response);
