// Request. What arrives from a client is made by dispatchPrepare and stays unparsed until somebody looks.

// Places in the state, around those of the body; a Response has a number where the method is.
const requestMethod = 0;
const requestHeaders = 1; // a Headers, or for an incoming request the packed text
const requestURL = 4; // serialised; null as long as only the received form is known
const requestRaw = 5; // as received; null unless incoming
const requestSignal = 7; // an AbortSignal; null before the first look
const requestRest = 8; // what only callers of fetch set: a record of plain values
const requestOwner = 9; // the invocation that an incoming request came with

const requestNormal = { __proto__: null, delete: 'DELETE', get: 'GET', head: 'HEAD', options: 'OPTIONS', post: 'POST', put: 'PUT' };
const requestKnown = { __proto__: null, DELETE: true, GET: true, HEAD: true, OPTIONS: true, PATCH: true, POST: true, PUT: true };

const requestEnums = {
  __proto__: null,
  cache: ['default', 'no-store', 'reload', 'no-cache', 'force-cache', 'only-if-cached'],
  credentials: ['omit', 'same-origin', 'include'],
  duplex: ['half'],
  mode: ['navigate', 'same-origin', 'no-cors', 'cors'],
  priority: ['high', 'low', 'auto'],
  redirect: ['follow', 'error', 'manual'],
  referrerPolicy: ['', 'no-referrer', 'no-referrer-when-downgrade', 'same-origin', 'origin', 'strict-origin', 'origin-when-cross-origin',
    'strict-origin-when-cross-origin', 'unsafe-url'],
};

function requestValues(values) { return Object.freeze({ __proto__: null, ...values }); }

// The values of a request that was made without saying more; an incoming one has them too, as the standard's
// server-side runtimes agree.
const requestDefaults = requestValues({
  cache: 'default', credentials: 'same-origin', integrity: '', keepalive: false, mode: 'cors', redirect: 'follow',
  referrer: 'about:client', referrerPolicy: '',
});
const requestIncomingRest = requestValues({ ...requestDefaults, redirect: 'manual' });

// The members of RequestInit in the order in which they must be read. `window` may only be null.
const requestMembers = ['body', 'cache', 'credentials', 'duplex', 'headers', 'integrity', 'keepalive', 'method', 'mode', 'priority',
  'redirect', 'referrer', 'referrerPolicy', 'signal', 'window'];

function requestInit(init) {
  const read = { __proto__: null };
  if (init === undefined || init === null) return read;
  webDict(init, 'Request: init');
  for (let i = 0; i < requestMembers.length; i++) {
    const member = requestMembers[i];
    let value = init[member];
    if (value === undefined) continue;
    const values = requestEnums[member];
    if (values !== undefined) {
      value = `${value}`;
      if (!values.includes(value)) throw new TypeError(`Request: "${value.slice(0, 64)}" is no value of ${member}`);
    } else if (member === 'method' || member === 'integrity' || member === 'referrer') {
      value = `${value}`;
    }
    read[member] = value;
  }
  if (read.window !== undefined && read.window !== null) throw new TypeError('Request: window can only be null');
  if (read.mode === 'navigate') throw new TypeError('Request: the mode cannot be navigate');
  return read;
}

function requestCheckMethod(method) {
  if (requestKnown[method] === true) return method;
  if (!headersToken.test(method)) throw new TypeError('Request: the method is not a token');
  const lower = method.toLowerCase();
  if (lower === 'connect' || lower === 'trace' || lower === 'track') throw new TypeError(`Request: the method ${method} is not allowed`);
  return requestNormal[lower] ?? method;
}

function requestReferrer(value) {
  if (value === '') return 'no-referrer';
  const parsed = urlParse(value, undefined);
  urlOwner = null;
  if (parsed === undefined) throw new TypeError('Request: the referrer is not a valid URL');
  return 'about:client'; // a worker has no origin, so no referrer is of its own
}

function requestParse(input) {
  const url = urlParse(input, undefined);
  urlOwner = null;
  if (url === undefined) throw new TypeError('Request: the URL is not valid');
  if (urlScratch[urlUserEnd] > urlScratch[urlUserStart] || urlScratch[urlPasswordEnd] > urlScratch[urlUserEnd]) {
    throw new TypeError('Request: the URL has credentials');
  }
  return url;
}

function requestSettings(read, from) {
  const rest = { __proto__: null };
  for (const key in requestDefaults) rest[key] = read[key] === undefined ? from[key] : read[key];
  rest.keepalive = !!rest.keepalive;
  if (read.referrer !== undefined) rest.referrer = requestReferrer(read.referrer);
  if (rest.cache === 'only-if-cached' && rest.mode !== 'same-origin') throw new TypeError('Request: only-if-cached needs the mode same-origin');
  if (rest.mode === 'no-cors' && read.method !== undefined && !['GET', 'HEAD', 'POST'].includes(requestCheckMethod(read.method))) {
    throw new TypeError('Request: this method is not allowed with the mode no-cors');
  }
  return Object.freeze(rest);
}

function requestOwnSignal(read, from) {
  if (read.signal === undefined) return from === undefined ? null : requestSignalOf(from);
  if (read.signal === null) return null;
  if (typeof read.signal !== 'object' || !coreHasOwn(read.signal, kSignal)) throw new TypeError('Request: the signal is not an AbortSignal');
  return read.signal;
}

