// Event and EventTarget (DOM standard, the part that has no tree), and the events the runtime fires.
//
// An event keeps its state in one record under kEvent; a target keeps its listeners under kListeners, null until the
// first one. What a listener throws is diagnostics: it never reaches the code that dispatched.

const kEvent = coreSlot('event');
const kListeners = coreSlot('listeners');
const kHandlers = coreSlot('handlers');

// Gives a class the outside that WebIDL asks for (enumerable members, a string tag) and makes it a global.
function webInterface(C) {
  webEnumerable(C.prototype, ['constructor']);
  webEnumerable(C, ['length', 'name', 'prototype']);
  Object.defineProperty(C.prototype, Symbol.toStringTag, { value: C.name, configurable: true });
  expose(C.name, C);
}

function webEnumerable(object, except) {
  for (const key of Object.getOwnPropertyNames(object)) {
    if (!except.includes(key)) Object.defineProperty(object, key, { enumerable: true });
  }
}

// WebIDL dictionaries: undefined and null are the empty one, any other non-object is a TypeError.
const emptyDict = Object.freeze({ __proto__: null });

function webDict(value, what) {
  if (value === undefined || value === null) return emptyDict;
  if (typeof value !== 'object' && typeof value !== 'function') throw new TypeError(`${what} must be an object`);
  return value;
}

// [EnforceRange] unsigned long long.
function webEnforceRange(value, what) {
  const number = Math.trunc(+value);
  if (!(number >= 0 && number <= Number.MAX_SAFE_INTEGER)) throw new TypeError(`${what} is not an integer in range`);
  return number + 0;
}

function webArguments(given, needed, what) {
  if (given < needed) throw new TypeError(`${what} needs ${needed} argument${needed === 1 ? '' : 's'}, got ${given}`);
}

function eventOf(value) {
  const state = value?.[kEvent];
  if (state === undefined || !coreHasOwn(value, kEvent)) throw new TypeError('Illegal invocation: not an Event');
  return state;
}

const isTrustedDescriptor = {
  get: Object.getOwnPropertyDescriptor({ get isTrusted() { return eventOf(this).trusted; } }, 'isTrusted').get,
  set: undefined,
  enumerable: true,
  configurable: false,
};

class Event {
  constructor(type, eventInitDict = undefined) {
    webArguments(arguments.length, 1, 'Event');
    type = `${type}`;
    const init = webDict(eventInitDict, 'eventInitDict');
    const bubbles = !!init.bubbles, cancelable = !!init.cancelable, composed = !!init.composed;
    this[kEvent] = {
      type, bubbles, cancelable, composed, target: null, currentTarget: null, phase: 0, canceled: false,
      stop: false, stopNow: false, passive: false, dispatching: false, trusted: false, time: coreClock(),
    };
    Object.defineProperty(this, 'isTrusted', isTrustedDescriptor);
  }
  get type() { return eventOf(this).type; }
  get target() { return eventOf(this).target; }
  get srcElement() { return eventOf(this).target; }
  get currentTarget() { return eventOf(this).currentTarget; }
  composedPath() {
    const { currentTarget } = eventOf(this);
    return currentTarget === null ? [] : [currentTarget];
  }
  get eventPhase() { return eventOf(this).phase; }
  stopPropagation() { eventOf(this).stop = true; }
  get cancelBubble() { return eventOf(this).stop; }
  set cancelBubble(value) {
    const state = eventOf(this);
    if (value) state.stop = true;
  }
  stopImmediatePropagation() {
    const state = eventOf(this);
    state.stop = state.stopNow = true;
  }
  get bubbles() { return eventOf(this).bubbles; }
  get cancelable() { return eventOf(this).cancelable; }
  get returnValue() { return !eventOf(this).canceled; }
  set returnValue(value) {
    const state = eventOf(this);
    if (!value) eventCancel(state);
  }
  preventDefault() { eventCancel(eventOf(this)); }
  get defaultPrevented() { return eventOf(this).canceled; }
  get composed() { return eventOf(this).composed; }
  get timeStamp() { return eventOf(this).time; }
  initEvent(type, bubbles = false, cancelable = false) {
    webArguments(arguments.length, 1, 'initEvent');
    eventInit(eventOf(this), `${type}`, !!bubbles, !!cancelable);
  }
}
for (const object of [Event, Event.prototype]) {
  ['NONE', 'CAPTURING_PHASE', 'AT_TARGET', 'BUBBLING_PHASE'].forEach((name, value) => {
    Object.defineProperty(object, name, { value, enumerable: true });
  });
}

