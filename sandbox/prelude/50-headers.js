// Headers: one flat list of lower-case names and values, which for an incoming request stays packed text until the
// first look. Guards: only `immutable` and `request-no-cors` (next file) are kept. The lists of forbidden names protect a
// browser's user from a page; here the page is the program, and a worker must be able to set cookies and any other field.

const headersSlot = coreSlot('list'); // an array, or the packed text
const headersFrozen = coreSlot('guard'); // false, true for immutable, or headersNoCors
const headersSorted = coreSlot('sorted'); // what iteration shows; null if not known

const headersToken = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headersWide = /[^\0-\xff]/;
const headersBad = /[\0\r\n]/;
const headersTrim = /^[\t\n\r ]+|[\t\n\r ]+$/g;

// Checked names and values that come often. Others are checked by the host, which is still faster than an expression.
const headersNames = { __proto__: null };
const headersValues = { __proto__: null };
for (const name of ('Accept Accept-Encoding Accept-Language Accept-Ranges Access-Control-Allow-Credentials Access-Control-Allow-Headers ' +
  'Access-Control-Allow-Methods Access-Control-Allow-Origin Access-Control-Expose-Headers Access-Control-Max-Age Access-Control-Request-Headers ' +
  'Access-Control-Request-Method Age Allow Authorization Cache-Control CF-Connecting-IP Connection Content-Disposition Content-Encoding ' +
  'Content-Language Content-Length Content-Location Content-Range Content-Security-Policy Content-Type Cookie Cross-Origin-Embedder-Policy ' +
  'Cross-Origin-Opener-Policy Cross-Origin-Resource-Policy Date ETag Expect Expires Forwarded From Host If-Match If-Modified-Since If-None-Match ' +
  'If-Range If-Unmodified-Since Last-Modified Link Location Origin Origin-Agent-Cluster Permissions-Policy Pragma Proxy-Authenticate Range Referer ' +
  'Referrer-Policy Retry-After Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Server Server-Timing Set-Cookie Strict-Transport-Security TE Trailer ' +
  'Transfer-Encoding Upgrade User-Agent Vary Via WWW-Authenticate X-Content-Type-Options X-DNS-Prefetch-Control X-Download-Options X-Forwarded-For ' +
  'X-Forwarded-Host X-Forwarded-Proto X-Frame-Options X-Permitted-Cross-Domain-Policies X-Powered-By X-Real-IP X-Request-ID X-Requested-With ' +
  'X-Response-Time X-XSS-Protection').split(' ')) {
  const lower = name.toLowerCase();
  headersNames[name] = headersNames[lower] = lower;
}
for (const value of ['application/json', 'application/json; charset=utf-8', 'application/json; charset=UTF-8', 'application/json;charset=UTF-8',
  'text/html', 'text/html; charset=utf-8', 'text/html; charset=UTF-8', 'text/html;charset=UTF-8', 'text/plain', 'text/plain; charset=utf-8',
  'text/plain; charset=UTF-8', 'text/plain;charset=UTF-8', 'text/css', 'text/javascript', 'text/event-stream', 'application/javascript',
  'application/octet-stream', 'application/x-www-form-urlencoded;charset=UTF-8', 'image/svg+xml', 'no-cache', 'no-store', 'public', 'private',
  'keep-alive', 'close', 'nosniff', 'SAMEORIGIN', 'DENY', '*', 'true', '0', '1', '']) headersValues[value] = true;

function headersName(name) {
  if (typeof name !== 'string') name = `${name}`;
  const known = headersNames[name];
  if (known !== undefined) return known;
  const lower = host.headerName(name);
  if (lower === undefined) throw new TypeError(`Invalid header name: ${name.slice(0, 64)}`);
  return lower;
}

function headersValue(value) {
  if (typeof value !== 'string') value = `${value}`;
  if (headersValues[value] !== undefined || host.headerValue(value)) return value;
  if (headersWide.test(value)) throw new TypeError('Invalid header value: it has a character above U+00FF');
  value = value.replace(headersTrim, '');
  if (headersBad.test(value)) throw new TypeError('Invalid header value: it has a NUL, CR or LF');
  return value;
}

function headersList(headers) {
  const list = headers[headersSlot];
  if (list === undefined || !coreHasOwn(headers, headersSlot)) throw idlIllegal();
  return typeof list === 'string' ? headers[headersSlot] = headersUnpack(list) : list;
}

function headersUnpack(packed) {
  if (packed === '') return [];
  const list = packed.split('\n');
  list.length--; // every field ends with a line feed
  return list;
}

function headersPack(list) {
  return list.length === 0 ? '' : `${list.join('\n')}\n`;
}

// Where the list has the name next, from position at on; -1 if nowhere. Names stand at even positions.
function headersFind(list, name, at) {
  for (;;) {
    at = list.indexOf(name, at);
    if (at < 0 || (at & 1) === 0) return at;
    at++;
  }
}

function headersJoined(list, name) {
  let at = list.indexOf(name);
  if ((at & 1) === 1 && (at < 0 || (at = headersFind(list, name, at + 1)) < 0)) return null;
  let value = list[at + 1];
  while ((at = headersFind(list, name, at + 2)) >= 0) value += `, ${list[at + 1]}`;
  return value;
}

// Checked and lower-case name expected.
function headersSet(list, name, value) {
  const at = headersFind(list, name, 0);
  if (at < 0) {
    list.push(name, value);
    return;
  }
  list[at + 1] = value;
  headersRemove(list, name, at + 2);
}

function headersRemove(list, name, from) {
  let at = headersFind(list, name, from);
  if (at < 0) return;
  let kept = at;
  for (at += 2; at < list.length; at += 2) {
    if (list[at] === name) continue;
    list[kept++] = list[at];
    list[kept++] = list[at + 1];
  }
  list.length = kept;
}

