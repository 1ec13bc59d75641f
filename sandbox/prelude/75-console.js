// console: every call becomes one line of text, made here and handed to the host with its level.

const consoleMostText = 16000; // characters of one message
const consoleMostItems = 100; // members shown of one object
const consoleMostDepth = 4;
const consoleMostLabels = 256; // counters and timers that are remembered

let consoleIndent = '';
let consoleCounts = { __proto__: null };
let consoleTimers = { __proto__: null };
let consoleLabels = 0;

const consoleProxy = host.classID(new Proxy({}, {}));
const consolePlainKey = /^[A-Za-z_$][\w$]*$/;
const consoleISO = coreUncurry(Date.prototype.toISOString);
const consoleStack = (error) => (typeof error.stack === 'string' ? error.stack.trimEnd() : '');

// One rendering: budget is how many characters it may still grow, path the objects it is inside of.
function ConsoleShow() {
  this.budget = consoleMostText;
  this.path = [];
}

function consoleQuote(text) { return `'${text.slice(0, consoleMostText).replace(/[\\'\n\r\t]/g, (c) => consoleEscapes[c])}'`; }

const consoleEscapes = { __proto__: null, '\\': '\\\\', "'": "\\'", '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function consoleValue(show, value, depth) {
  switch (typeof value) {
    case 'string': return consoleSpend(show, consoleQuote(value));
    case 'number': return Object.is(value, -0) ? '-0' : `${value}`;
    case 'bigint': return `${value}n`;
    case 'symbol': return value.toString();
    case 'function': return consoleFunction(value);
    case 'object': return value === null ? 'null' : consoleSpend(show, consoleObject(show, value, depth));
  }
  return `${value}`;
}

function consoleSpend(show, text) {
  show.budget -= text.length;
  return text;
}

function consoleFunction(fn) {
  const name = cloneNameOf(fn);
  const kind = coreHasOwn(fn, 'prototype') && coreDescriptor(fn, 'prototype').writable === false ? 'class' : 'Function';
  return name === '' ? `[${kind} (anonymous)]` : `[${kind}: ${name}]`;
}

// The name of the class of an object, by data properties alone: no getter of the user runs.
function consoleClass(object) {
  for (let p = corePrototypeOf(object), i = 0; p !== null && i < 16; p = corePrototypeOf(p), i++) {
    const found = coreDescriptor(p, 'constructor');
    if (found !== undefined && typeof found.value === 'function') return cloneNameOf(found.value);
  }
  return '';
}

function consoleObject(show, object, depth) {
  const clone = cloneClasses.get(host.classID(object));
  if (clone === undefined && host.classID(object) === consoleProxy) return '[Proxy]';
  if (show.path.includes(object)) return '[Circular]';
  if (clone === cloneErrorObject || clone === cloneException) return consoleError(show, object, depth);
  const name = consoleClass(object);
  if (depth > consoleMostDepth || show.budget <= 0) return clone === cloneArray ? '[Array]' : `[${name === '' ? 'Object' : name}]`;
  show.path.push(object);
  const text = consoleBody(show, object, depth, clone, name);
  show.path.pop();
  return text;
}

function consoleBody(show, object, depth, clone, name) {
  const items = [];
  const add = (text) => (items.length < consoleMostItems && show.budget > 0 ? items.push(text()) : 0) > 0;
  if (clone === cloneArray) {
    let shown = 0;
    while (shown < object.length && add(() => consoleMember(show, object, shown, depth))) shown++;
    if (shown < object.length) items.push(`... ${object.length - shown} more`);
    return items.length === 0 ? '[]' : `[ ${items.join(', ')} ]`;
  }
  const special = consoleSpecial(show, object, depth, clone, name, items);
  if (special !== undefined) return special;
  const keys = Object.keys(object);
  for (const key of keys) {
    if (!add(() => `${consolePlainKey.test(key) ? key : consoleQuote(key)}: ${consoleMember(show, object, key, depth)}`)) {
      items.push(`... ${keys.length - items.length} more`);
      break;
    }
  }
  const head = name === 'Object' ? '' : name === '' ? '[Object: null prototype] ' : `${name} `;
  return items.length === 0 ? `${head}{}` : `${head}{ ${items.join(', ')} }`;
}