function eventCancel(state) {
  if (state.cancelable && !state.passive) state.canceled = true;
}

// Says whether it did anything: an event under way keeps what it is.
function eventInit(state, type, bubbles, cancelable) {
  if (state.dispatching) return false;
  state.stop = state.stopNow = state.canceled = state.trusted = false;
  state.target = null;
  state.type = type;
  state.bubbles = bubbles;
  state.cancelable = cancelable;
  return true;
}

const kDetail = coreSlot('detail');

class CustomEvent extends Event {
  constructor(type, eventInitDict = undefined) {
    super(...arguments);
    const { detail = null } = webDict(eventInitDict, 'eventInitDict');
    this[kDetail] = detail;
  }
  get detail() { eventOf(this); return this[kDetail]; }
  initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
    webArguments(arguments.length, 1, 'initCustomEvent');
    if (eventInit(eventOf(this), `${type}`, !!bubbles, !!cancelable)) this[kDetail] = detail;
  }
}

class ErrorEvent extends Event {
  constructor(type, eventInitDict = undefined) {
    super(...arguments);
    const { colno = 0, error = undefined, filename = '', lineno = 0, message = '' } = webDict(eventInitDict, 'eventInitDict');
    this[kDetail] = { message: `${message}`, filename: `${filename}`, lineno: lineno >>> 0, colno: colno >>> 0, error };
  }
  get message() { eventOf(this); return this[kDetail].message; }
  get filename() { eventOf(this); return this[kDetail].filename; }
  get lineno() { eventOf(this); return this[kDetail].lineno; }
  get colno() { eventOf(this); return this[kDetail].colno; }
  get error() { eventOf(this); return this[kDetail].error; }
}

class PromiseRejectionEvent extends Event {
  constructor(type, eventInitDict) {
    webArguments(arguments.length, 2, 'PromiseRejectionEvent');
    super(type, eventInitDict);
    const { promise, reason } = webDict(eventInitDict, 'eventInitDict');
    if (promise === null || typeof promise !== 'object') throw new TypeError('promise must be an object');
    this[kDetail] = { promise, reason };
  }
  get promise() { eventOf(this); return this[kDetail].promise; }
  get reason() { eventOf(this); return this[kDetail].reason; }
}

// As Web IDL wants it, nothing stands for the global object.
function listenersOf(value) {
  value ??= globalThis;
  const list = value[kListeners];
  if (list === undefined || !coreHasOwn(value, kListeners)) throw new TypeError('Illegal invocation: not an EventTarget');
  return list;
}

function listenerCallback(callback) {
  if (callback === undefined || callback === null) return null;
  if (typeof callback !== 'object' && typeof callback !== 'function') throw new TypeError('listener must be an object');
  return callback;
}

function listenerCapture(options) {
  if (typeof options === 'boolean') return options;
  return typeof options === 'object' || typeof options === 'function' ? !!options?.capture : !!options;
}

class EventTarget {
  constructor() {
    this[kListeners] = null;
    this[kHandlers] = null;
  }
  addEventListener(type, callback, options = undefined) {
    const target = this ?? globalThis;
    const list = listenersOf(target);
    webArguments(arguments.length, 2, 'addEventListener');
    type = `${type}`;
    callback = listenerCallback(callback);
    const capture = listenerCapture(options);
    let once = false, passive = false, signal;
    if (options !== null && (typeof options === 'object' || typeof options === 'function')) {
      once = !!options.once;
      passive = !!options.passive;
      ({ signal } = options);
      if (signal !== undefined) signalOf(signal);
    }
    if (callback === null || signal?.aborted) return;
    if (list === null) target[kListeners] = [];
    else if (listenerFind(list, type, callback, capture) !== undefined) return;
    const listener = { type, callback, capture, once, passive, removed: false };
    listenerAdd(target, listener);
    if (signal !== undefined) signalOnAbort(signal, () => listenerRemove(target, listener));
  }
  removeEventListener(type, callback, options = undefined) {
    const list = listenersOf(this);
    webArguments(arguments.length, 2, 'removeEventListener');
    type = `${type}`;
    callback = listenerCallback(callback);
    const capture = listenerCapture(options);
    if (list === null) return;
    const listener = listenerFind(list, type, callback, capture);
    if (listener !== undefined) listenerRemove(this ?? globalThis, listener);
  }
  dispatchEvent(event) {
    listenersOf(this);
    webArguments(arguments.length, 1, 'dispatchEvent');
    const state = eventOf(event);
    if (state.dispatching) throw new DOMException('The event is already being dispatched', 'InvalidStateError');
    state.trusted = false;
    return eventDispatch(this ?? globalThis, event, state);
  }
}

