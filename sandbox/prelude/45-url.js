// URL and URLSearchParams. The host parses; it gives back the serialised URL and where its parts begin and end, so
// that reading a part is one slice.

// The host writes the parts of the URL it parsed last into urlScratch. Whoever they belong to is urlOwner; a URL whose
// parts were overwritten asks again and keeps its own copy.
const urlScratch = new Int32Array(9);
const urlScratchBytes = new Uint8Array(urlScratch.buffer);
let urlOwner = null;

// Positions in the serialised URL, by index into the parts.
const urlProtocolEnd = 0; // after the colon
const urlUserStart = 1;
const urlUserEnd = 2; // a password begins one after it
const urlPasswordEnd = 3;
const urlHostStart = 4;
const urlHostEnd = 5; // a port begins one after it
const urlPathStart = 6;
const urlSearchStart = 7; // of the question mark; the hash's start if there is none
const urlHashStart = 8; // of the hash sign; the length if there is none

// Which part a setter sets, as the host numbers them.
const urlSetProtocol = 0, urlSetUsername = 1, urlSetPassword = 2, urlSetHost = 3, urlSetHostname = 4, urlSetPort = 5,
  urlSetPathname = 6, urlSetSearch = 7, urlSetHash = 8;

const urlHref = coreSlot('href');
const urlParts = coreSlot('parts');
const urlQuery = coreSlot('query object');

function urlText(url) {
  const href = url[urlHref];
  if (href === undefined || !coreHasOwn(url, urlHref)) throw idlIllegal();
  return href;
}

function urlLocate(url) {
  if (urlOwner === url) return urlScratch;
  let parts = url[urlParts];
  if (parts === null) {
    host.urlParse(url[urlHref], undefined, urlScratchBytes);
    urlOwner = null;
    parts = url[urlParts] = new Int32Array(urlScratch);
  }
  return parts;
}

function urlAdopt(url, href) {
  url[urlHref] = href;
  url[urlParts] = null;
  urlOwner = url;
}

function urlParse(input, base) {
  if (typeof input !== 'string') input = `${input}`;
  if (base !== undefined && typeof base !== 'string') base = `${base}`;
  return host.urlParse(input, base, urlScratchBytes);
}

function urlChange(url, part, value) {
  if (typeof value !== 'string') value = `${value}`;
  const href = host.urlSet(urlText(url), part, value, urlScratchBytes);
  urlOwner = null;
  if (href !== undefined) urlAdopt(url, href);
}

// Gives the URL of a query object the query that its list says.
function urlWriteQuery(url, query) {
  const parts = new Int32Array(urlLocate(url));
  const href = url[urlHref];
  const start = parts[urlSearchStart];
  const written = query === '' ? '' : `?${query}`;
  url[urlHref] = href.slice(0, start) + written + href.slice(parts[urlHashStart]);
  parts[urlHashStart] = start + written.length;
  url[urlParts] = parts;
  if (urlOwner === url) urlOwner = null;
}

class URL {
  constructor(url, base = undefined) {
    webArguments(arguments.length, 1, 'URL');
    const href = urlParse(url, base);
    if (href === undefined) {
      urlOwner = null;
      throw new TypeError('Invalid URL');
    }
    this[urlQuery] = null;
    urlAdopt(this, href);
  }

  static parse(url, base = undefined) {
    webArguments(arguments.length, 1, 'URL.parse');
    const href = urlParse(url, base);
    urlOwner = null;
    if (href === undefined) return null;
    const made = coreCreate(URL.prototype);
    made[urlQuery] = null;
    urlAdopt(made, href);
    return made;
  }

  static canParse(url, base = undefined) {
    webArguments(arguments.length, 1, 'URL.canParse');
    urlOwner = null;
    return urlParse(url, base) !== undefined;
  }

  get href() { return urlText(this); }
  set href(value) {
    urlText(this);
    const href = urlParse(value, undefined);
    urlOwner = null;
    if (href === undefined) throw new TypeError('Invalid URL');
    urlAdopt(this, href);
    urlReadQuery(this);
  }

  get origin() {
    const href = urlText(this);
    const parts = urlLocate(this);
    switch (href.slice(0, parts[urlProtocolEnd])) {
      case 'http:': case 'https:': case 'ws:': case 'wss:': case 'ftp:':
        return href.slice(0, parts[urlProtocolEnd]) + '//' + href.slice(parts[urlHostStart], parts[urlPathStart]);
      case 'blob:': {
        const inner = URL.parse(href.slice(parts[urlPathStart], parts[urlSearchStart]));
        return inner !== null && (inner.protocol === 'http:' || inner.protocol === 'https:') ? inner.origin : 'null';
      }
    }
    return 'null';
  }

  get protocol() {
    const href = urlText(this);
    return href.slice(0, urlLocate(this)[urlProtocolEnd]);
  }
  set protocol(value) { urlChange(this, urlSetProtocol, value); }

  get username() {
    const href = urlText(this);
    const parts = urlLocate(this);
    return href.slice(parts[urlUserStart], parts[urlUserEnd]);
  }
  set username(value) { urlChange(this, urlSetUsername, value); }

  get password() {
    const href = urlText(this);
    const parts = urlLocate(this);
    return parts[urlPasswordEnd] > parts[urlUserEnd] ? href.slice(parts[urlUserEnd] + 1, parts[urlPasswordEnd]) : '';
  }
  set password(value) { urlChange(this, urlSetPassword, value); }

  get host() {
    const href = urlText(this);
    const parts = urlLocate(this);
    return href.slice(parts[urlHostStart], urlPortEnd(href, parts));
  }
  set host(value) { urlChange(this, urlSetHost, value); }

  get hostname() {
    const href = urlText(this);
    const parts = urlLocate(this);
    return href.slice(parts[urlHostStart], parts[urlHostEnd]);
  }
  set hostname(value) { urlChange(this, urlSetHostname, value); }

  get port() {
    const href = urlText(this);
    const parts = urlLocate(this);
    return href.slice(parts[urlHostEnd] + 1, urlPortEnd(href, parts));
  }
  set port(value) { urlChange(this, urlSetPort, value); }

  get pathname() {
    const href = urlText(this);
    const parts = urlLocate(this);
    return href.slice(parts[urlPathStart], parts[urlSearchStart]);
  }
  set pathname(value) { urlChange(this, urlSetPathname, value); }

  get search() {
    const href = urlText(this);
    const parts = urlLocate(this);
    const start = parts[urlSearchStart];
    const end = parts[urlHashStart];
    return end - start <= 1 ? '' : href.slice(start, end);
  }
  set search(value) {
    urlChange(this, urlSetSearch, value);
    urlReadQuery(this);
  }

  get searchParams() {
    urlText(this);
    return this[urlQuery] ??= queryOf(this);
  }

  get hash() {
    const href = urlText(this);
    const start = urlLocate(this)[urlHashStart];
    return href.length - start <= 1 ? '' : href.slice(start);
  }
  set hash(value) { urlChange(this, urlSetHash, value); }

  toString() { return urlText(this); }
  toJSON() { return urlText(this); }
}

// Between host and path stands a port, or the mark that keeps a path with two slashes apart from a host.
function urlPortEnd(href, parts) {
  const end = parts[urlHostEnd];
  return href.charCodeAt(end) === 58 ? parts[urlPathStart] : end;
}

function urlReadQuery(url) {
  const query = url[urlQuery];
  if (query !== null) query[queryList] = queryParse(url.search);
}

webInterface(URL);