// A member by its descriptor, so that accessors are named and not called.
function consoleMember(show, object, key, depth) {
  const found = coreDescriptor(object, key);
  if (found === undefined) return '<empty>';
  if (coreHasOwn(found, 'value')) return consoleValue(show, found.value, depth + 1);
  return found.get === undefined ? '[Setter]' : found.set === undefined ? '[Getter]' : '[Getter/Setter]';
}

// Objects that show more, or something else, than their members; undefined for all others.
function consoleSpecial(show, object, depth, clone, name, items) {
  const inner = (value) => (show.budget > 0 && items.length < consoleMostItems ? items.push(value()) : 0);
  switch (clone) {
    case cloneMap:
      coreApply(cloneMapForEach, object, [(value, key) => inner(() => `${consoleValue(show, key, depth + 1)} => ${consoleValue(show, value, depth + 1)}`)]);
      return `Map { ${items.join(', ')} }`;
    case cloneSet:
      coreApply(cloneSetForEach, object, [(value) => inner(() => consoleValue(show, value, depth + 1))]);
      return `Set { ${items.join(', ')} }`;
    case cloneBuffer: return `ArrayBuffer { byteLength: ${idlBufferLength(object)} }`;
    case cloneView: {
      const kind = idlArrayKind(object);
      if (kind === undefined) return `DataView { byteLength: ${idlViewBytes(object)} }`;
      const length = cloneArrayLength(object);
      for (let i = 0; i < length && i < consoleMostItems; i++) inner(() => consoleValue(show, object[i], depth + 1));
      if (length > items.length) items.push(`... ${length - items.length} more`);
      return `${kind}(${length}) [ ${items.join(', ')} ]`;
    }
  }
  if (clone !== clonePlain && clone !== undefined) return consoleLeaf(object);
  if (coreHasOwn(object, headersSlot)) return `Headers ${consolePairs(show, headersPairs(object))}`;
  if (coreHasOwn(object, queryList)) return `URLSearchParams ${consolePairs(show, object[queryList])}`;
  if (fileIs(object)) return `File { name: ${consoleQuote(object.name)}, size: ${object.size}, type: ${consoleQuote(object.type)} }`;
  if (blobIs(object)) return `Blob { size: ${object.size}, type: ${consoleQuote(object.type)} }`;
  if (formIs(object)) return `FormData ${consolePairs(show, formList(object).map((value) => (typeof value === 'string' ? value : '[File]')))}`;
  if (coreHasOwn(object, urlHref)) return `URL { ${consoleQuote(object[urlHref])} }`;
  const state = coreHasOwn(object, fetchSlot) ? object[fetchSlot] : undefined;
  if (requestIs(state)) return `Request { method: ${consoleQuote(state[requestMethod])}, url: ${consoleQuote(requestHref(state))} }`;
  if (responseIs(state)) return `Response { status: ${state[responseStatus]} }`;
  return undefined;
}

function consolePairs(show, list) {
  const items = [];
  for (let i = 0; i < list.length && i < 2 * consoleMostItems && show.budget > 0; i += 2) {
    items.push(consoleSpend(show, `${consoleQuote(list[i])} => ${consoleQuote(list[i + 1])}`));
  }
  return `{ ${items.join(', ')} }`;
}

// Dates, regular expressions and wrapped primitives.
function consoleLeaf(object) {
  try {
    return consoleISO(object);
  } catch {
    return `${object}`.slice(0, consoleMostText);
  }
}

function consoleError(show, error, depth) {
  const stack = consoleStack(error);
  let text = `${error.name}: ${error.message}`;
  if (stack !== '') text += stack.startsWith(text) ? stack.slice(text.length) : `\n${stack}`;
  show.path.push(error);
  const cause = coreDescriptor(error, 'cause');
  if (cause !== undefined && depth < consoleMostDepth) text += `\n  [cause]: ${consoleMember(show, error, 'cause', depth)}`;
  show.path.pop();
  return text;
}

