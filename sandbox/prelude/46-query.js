// URLSearchParams, and application/x-www-form-urlencoded in both directions.

const queryList = coreSlot('list'); // flat: name, value, name, value
const queryURL = coreSlot('url'); // the URL whose query this is, or null

const queryPlain = /^[A-Za-z0-9*\-._]*$/; // what serialises as itself
const queryRest = /%20|[!'()~]/g; // what the engine's encoder does otherwise than this format
const queryRestTo = { __proto__: null, '%20': '+', '!': '%21', "'": '%27', '(': '%28', ')': '%29', '~': '%7E' };

function queryWord(match) { return queryRestTo[match]; }

function queryEncode(text) {
  return queryPlain.test(text) ? text : encodeURIComponent(text).replace(queryRest, queryWord);
}

function queryDecode(text) {
  if (text.includes('+')) text = text.replaceAll('+', ' ');
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return host.percentDecode(text);
  }
}

// Parses a query, with or without its question mark, into a list. The text has no lone surrogates.
function queryParse(text) {
  return queryBody(text.charCodeAt(0) === 63 ? text.slice(1) : text);
}

// As queryParse, for text in which a question mark at the start means itself.
function queryBody(text) {
  const list = [];
  if (text === '') return list;
  const encoded = text.includes('%') || text.includes('+');
  const pieces = text.split('&');
  for (let i = 0; i < pieces.length; i++) {
    const piece = pieces[i];
    if (piece === '') continue;
    const at = piece.indexOf('=');
    const name = at < 0 ? piece : piece.slice(0, at);
    const value = at < 0 ? '' : piece.slice(at + 1);
    if (encoded) list.push(queryDecode(name), queryDecode(value));
    else list.push(name, value);
  }
  return list;
}

function querySerialise(list) {
  let text = '';
  for (let i = 0; i < list.length; i += 2) {
    text += `${i === 0 ? '' : '&'}${queryEncode(list[i])}=${queryEncode(list[i + 1])}`;
  }
  return text;
}

function queryPairs(query) {
  const list = query[queryList];
  if (list === undefined || !coreHasOwn(query, queryList)) throw idlIllegal();
  return list;
}

function queryOf(url) {
  return { __proto__: queryPrototype, [queryList]: queryParse(url.search), [queryURL]: url };
}

function queryUpdate(query) {
  if (query[queryURL] !== null) urlWriteQuery(query[queryURL], querySerialise(query[queryList]));
}

function queryFromObject(init) {
  const method = init[idlIterator];
  const list = [];
  if (method !== undefined && method !== null) {
    if (typeof method !== 'function') throw new TypeError('URLSearchParams: the init object is not iterable');
    for (const pair of { [idlIterator]: () => coreApply(method, init, []) }) {
      if (typeof pair !== 'object' && typeof pair !== 'function' || pair === null) throw new TypeError('URLSearchParams: a pair is not iterable');
      const items = [...pair];
      if (items.length !== 2) throw new TypeError('URLSearchParams: a pair does not have two items');
      list.push(idlUSV(items[0]), idlUSV(items[1]));
    }
    return list;
  }
  const seen = new Map(); // two keys may become one name: the later value takes the earlier place
  for (const key of idlOwnKeys(init)) {
    if (!idlIsEnumerable(init, key)) continue;
    const name = idlUSV(key);
    const value = idlUSV(init[key]);
    const at = seen.get(name);
    if (at !== undefined) {
      list[at] = value;
    } else {
      list.push(name, value);
      seen.set(name, list.length - 1);
    }
  }
  return list;
}

class URLSearchParams {
  constructor(init = '') {
    const object = (typeof init === 'object' || typeof init === 'function') && init !== null;
    this[queryList] = object ? queryFromObject(init) : queryParse(idlUSV(init));
    this[queryURL] = null;
  }

  get size() { return queryPairs(this).length / 2; }

  append(name, value) {
    const list = queryPairs(this);
    webArguments(arguments.length, 2, 'URLSearchParams.append');
    name = idlUSV(name);
    list.push(name, idlUSV(value));
    queryUpdate(this);
  }

  delete(name, value = undefined) {
    const list = queryPairs(this);
    webArguments(arguments.length, 1, 'URLSearchParams.delete');
    name = idlUSV(name);
    if (value !== undefined) value = idlUSV(value);
    let kept = 0;
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name && (value === undefined || list[i + 1] === value)) continue;
      list[kept++] = list[i];
      list[kept++] = list[i + 1];
    }
    list.length = kept;
    queryUpdate(this);
  }

  get(name) {
    const list = queryPairs(this);
    webArguments(arguments.length, 1, 'URLSearchParams.get');
    name = idlUSV(name);
    for (let i = 0; i < list.length; i += 2) if (list[i] === name) return list[i + 1];
    return null;
  }

  getAll(name) {
    const list = queryPairs(this);
    webArguments(arguments.length, 1, 'URLSearchParams.getAll');
    name = idlUSV(name);
    const values = [];
    for (let i = 0; i < list.length; i += 2) if (list[i] === name) values.push(list[i + 1]);
    return values;
  }

  has(name, value = undefined) {
    const list = queryPairs(this);
    webArguments(arguments.length, 1, 'URLSearchParams.has');
    name = idlUSV(name);
    if (value !== undefined) value = idlUSV(value);
    for (let i = 0; i < list.length; i += 2) if (list[i] === name && (value === undefined || list[i + 1] === value)) return true;
    return false;
  }

  set(name, value) {
    const list = queryPairs(this);
    webArguments(arguments.length, 2, 'URLSearchParams.set');
    name = idlUSV(name);
    value = idlUSV(value);
    let kept = 0;
    let found = false;
    for (let i = 0; i < list.length; i += 2) {
      const same = list[i] === name;
      if (same && found) continue;
      list[kept++] = list[i];
      list[kept++] = same ? value : list[i + 1];
      if (same) found = true;
    }
    list.length = kept;
    if (!found) list.push(name, value);
    queryUpdate(this);
  }

  sort() {
    const list = queryPairs(this);
    const pairs = [];
    for (let i = 0; i < list.length; i += 2) pairs.push([list[i], list[i + 1]]);
    pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    for (let i = 0; i < pairs.length; i++) {
      list[2 * i] = pairs[i][0];
      list[2 * i + 1] = pairs[i][1];
    }
    queryUpdate(this);
  }

  toString() { return querySerialise(queryPairs(this)); }
}

const queryPrototype = URLSearchParams.prototype;
idlIterable(URLSearchParams, 'URLSearchParams', queryPairs);
webInterface(URLSearchParams);
