// AbortController and AbortSignal (DOM standard).
//
// For the runtime: makeSignal() makes a signal, signalAbort(signal, reason) aborts it, signalOnAbort(signal, fn) calls
// fn once when it aborts, before the event; signalForget(signal, fn) takes that back. hostTimeout(ms, fn) comes from
// the timers.

const kSignal = coreSlot('signal');

function signalOf(value) {
  const state = value?.[kSignal];
  if (state === undefined || !coreHasOwn(value, kSignal)) throw new TypeError('Not an AbortSignal');
  return state;
}

class AbortSignal extends EventTarget {
  constructor() {
    if (arguments[0] !== kSignal) throw new TypeError('Illegal constructor');
    super();
    // steps: functions to call on abort. sources: of a signal made by any(), else null. dependents: those made from it,
    // by weak references; kept: those of them that somebody listens to.
    this[kSignal] = { aborted: false, reason: undefined, steps: null, sources: null, dependents: null, kept: null };
  }
  static abort(reason = undefined) {
    const signal = makeSignal();
    signalSet(signal[kSignal], reason);
    return signal;
  }
  static timeout(milliseconds) {
    webArguments(arguments.length, 1, 'timeout');
    milliseconds = webEnforceRange(milliseconds, 'milliseconds');
    const signal = makeSignal();
    hostTimeout(milliseconds, () => signalAbort(signal, new DOMException('The operation timed out', 'TimeoutError')));
    return signal;
  }
  static any(signals) {
    webArguments(arguments.length, 1, 'any');
    if (signals === null || typeof signals !== 'object' && typeof signals !== 'function') {
      throw new TypeError('signals must be a sequence');
    }
    return signalAny([...signals]);
  }
  get aborted() { return signalOf(this).aborted; }
  get reason() { return signalOf(this).reason; }
  throwIfAborted() {
    const state = signalOf(this);
    if (state.aborted) throw state.reason;
  }
}
eventHandler(AbortSignal.prototype, 'abort');

function makeSignal() {
  return new AbortSignal(kSignal);
}

function signalSet(state, reason) {
  state.aborted = true;
  state.reason = reason === undefined ? new DOMException('The operation was aborted', 'AbortError') : reason;
}

// A signal made from others takes their reason in the same step in which they abort, before any listener runs.
function signalAny(signals) {
  for (const signal of signals) signalOf(signal);
  const result = makeSignal();
  const own = result[kSignal];
  const aborted = signals.find((signal) => signal[kSignal].aborted);
  if (aborted !== undefined) {
    signalSet(own, aborted[kSignal].reason);
    return result;
  }
  // Sources are roots only, so that one abort reaches all dependents without walking a graph.
  own.sources = new Set();
  for (const signal of signals) {
    for (const root of signal[kSignal].sources ?? [signal]) own.sources.add(root);
  }
  for (const root of own.sources) signalDepend(root[kSignal], result);
  return result;
}

// A source must not keep what was made from it: a long-lived signal may be one of thousands of short-lived ones.
function signalDepend(state, dependent) {
  const list = state.dependents ??= { refs: [], sweep: 16 };
  if (list.refs.length >= list.sweep) {
    list.refs = list.refs.filter((ref) => signalDeref(ref) !== undefined);
    list.sweep = Math.max(16, 2 * list.refs.length);
  }
  list.refs.push(new SignalRef(dependent));
}

const SignalRef = WeakRef;
const signalDeref = coreUncurry(WeakRef.prototype.deref);

// Somebody listens to the signal: from now on its sources keep it.
function signalKeep(signal) {
  const { sources } = signal[kSignal];
  if (sources !== null) for (const root of sources) (root[kSignal].kept ??= new Set()).add(signal);
}

function signalAbort(signal, reason) {
  const state = signal[kSignal];
  if (state.aborted) return;
  signalSet(state, reason);
  const reached = [signal];
  if (state.dependents !== null) {
    for (const ref of state.dependents.refs) {
      const dependent = signalDeref(ref);
      if (dependent === undefined || dependent[kSignal].aborted) continue;
      signalSet(dependent[kSignal], state.reason);
      reached.push(dependent);
    }
    state.dependents = state.kept = null;
  }
  for (const one of reached) signalRun(one);
}

function signalRun(signal) {
  const state = signal[kSignal];
  if (state.sources !== null) {
    for (const root of state.sources) root[kSignal].kept?.delete(signal);
    state.sources = null;
  }
  const { steps } = state;
  state.steps = null;
  if (steps !== null) for (const step of steps) step();
  eventFire(signal, 'abort');
}

function signalOnAbort(signal, step) {
  const state = signal[kSignal];
  if (state.aborted) return;
  (state.steps ??= new Set()).add(step);
  if (state.sources !== null) signalKeep(signal);
}

function signalForget(signal, step) {
  signal[kSignal].steps?.delete(step);
}

const kController = coreSlot('controller');

function controllerSignal(value) {
  const signal = value?.[kController];
  if (signal === undefined || !coreHasOwn(value, kController)) throw new TypeError('Not an AbortController');
  return signal;
}

class AbortController {
  constructor() { this[kController] = makeSignal(); }
  get signal() { return controllerSignal(this); }
  abort(reason = undefined) { signalAbort(controllerSignal(this), reason); }
}

webInterface(AbortSignal);
webInterface(AbortController);
