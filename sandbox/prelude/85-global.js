// The global object as an event target, and what happens to errors that belong to nobody (HTML, "report an exception").

const errorPlace = /\(?([^()\s]+):([0-9]+):([0-9]+)\)?\s*$/;
let errorReporting = false; // while listeners are told; what they throw in turn goes to the log

function errorIs(value) {
  const clone = typeof value === 'object' && value !== null ? cloneClasses.get(host.classID(value)) : undefined;
  return clone === cloneErrorObject || clone === cloneException;
}

// Where a stack begins, the runtime's own functions aside: [file, line, column].
function errorWhere(stack) {
  if (typeof stack === 'string') {
    for (const line of stack.slice(0, 4096).split('\n')) {
      const at = errorPlace.exec(line);
      if (at !== null && at[1] !== 'prelude.js') return [at[1], +at[2], +at[3]];
    }
  }
  return ['', 0, 0];
}

// Tells the error listeners of the global object; costs nothing while there are none. Returns whether one of them
// prevented that the error is logged.
function errorFire(error) {
  if (globalThis[kListeners] === null || errorReporting) return false;
  errorReporting = true;
  try {
    let message = 'Uncaught exception';
    let stack;
    if (errorIs(error)) {
      ({ stack } = error);
      message = `Uncaught ${coreDescribe(error).split('\n')[0]}`;
    } else if (typeof error !== 'object' && typeof error !== 'function' || error === null) {
      message = `Uncaught ${String(error)}`;
    }
    let [filename, lineno, colno] = errorWhere(stack);
    if (filename === '') [filename, lineno, colno] = errorWhere(new ErrorClass().stack);
    const event = new ErrorEvent('error', { __proto__: null, cancelable: true, message, filename, lineno, colno, error });
    event[kEvent].trusted = true;
    return !eventDispatch(globalThis, event, event[kEvent]);
  } catch {
    return false; // user code has bent what this needs
  } finally {
    errorReporting = false;
  }
}

const ErrorClass = Error;

// Called by the host, after the microtasks, for a promise that was rejected and that nobody handles (lost), or that was
// told of before and is handled now. Returns whether a listener prevented that it is logged.
function dispatchRejection(promise, reason, lost) {
  if (globalThis[kListeners] === null) return false;
  const event = new PromiseRejectionEvent(lost ? 'unhandledrejection' : 'rejectionhandled', { __proto__: null, cancelable: lost, promise, reason });
  event[kEvent].trusted = true;
  return !eventDispatch(globalThis, event, event[kEvent]);
}

Object.setPrototypeOf(globalThis, EventTarget.prototype);
coreDefine(globalThis, kListeners, { __proto__: null, value: null, writable: true });
coreDefine(globalThis, kHandlers, { __proto__: null, value: null, writable: true });

// A handler of the error event gets what the event says as arguments, and true cancels.
eventHandler(globalThis, 'error', (handler, target, event) => {
  if (event instanceof ErrorEvent) {
    if (coreApply(handler, target, [event.message, event.filename, event.lineno, event.colno, event.error]) === true) eventCancel(eventOf(event));
  } else {
    eventHandlerCall(handler, target, event);
  }
});
eventHandler(globalThis, 'unhandledrejection');
eventHandler(globalThis, 'rejectionhandled');

coreDefine(globalThis, 'self', {
  __proto__: null,
  get: coreDescriptor({
    get self() {
      if (this !== undefined && this !== null && this !== globalThis) throw idlIllegal();
      return globalThis;
    },
  }, 'self').get,
  enumerable: true, configurable: true,
});

idlGlobal('reportError', {
  reportError(e) {
    webArguments(arguments.length, 1, 'reportError');
    if (!errorFire(e)) host.report('reportError', coreDescribe(e));
  },
}.reportError);

const globalMicrotask = queueMicrotask;
idlGlobal('queueMicrotask', {
  queueMicrotask(callback) {
    webArguments(arguments.length, 1, 'queueMicrotask');
    if (typeof callback !== 'function') throw new TypeError('queueMicrotask: the callback is not a function');
    globalMicrotask(() => {
      try {
        callback();
      } catch (failure) {
        if (!errorFire(failure)) throw failure; // the host reports it
      }
    });
  },
}.queueMicrotask);

class Navigator {
  constructor() { throw new TypeError('Illegal constructor'); }
  get userAgent() {
    if (this !== globalNavigator) throw idlIllegal();
    return 'edged';
  }
}
const globalNavigator = coreCreate(Navigator.prototype);
webInterface(Navigator);

// The engine's clock, as the class that High Resolution Time says.
const globalClock = performance;

class Performance extends EventTarget {
  constructor() {
    if (arguments[0] !== kListeners) throw new TypeError('Illegal constructor');
    super();
  }
  now() {
    if (this !== globalPerformance) throw idlIllegal();
    return coreClock();
  }
  get timeOrigin() {
    if (this !== globalPerformance) throw idlIllegal();
    return globalClock.timeOrigin;
  }
  toJSON() {
    if (this !== globalPerformance) throw idlIllegal();
    return { timeOrigin: globalClock.timeOrigin };
  }
}
webInterface(Performance);
const globalPerformance = new Performance(kListeners);

for (const [name, value] of [['navigator', globalNavigator], ['performance', globalPerformance]]) {
  coreDefine(globalThis, name, {
    __proto__: null,
    get: coreDescriptor({ get [name]() { return value; } }, name).get,
    set: coreDescriptor({
      set [name](next) { coreDefine(globalThis, name, { __proto__: null, value: next, writable: true, enumerable: true, configurable: true }); },
    }, name).set,
    enumerable: true, configurable: true,
  });
}