// What iteration shows: sorted by name, values of one name combined, except the cookies.
function headersPairs(headers) {
  const list = headersList(headers);
  let sorted = headers[headersSorted];
  if (sorted !== null) return sorted;
  const values = { __proto__: null };
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i];
    const seen = values[name];
    if (name === 'set-cookie') {
      if (seen === undefined) values[name] = [list[i + 1]];
      else seen.push(list[i + 1]);
    } else {
      values[name] = seen === undefined ? list[i + 1] : `${seen}, ${list[i + 1]}`;
    }
  }
  sorted = [];
  for (const name of idlOwnKeys(values).sort()) {
    const value = values[name];
    if (typeof value === 'string') sorted.push(name, value);
    else for (let i = 0; i < value.length; i++) sorted.push(name, value[i]);
  }
  return headers[headersSorted] = sorted;
}

// Turns a HeadersInit into a list of its own.
function headersFill(init) {
  if (typeof init !== 'object' && typeof init !== 'function' || init === null) throw new TypeError('Headers: the init value is not an object');
  const method = init[idlIterator];
  if (method === headersEntries && init[headersSlot] !== undefined) return headersList(init).slice();
  if (method === undefined || method === null) return headersUnpack(headersFillRecord(init));
  const list = [];
  headersFillPairs(list, init, method);
  return list;
}

let headersFilledType = false; // whether what was filled last has a Content-Type

// As headersFill, but packed.
function headersFillPacked(init) {
  if (typeof init === 'object' && init !== null) {
    const method = init[idlIterator];
    if (method === undefined || method === null) return headersFillRecord(init);
  }
  const list = headersFill(init);
  headersFilledType = headersFind(list, 'content-type', 0) >= 0;
  return headersPack(list);
}

// An object whose own enumerable properties are the headers, packed.
function headersFillRecord(init) {
  let packed = '';
  let typed = false;
  const keys = idlOwnKeys(init);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (!idlIsEnumerable(init, key)) continue;
    let name = headersNames[key];
    if (name === undefined) name = headersName(key);
    let value = init[key];
    if (typeof value !== 'string' || headersValues[value] === undefined) value = headersValue(value);
    packed = `${packed}${name}\n${value}\n`;
    if (name === 'content-type') typed = true;
  }
  headersFilledType = typed;
  return packed;
}

function headersFillPairs(list, init, method) {
  if (typeof method !== 'function') throw new TypeError('Headers: the init value is not iterable');
  for (const pair of { [idlIterator]: () => coreApply(method, init, []) }) {
    if (typeof pair !== 'object' && typeof pair !== 'function' || pair === null) throw new TypeError('Headers: a pair is not iterable');
    const items = [...pair];
    if (items.length !== 2) throw new TypeError('Headers: a pair does not have two items');
    const name = headersName(items[0]);
    list.push(name, headersValue(items[1]));
  }
}

// Makes a Headers without running the constructor: slot is a list that it now owns, or packed text.
function headersMake(slot, frozen) {
  return frozen ? { __proto__: headersPrototype, [headersSlot]: slot, [headersFrozen]: frozen } : { __proto__: headersPrototype, [headersSlot]: slot };
}

// The list, to be changed.
function headersWritable(headers, what) {
  const list = headersList(headers);
  if (headers[headersFrozen] === true) throw new TypeError(`Headers.${what}: these headers are immutable`);
  if (headers[headersSorted] !== null) headers[headersSorted] = null;
  return list;
}

class Headers {
  constructor(init = undefined) {
    this[headersSlot] = init === undefined ? [] : headersFill(init);
  }

  append(...args) {
    if (args.length < 2) webArguments(args.length, 2, 'Headers.append');
    const name = headersName(args[0]);
    const value = headersValue(args[1]);
    const list = headersWritable(this, 'append');
    if (this[headersFrozen] === false) list.push(name, value);
    else guardAppend(list, name, value);
  }

  delete(...args) {
    if (args.length < 1) webArguments(args.length, 1, 'Headers.delete');
    const name = headersName(args[0]);
    const list = headersWritable(this, 'delete');
    if (this[headersFrozen] === false || guardNames.includes(name)) headersRemove(list, name, 0);
  }

  get(...args) {
    const list = headersList(this);
    if (args.length < 1) webArguments(args.length, 1, 'Headers.get');
    return headersJoined(list, headersName(args[0]));
  }

  getSetCookie() {
    const list = headersList(this);
    const values = [];
    for (let at = headersFind(list, 'set-cookie', 0); at >= 0; at = headersFind(list, 'set-cookie', at + 2)) values.push(list[at + 1]);
    return values;
  }

  has(...args) {
    const list = headersList(this);
    if (args.length < 1) webArguments(args.length, 1, 'Headers.has');
    return headersFind(list, headersName(args[0]), 0) >= 0;
  }

  set(...args) {
    if (args.length < 2) webArguments(args.length, 2, 'Headers.set');
    const name = headersName(args[0]);
    const value = headersValue(args[1]);
    const list = headersWritable(this, 'set');
    if (this[headersFrozen] === false || guardSafe(name, value)) headersSet(list, name, value);
  }
}

// A property more costs a new object as much as a call does: what is rarely set stands on the prototype.
const headersPrototype = Headers.prototype;
coreDefine(headersPrototype, headersFrozen, { __proto__: null, value: false, writable: true });
coreDefine(headersPrototype, headersSorted, { __proto__: null, value: null, writable: true });
const headersEntries = idlIterable(Headers, 'Headers', headersPairs);
idlLengths(Headers, { append: 2, delete: 1, get: 1, has: 1, set: 2 });
webInterface(Headers);