function consoleArgument(show, value) {
  return typeof value === 'string' ? value : consoleValue(show, value, 0);
}

// The Formatter of the Console standard, then the rest of the arguments behind it.
function consoleFormat(args) {
  const show = new ConsoleShow();
  let next = 0;
  let text = '';
  if (args.length > 0 && typeof args[0] === 'string') {
    next = 1;
    text = args.length === 1 || !args[0].includes('%') ? args[0] : args[0].slice(0, consoleMostText).replace(/%[sdifoOc%]/g, (match) => {
      if (match === '%%') return '%';
      return next < args.length ? consoleDirective(show, match, args[next++]) : match;
    });
  }
  for (; next < args.length && text.length < consoleMostText; next++) text += `${next === 0 ? '' : ' '}${consoleArgument(show, args[next])}`;
  return text;
}

function consoleDirective(show, match, value) {
  switch (match) {
    case '%s': return consoleArgument(show, value);
    case '%d': case '%i': return typeof value === 'symbol' ? 'NaN' : typeof value === 'bigint' ? `${value}n` : `${parseInt(value, 10)}`;
    case '%f': return typeof value === 'symbol' ? 'NaN' : `${parseFloat(value)}`;
    case '%c': return '';
  }
  return consoleValue(show, value, 0);
}

function consoleWrite(level, text) {
  if (consoleIndent !== '') text = consoleIndent + text.slice(0, consoleMostText).replaceAll('\n', `\n${consoleIndent}`);
  host.log(level, text.length > consoleMostText ? `${text.slice(0, consoleMostText)}... (${text.length - consoleMostText} characters cut)` : text);
}

// What is logged may be hostile to being shown; logging must not fail for it.
function consoleLine(level, args) {
  let text;
  try {
    text = consoleFormat(args);
  } catch (failure) {
    text = `a value that cannot be shown (${coreDescribe(failure).slice(0, 200)})`;
  }
  consoleWrite(level, text);
}

// Levels as the host numbers them.
const consoleDebug = 0, consoleLog = 1, consoleInfo = 2, consoleWarn = 3, consoleFail = 4;

// Counters and timers are kept by label, and not without end.
function consoleKeep(table, label, value) {
  if (table[label] === undefined && ++consoleLabels > consoleMostLabels) return;
  table[label] = value;
}

function consoleElapsed(label) { return `${label}: ${(coreClock() - consoleTimers[label]).toFixed(3)}ms`; }

// properties: which columns, undefined for those that there are.
function consoleTable(data, properties) {
  if (typeof data !== 'object' || data === null) return undefined;
  const chosen = properties === undefined ? undefined : Array.from(properties, (name) => `${name}`).slice(0, 20);
  const rows = Object.keys(data).slice(0, consoleMostItems);
  const columns = chosen ?? [];
  const cells = rows.map((row) => {
    const value = data[row];
    const cell = { __proto__: null };
    if (typeof value !== 'object' || value === null) {
      cell['Values'] = consoleValue(new ConsoleShow(), value, consoleMostDepth);
    } else {
      const keys = chosen === undefined ? Object.keys(value).slice(0, 20) : chosen.filter((key) => coreHasOwn(value, key));
      for (const key of keys) cell[key] = consoleMember(new ConsoleShow(), value, key, consoleMostDepth);
    }
    if (chosen === undefined) for (const key in cell) if (!columns.includes(key) && columns.length < 20) columns.push(key);
    return cell;
  });
  const grid = [['(index)', ...columns], ...rows.map((row, i) => [row, ...columns.map((column) => cells[i][column] ?? '')])];
  const widths = grid[0].map((_, i) => Math.min(60, Math.max(...grid.map((line) => line[i].length))));
  return grid.map((line) => line.map((cell, i) => cell.slice(0, 60).padEnd(widths[i])).join(' | ').trimEnd()).join('\n');
}