// The body of a request under construction: the one in init, or the one of the request it is made from.
function requestBody(request, read, from) {
  const own = read.body !== undefined && read.body !== null;
  const inherited = from !== undefined && from[bodyKind] !== bodyNull;
  if ((own || inherited) && (request[requestMethod] === 'GET' || request[requestMethod] === 'HEAD')) {
    throw new TypeError('Request: a GET or HEAD request cannot have a body');
  }
  if (own) {
    const type = bodyExtract(request, read.body);
    if (request[bodyKind] === bodyStream) {
      if (read.duplex === undefined) throw new TypeError('Request: a stream as body needs duplex: "half"');
      if (request[requestRest].mode === 'no-cors') throw new TypeError('Request: a stream as body is not allowed with this mode');
      if (request[requestRest].keepalive) throw new TypeError('Request: a stream as body is not allowed with keepalive');
    }
    const list = request[requestHeaders][headersSlot];
    if (type !== null && headersFind(list, 'content-type', 0) < 0) {
      if (request[requestRest].mode === 'no-cors') guardAppend(list, 'content-type', type);
      else list.push('content-type', type);
    }
  } else if (inherited) {
    if (bodyUnusable(from)) throw new TypeError('Request: the body of the given request was already read or is locked');
    bodyMove(from, request);
  }
}

class Request {
  constructor(input, init = undefined) {
    webArguments(arguments.length, 1, 'Request');
    const from = typeof input === 'object' && input !== null && requestIs(input[fetchSlot]) && coreHasOwn(input, fetchSlot) ? input[fetchSlot] : undefined;
    if (from === undefined && typeof input !== 'string') input = `${input}`;
    const read = requestInit(init);
    const url = from === undefined ? requestParse(input) : requestHref(from);
    const rest = init === undefined && from === undefined ? requestDefaults : requestSettings(read, from === undefined ? requestDefaults : from[requestRest]);
    const method = read.method !== undefined ? requestCheckMethod(read.method) : from === undefined ? 'GET' : from[requestMethod];
    const source = requestOwnSignal(read, from);
    const list = read.headers !== undefined ? headersFill(read.headers) : from === undefined ? [] : headersList(requestHeadersOf(from)).slice();
    const headers = rest.mode === 'no-cors' ? headersMake(guardFilter(list), headersNoCors) : headersMake(list, false);
    const state = [method, headers, bodyNull, null, url, null, false, null, rest];
    requestBody(state, read, from);
    if (source !== null) state[requestSignal] = signalAny([source]);
    this[fetchSlot] = state;
  }

  get method() { return requestState(this)[requestMethod]; }
  get url() { return requestHref(requestState(this)); }
  get headers() { return requestHeadersOf(requestState(this)); }
  get destination() { return requestFixed(this, ''); }
  get referrer() {
    const referrer = requestState(this)[requestRest].referrer;
    return referrer === 'no-referrer' ? '' : referrer;
  }
  get referrerPolicy() { return requestState(this)[requestRest].referrerPolicy; }
  get mode() { return requestState(this)[requestRest].mode; }
  get credentials() { return requestState(this)[requestRest].credentials; }
  get cache() { return requestState(this)[requestRest].cache; }
  get redirect() { return requestState(this)[requestRest].redirect; }
  get integrity() { return requestState(this)[requestRest].integrity; }
  get keepalive() { return requestState(this)[requestRest].keepalive; }
  get isReloadNavigation() { return requestFixed(this, false); }
  get isHistoryNavigation() { return requestFixed(this, false); }
  get signal() { return requestSignalOf(requestState(this)); }
  get duplex() { return requestFixed(this, 'half'); }

  clone() {
    const state = requestState(this);
    if (bodyUnusable(state)) throw new TypeError('Request.clone: the body was already read or is locked');
    const headers = requestHeadersOf(state);
    const copy = [state[requestMethod], headersMake(headersList(headers).slice(), headers[headersFrozen]), bodyNull, null, requestHref(state), null,
      false, signalAny([requestSignalOf(state)]), state[requestRest]];
    bodyClone(state, copy);
    return { __proto__: requestPrototype, [fetchSlot]: copy };
  }
}

const requestPrototype = Request.prototype;

function requestIs(state) { return state !== undefined && typeof state[requestMethod] === 'string'; }

function requestState(request) {
  const state = request[fetchSlot];
  if (state === undefined || typeof state[requestMethod] !== 'string' || !coreHasOwn(request, fetchSlot)) throw idlIllegal();
  return state;
}

// What is the same for all requests of a worker.
function requestFixed(request, value) {
  requestState(request);
  return value;
}

// The URL, serialised. The router has checked the host; should a received URL not parse, it is shown as received.
function requestHref(state) {
  return state[requestURL] ??= requestSerialise(state[requestRaw]);
}

function requestSerialise(raw) {
  const href = urlParse(raw, undefined);
  urlOwner = null;
  return href ?? raw;
}

function requestHeadersOf(state) {
  const headers = state[requestHeaders];
  return typeof headers === 'string' ? state[requestHeaders] = headersMake(headers, true) : headers;
}

function requestSignalOf(state) {
  return state[requestSignal] ??= state[requestRaw] === null ? makeSignal() : incomingSignal(state[requestOwner]);
}

bodyMixInto(Request);
webInterface(Request);
