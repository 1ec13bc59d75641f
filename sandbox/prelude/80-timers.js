// setTimeout and its kin. The host keeps the clock; here is what a number stands for.

let timerRecords = { __proto__: null };
let timerLast = 0;
let timerNesting = 0; // how deep in timers that were set by timers the running task is

const timerMostDelay = 0x7fffffff;

// A timer that was set by the fifth in a row waits at least 4 ms, so that a chain of zero delays cannot spin.
function timerDelay(ms, level) {
  if (ms < 0) ms = 0;
  return level > 5 && ms < 4 ? 4 : ms;
}

function timerStart(fn, ms, args, repeat) {
  const level = timerNesting + 1;
  const id = ++timerLast;
  host.timerSet(id, timerDelay(ms, level)); // throws when there are too many
  timerRecords[id] = { fn, args, repeat, ms, level };
  return id;
}

function timerStop(id) {
  if (timerRecords[id] === undefined) return;
  delete timerRecords[id];
  host.timerClear(id);
}

// Called by the host when timer `id` is due.
function timerFire(id) {
  const timer = timerRecords[id];
  if (timer === undefined) return;
  timerNesting = timer.level;
  if (!timer.repeat) delete timerRecords[id];
  try {
    coreApply(timer.fn, globalThis, timer.args);
  } catch (failure) {
    if (!errorFire(failure)) throw failure; // the host reports it
  } finally {
    if (timerRecords[id] === timer) {
      timer.level++;
      host.timerSet(id, timerDelay(timer.ms, timer.level));
    }
  }
}

// A timer of the runtime itself, for delays that may be longer than a user's timer can be. Returns its number.
function hostTimeout(ms, fn) {
  return timerStart(fn, ms > timerMostDelay ? timerMostDelay : ms | 0, [], false);
}

// Runs fn as a task of its own, as soon as the tasks before it are over. Unlike a timer it may follow on itself at once.
// Returns a function that says whether it is still to come: it never comes when the invocation ends before.
function hostTask(fn) {
  const id = ++timerLast;
  host.timerSet(id, 0); // throws when there are too many
  const record = timerRecords[id] = { fn, args: [], repeat: false, ms: 0, level: 0 };
  return () => timerRecords[id] === record;
}

// Ends a hostTimeout before its time.
function hostTimeoutClear(id) {
  timerStop(id);
}

function timerForget() {
  timerRecords = { __proto__: null };
  timerNesting = 0;
}

function timerCallback(name, handler) {
  if (typeof handler === 'function') return handler;
  throw new TypeError(`Failed to execute '${name}': the handler is not a function`);
}

// Methods of one object, so that none of them is a constructor; WebIDL wants their length to be 1 and 0.
const timerGlobals = {
  setTimeout(handler) {
    const fn = timerCallback('setTimeout', handler);
    const args = [];
    for (let i = 2; i < arguments.length; i++) args[i - 2] = arguments[i];
    return timerStart(fn, arguments[1] | 0, args, false);
  },
  setInterval(handler) {
    const fn = timerCallback('setInterval', handler);
    const args = [];
    for (let i = 2; i < arguments.length; i++) args[i - 2] = arguments[i];
    return timerStart(fn, arguments[1] | 0, args, true);
  },
  clearTimeout(id = undefined) { timerStop(id | 0); },
  clearInterval(id = undefined) { timerStop(id | 0); },
};
for (const name in timerGlobals) {
  coreDefine(globalThis, name, { __proto__: null, value: timerGlobals[name], writable: true, configurable: true, enumerable: true });
}