const consoleObjectOf = {
  assert(condition = false, ...data) {
    if (condition) return;
    if (data.length === 0) data = ['Assertion failed'];
    else if (typeof data[0] === 'string') data[0] = `Assertion failed: ${data[0]}`;
    else data.unshift('Assertion failed');
    consoleLine(consoleFail, data);
  },
  clear() { consoleIndent = ''; },
  debug(...data) { consoleLine(consoleDebug, data); },
  error(...data) { consoleLine(consoleFail, data); },
  info(...data) { consoleLine(consoleInfo, data); },
  log(...data) { consoleLine(consoleLog, data); },
  table(tabularData = undefined, properties = undefined) {
    let text;
    try {
      text = consoleTable(tabularData, properties);
    } catch {
      text = undefined;
    }
    if (text === undefined) consoleLine(consoleLog, [tabularData]);
    else consoleWrite(consoleLog, text);
  },
  trace(...data) {
    const stack = consoleStack(new Error()).split('\n').slice(1).join('\n');
    let text = 'Trace';
    try {
      if (data.length > 0) text += `: ${consoleFormat(data)}`;
    } catch {
      text += ': a value that cannot be shown';
    }
    consoleWrite(consoleLog, `${text}\n${stack}`);
  },
  warn(...data) { consoleLine(consoleWarn, data); },
  dir(item = undefined, options = undefined) { consoleLine(consoleLog, typeof item === 'string' ? ['%o', item] : [item]); },
  dirxml(...data) { consoleLine(consoleLog, data); },
  count(label = 'default') {
    label = `${label}`;
    consoleKeep(consoleCounts, label, (consoleCounts[label] ?? 0) + 1);
    consoleWrite(consoleInfo, `${label}: ${consoleCounts[label] ?? 1}`);
  },
  countReset(label = 'default') {
    label = `${label}`;
    if (consoleCounts[label] === undefined) consoleWrite(consoleWarn, `Count for '${label.slice(0, 64)}' does not exist`);
    else consoleCounts[label] = 0;
  },
  group(...data) {
    if (data.length > 0) consoleLine(consoleLog, data);
    if (consoleIndent.length < 32) consoleIndent += '  ';
  },
  groupCollapsed(...data) {
    if (data.length > 0) consoleLine(consoleLog, data);
    if (consoleIndent.length < 32) consoleIndent += '  ';
  },
  groupEnd() { consoleIndent = consoleIndent.slice(2); },
  time(label = 'default') {
    label = `${label}`;
    if (consoleTimers[label] !== undefined) consoleWrite(consoleWarn, `Timer '${label.slice(0, 64)}' already exists`);
    else consoleKeep(consoleTimers, label, coreClock());
  },
  timeLog(label = 'default', ...data) {
    label = `${label}`;
    if (consoleTimers[label] === undefined) consoleWrite(consoleWarn, `Timer '${label.slice(0, 64)}' does not exist`);
    else consoleLine(consoleLog, ['%s', consoleElapsed(label), ...data]);
  },
  timeEnd(label = 'default') {
    label = `${label}`;
    if (consoleTimers[label] === undefined) {
      consoleWrite(consoleWarn, `Timer '${label.slice(0, 64)}' does not exist`);
      return;
    }
    consoleWrite(consoleInfo, consoleElapsed(label));
    delete consoleTimers[label];
    consoleLabels--;
  },
};

// A namespace object: its members are enumerable, its prototype is an object of its own.
const consoleGlobal = coreCreate({});
for (const key of idlOwnKeys(consoleObjectOf)) {
  coreDefine(consoleGlobal, key, { __proto__: null, value: consoleObjectOf[key], writable: true, configurable: true, enumerable: true });
}
coreDefine(consoleGlobal, Symbol.toStringTag, { __proto__: null, value: 'console', configurable: true });
expose('console', consoleGlobal);
