// URLPattern (URL Pattern standard). The host compiles patterns; here they are matched, by the engine's own expressions.

const patternComponents = ['protocol', 'username', 'password', 'hostname', 'port', 'pathname', 'search', 'hash'];
const patternSchemes = ['http', 'https', 'ws', 'wss', 'ftp', 'file'];
const patternAll = 0; // how a component is matched, as the host numbers it
const patternText = 1;
const PatternRegExp = RegExp;
const patternExec = RegExp.prototype.exec;

function patternExpression(source, flags) {
  try {
    return new PatternRegExp(source, flags);
  } catch {
    throw new TypeError('URLPattern: a regular expression in the pattern is not valid');
  }
}

// The nine strings of a URLPatternInit, undefined where it says nothing, read in the order of their names.
function patternInit(init, what) {
  webDict(init, what);
  const read = { __proto__: null };
  if (init !== undefined && init !== null) {
    for (const key of ['baseURL', 'hash', 'hostname', 'password', 'pathname', 'port', 'protocol', 'search', 'username']) {
      const value = init[key];
      if (value !== undefined) read[key] = idlUSV(value);
    }
  }
  return read;
}

function patternList(read) {
  const list = patternComponents.map((key) => read[key]);
  list.push(read.baseURL);
  return list;
}

function patternIsInit(input) { return typeof input === 'object' && input !== null || typeof input === 'function' || input === undefined || input === null; }

// Where the input of test or exec has its components; null if it is no URL.
function patternTarget(input, base) {
  if (patternIsInit(input)) {
    const read = patternInit(input, 'URLPattern: the input');
    if (base !== undefined) throw new TypeError('URLPattern: a base URL goes with a string only');
    const parts = host.patternURL(patternList(read));
    return parts === undefined ? null : { parts, inputs: [{ ...read }] };
  }
  input = idlUSV(input);
  const inputs = [input];
  if (base !== undefined) {
    base = idlUSV(base);
    inputs.push(base);
  }
  const url = URL.parse(input, base);
  if (url === null) return null;
  const { protocol, search, hash } = url;
  return { parts: [protocol.slice(0, -1), url.username, url.password, url.hostname, url.port, url.pathname, search.slice(1), hash.slice(1)], inputs };
}

let patternOf;

class URLPattern {
  #compiled; // of every component four places, as the host gives them; the text of an expression is one

  constructor(input = undefined, base = undefined, options = undefined) {
    if (arguments.length < 3 && (base === undefined || base === null || typeof base === 'object' || typeof base === 'function')) {
      options = base;
      base = undefined;
    } else {
      base = idlUSV(base);
    }
    let pattern;
    if (patternIsInit(input)) {
      pattern = patternList(patternInit(input, 'URLPattern: the pattern'));
      if (base !== undefined) throw new TypeError('URLPattern: a base URL goes with a string only');
    } else {
      pattern = [idlUSV(input), base, null];
    }
    const ignoreCase = !!webDict(options, 'URLPattern: options').ignoreCase;
    let compiled, answers = '';
    while (typeof (compiled = host.patternCompile(pattern, ignoreCase, answers)) === 'string') {
      const expression = patternExpression(compiled, 'v');
      answers += patternSchemes.some((scheme) => coreApply(patternExec, expression, [scheme]) !== null) ? '1' : '0';
    }
    for (let i = 0; i < 32; i += 4) {
      if (compiled[i + 1] > patternText) compiled[i + 2] = patternExpression(compiled[i + 2], ignoreCase && i >= 20 ? 'vi' : 'v');
      compiled[i + 3] = compiled[i + 3] === '' ? [] : compiled[i + 3].split(',');
    }
    this.#compiled = compiled;
  }

  static {
    patternOf = (pattern, at) => pattern.#compiled[at];
  }

  // Matches one component. Returns its groups, or null; on a match that is only tested the groups are true.
  #match(i, text, groups) {
    const compiled = this.#compiled;
    const kind = compiled[4 * i + 1];
    if (kind === patternAll) return groups === null ? true : { 0: text };
    if (kind === patternText) return compiled[4 * i + 2] === text ? groups ?? true : null;
    const found = coreApply(patternExec, compiled[4 * i + 2], [text]);
    if (found === null) return null;
    if (groups === null) return true;
    const names = compiled[4 * i + 3];
    for (let n = 0; n < names.length; n++) {
      coreDefine(groups, names[n], { __proto__: null, value: found[n + 1], writable: true, enumerable: true, configurable: true });
    }
    return groups;
  }

  test(input = undefined, baseURL = undefined) {
    this.#compiled;
    const target = patternTarget(input, baseURL);
    if (target === null) return false;
    for (let i = 0; i < 8; i++) if (this.#match(i, target.parts[i], null) === null) return false;
    return true;
  }

  exec(input = undefined, baseURL = undefined) {
    this.#compiled;
    const target = patternTarget(input, baseURL);
    if (target === null) return null;
    const result = { inputs: target.inputs };
    for (let i = 0; i < 8; i++) {
      const text = target.parts[i];
      const groups = this.#match(i, text, {});
      if (groups === null) return null;
      result[patternComponents[i]] = { input: text, groups };
    }
    return result;
  }

  get hasRegExpGroups() { return this.#compiled[32]; }
}

for (let i = 0; i < 8; i++) {
  const name = patternComponents[i];
  coreDefine(URLPattern.prototype, name, {
    __proto__: null,
    get: coreDescriptor({ get [name]() { return patternOf(this, 4 * i); } }, name).get,
    set: undefined, enumerable: true, configurable: true,
  });
}
webInterface(URLPattern);