function listenerFind(list, type, callback, capture) {
  return list.find((l) => l.type === type && l.callback === callback && l.capture === capture);
}

// Lists are replaced, never changed: a dispatch under way keeps going over the one it started with.
function listenerAdd(target, listener) {
  const list = target[kListeners];
  target[kListeners] = list === null ? [listener] : [...list, listener];
  if (target[kSignal] !== undefined) signalKeep(target);
}

function listenerRemove(target, listener) {
  listener.removed = true;
  const list = target[kListeners];
  if (list !== null) target[kListeners] = list.filter((l) => l !== listener);
}

function eventDispatch(target, event, state) {
  state.dispatching = true;
  state.target = state.currentTarget = target;
  state.phase = 2;
  const list = target[kListeners];
  if (list !== null) {
    // One target is both ends of the path: its capturing listeners come first.
    listenersCall(target, list, event, state, true);
    listenersCall(target, target[kListeners], event, state, false);
  }
  state.phase = 0;
  state.currentTarget = null;
  state.dispatching = state.stop = state.stopNow = false;
  return !state.canceled;
}

function listenersCall(target, list, event, state, capture) {
  if (state.stop) return;
  for (let i = 0; i < list.length && !state.stopNow; i++) {
    const listener = list[i];
    if (listener.removed || listener.capture !== capture || listener.type !== state.type) continue;
    if (listener.once) listenerRemove(target, listener);
    state.passive = listener.passive;
    const { callback } = listener;
    try {
      if (typeof callback === 'function') {
        coreApply(callback, target, [event]);
      } else {
        const { handleEvent } = callback;
        if (typeof handleEvent !== 'function') throw new TypeError('handleEvent is not a function');
        coreApply(handleEvent, callback, [event]);
      }
    } catch (error) {
      reportException(error);
    }
    state.passive = false;
  }
}

// What a callback threw that belongs to nobody (HTML, "report an exception").
function reportException(error) {
  if (!errorFire(error)) host.report('listener', coreDescribe(error));
}

// Fires an event of the runtime's own; costs nothing while nobody listens.
function eventFire(target, type) {
  if (target[kListeners] === null) return;
  const event = new Event(type);
  event[kEvent].trusted = true;
  eventDispatch(target, event, event[kEvent]);
}

// Adds the event handler attribute on<type> to a prototype. A handler keeps the place in line of its first setting.
// call(handler, target, event) calls it; without it the handler gets the event, and false cancels.
function eventHandler(prototype, type, call = eventHandlerCall) {
  const descriptor = Object.getOwnPropertyDescriptor({
    get [`on${type}`]() {
      listenersOf(this);
      return (this ?? globalThis)[kHandlers]?.[type]?.value ?? null;
    },
    set [`on${type}`](value) {
      listenersOf(this);
      const target = this ?? globalThis;
      if (typeof value !== 'function' && typeof value !== 'object') value = null;
      const handlers = target[kHandlers] ??= { __proto__: null };
      const current = handlers[type];
      if (value === null) {
        if (current !== undefined) listenerRemove(target, current.listener);
        delete handlers[type];
      } else if (current !== undefined) {
        current.value = value;
      } else {
        const handler = handlers[type] = { value, listener: null };
        const callback = function (event) {
          if (typeof handler.value === 'function') call(handler.value, this, event);
        };
        handler.listener = { type, callback, capture: false, once: false, passive: false, removed: false };
        listenerAdd(target, handler.listener);
      }
    },
  }, `on${type}`);
  Object.defineProperty(prototype, `on${type}`, descriptor);
}

function eventHandlerCall(handler, target, event) {
  if (coreApply(handler, target, [event]) === false) eventCancel(eventOf(event));
}

for (const C of [Event, CustomEvent, ErrorEvent, PromiseRejectionEvent, EventTarget]) webInterface(C);
