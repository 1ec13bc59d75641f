// Shared ground of all files: built-ins captured before user code can replace them, globals, asynchronous host operations.

const CorePromise = Promise;
const coreApply = Reflect.apply;
const coreDefine = Object.defineProperty;
const coreDescriptor = Object.getOwnPropertyDescriptor;
const corePrototypeOf = Object.getPrototypeOf;
const coreCreate = Object.create;
const coreObjectPrototype = Object.prototype;
const coreHasOwn = Object.hasOwn;
const coreEntries = Object.entries;
const coreParse = JSON.parse;
const wasmBuffers = new WeakSet(); // of memories of WebAssembly: only growth detaches them
const coreResolve = Promise.resolve.bind(Promise);
const coreNow = Date.now;
const coreClock = performance.now.bind(performance);

// Makes a function of a method or getter: what is `this` there is its first argument. Calling it makes no array of arguments, as coreApply does.
const coreUncurry = Function.prototype.bind.bind(Function.prototype.call);
const coreThen = coreUncurry(Promise.prototype.then);

// The name of a slot: a symbol that no script sees on an object, in whatever way it looks, so that spreading and assigning
// copy no slots either. (A proxy does see it when it stands where an object of ours is expected.)
function coreSlot(name) {
  const slot = Symbol(name);
  host.hideSymbol(slot);
  return slot;
}

// Defines a global as the standards want them: writable, configurable, not enumerable.
function expose(name, value) {
  coreDefine(globalThis, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
}

// Host operations that have not ended: number -> [resolve, reject]. The host gives the numbers and calls settle.
let coreOperations = { __proto__: null };

// Returns a promise for the host operation `id`, which a host function has just begun.
function pending(id) {
  return new CorePromise((resolve, reject) => { coreOperations[id] = [resolve, reject]; });
}

// Called by the host when operation `id` has ended. An operation that nobody waits for any more is ignored.
function settle(id, ok, value) {
  const waiting = coreOperations[id];
  if (waiting === undefined) return;
  delete coreOperations[id];
  waiting[ok ? 0 : 1](value);
}

// Text for the log: what was thrown, with its stack. User code may run (getters of an error), so it may throw in its turn.
function coreDescribe(thrown) {
  try {
    if (typeof thrown !== 'object' || thrown === null) return typeof thrown === 'function' ? consoleFunction(thrown) : String(thrown);
    if (!errorIs(thrown)) return consoleValue(new ConsoleShow(), thrown, 0);
    const head = `${thrown.name}: ${thrown.message}`;
    const stack = thrown.stack;
    return typeof stack === 'string' && stack !== '' ? `${head}\n${stack}` : head;
  } catch {
    return 'a value that cannot be shown';
  }
}

// What Error.prepareStackTrace is given must not hand out functions: those on the stack may be the prelude's own.
{
  let site;
  Error.prepareStackTrace = (_, sites) => { site = sites[0]; };
  void new Error('x').stack;
  delete corePrototypeOf(site).getFunction;
  Error.prepareStackTrace = undefined;
}
