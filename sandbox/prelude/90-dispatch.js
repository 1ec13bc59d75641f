// How the host enters: adopting the main module, one invocation, its bodies, its end. The last statement hands the host
// its entries; package sandbox knows them by position.

const dispatchHandlerNames = ['fetch', 'scheduled', 'queue'];
const dispatchHandlers = { __proto__: null };
let dispatchTarget; // the default export: `this` of every handler

// The running invocation, null between two. An object that outlived its invocation knows by it that its time is over. An
// array, because every property that a new object gets costs as much as a call; its places:
let invocation = null;
const invocationWaits = 0; // tasks of waitUntil that are not settled
const invocationSignal = 1; // of the incoming request, null before the first look
const invocationGone = 2; // whether the client has left
const invocationReader = 3; // of the response's stream

// Takes the main module's namespace. Returns the names of its handlers, joined by commas, or null if its default export
// is missing or is not a plain object. Accessors do not count and are not called.
function dispatchAdopt(namespace) {
  if (coreDescriptor(namespace, 'default') === undefined) return null;
  const target = namespace.default;
  if (typeof target !== 'object' || target === null) return null;
  const prototype = corePrototypeOf(target);
  if (prototype !== coreObjectPrototype && prototype !== null) return null;
  let names = '';
  for (let i = 0; i < dispatchHandlerNames.length; i++) {
    const name = dispatchHandlerNames[i];
    const found = coreDescriptor(target, name);
    if (found === undefined || !coreHasOwn(found, 'value') || typeof found.value !== 'function') continue;
    dispatchHandlers[name] = found.value;
    names = names === '' ? name : `${names},${name}`;
  }
  dispatchTarget = target;
  return names;
}

// Called once after the user's modules were evaluated: nothing that they left waiting is part of the snapshot. Then it
// walks the way of a request without user code, so that the first invocations need not build what all of them share.
// What is allocated from here on lies beside what an invocation will allocate, so that it costs the reset no page of its
// own; therefore something is made here that could be made before. Returns [fetch, its target, what the first invocation
// of it begins with]: after a reset every invocation is the first.
function dispatchSeal(method, url, headers) {
  coreOperations = { __proto__: null };
  timerForget();
  timerLast = 0;
  responseTextPacked = headersPack(['content-type', bodyTextType]);
  try {
    for (let i = 0; i < 3; i++) dispatchWarm(dispatchPrepare('GET', 'http://localhost/', 'host\nlocalhost\naccept\n*/*\n', true, true)[0]);
  } catch {
    // User code has bent what this needs; invocations will show it better.
  }
  return [dispatchHandlers.fetch, dispatchTarget, dispatchPrepare(method, url, headers, true, true)];
}

function dispatchWarm(request) {
  request.headers.get('accept');
  dispatchFinish(new Response('warm', { headers: { 'x-warm': '1' } }));
}

// An object with one slot that lasts: all of a kind have the same form, which they have not if they are written down with their prototype. The
// slot is defined, not set: no setter of a prototype sees it.
const dispatchProperty = { __proto__: null, value: null, writable: true, enumerable: true, configurable: true };
function dispatchObject(prototype, slot, value) {
  dispatchProperty.value = value;
  const object = coreDefine(coreCreate(prototype), slot, dispatchProperty);
  dispatchProperty.value = null;
  return object;
}

// Begins an invocation of fetch and returns what it begins with: the request, the context, an env without anything, the request's state, the
// invocation and, if a body may come, what the host makes the source of it. The host fills in the state before it calls the handler, and keeps
// what lasts for the next invocation as long as nobody else has touched or kept any of it. headers: name LF value LF for every field.
function dispatchPrepare(method, url, headers, body, lasts) {
  const mine = invocation = [0, null, false, null];
  const state = [method, headers, bodyNull, null, null, url, false, null, requestIncomingRest, mine];
  return lasts ? [dispatchObject(requestPrototype, fetchSlot, state), dispatchObject(contextPrototype, dispatchSlot, mine), {}, state, mine, body ? [mine, 0] : null]
    : [{ __proto__: requestPrototype, [fetchSlot]: state }, { __proto__: contextPrototype, [dispatchSlot]: mine }, {}, state, mine, body ? [mine, 0] : null];
}

function dispatchEnv(vars, bound) {
  const env = vars === undefined ? {} : coreParse(vars);
  if (bound !== undefined) bindingsInto(env, bound);
  return env;
}

// Begins an invocation of a handler other than fetch. The event is made in it.
function dispatchBegin() { invocation = [0, null, false, null]; }

function dispatchEvent(name, event, vars, bound) {
  const context = { __proto__: contextPrototype, [dispatchSlot]: invocation };
  return coreApply(dispatchHandlers[name], dispatchTarget, [event, dispatchEnv(vars, bound), context]);
}

function dispatchScheduled(cron, scheduledTime, vars, bound) {
  dispatchBegin();
  return dispatchEvent('scheduled', { scheduledTime, cron }, vars, bound);
}

function dispatchQueue(id, queue, flat, vars, bound) {
  dispatchBegin();
  return dispatchEvent('queue', newMessageBatch(id, queue, flat), vars, bound);
}

// What a handler returned and is no native promise: a thenable is followed as `await` would follow it.
function dispatchFollow(value) {
  return (typeof value === 'object' || typeof value === 'function') && value !== null && !(value instanceof Response) ? coreResolve(value) : value;
}

const dispatchFilled = [0, '', 0, null, -1, 0];

// What the host sends of the handler's Response, which is then on its way: [status, packed headers, body kind, body,
// declared length, tasks registered with waitUntil and not settled]; kinds as in 55-body. Of a stream the length is the
// declared content-length or -1, and its chunks are fetched with pumpRead. The array is only good until the next call.
// Throws a TypeError for everything that cannot be sent: no Response, a network error, a body that was read or is locked.
// The host does not call it for a Response like the sample that is whole, as nearly all are, in an invocation without
// waitUntil: it reads the state by itself, and does what the first lines up to `return state` do.
function dispatchFinish(response) {
  const state = typeof response === 'object' && response !== null ? response[fetchSlot] : undefined;
  if (state === undefined || typeof state[responseStatus] !== 'number' || !coreHasOwn(response, fetchSlot)) throw new TypeError('The handler did not return a Response');
  const kind = state[bodyKind];
  if (state[bodyTaken] || kind === bodyStream && bodyUnusable(state)) {
    throw new TypeError('The handler returned a Response whose body was already read or is locked');
  }
  if (kind < bodyStream) {
    if (kind !== bodyNull) state[bodyTaken] = true;
    if (state[responseFlags] === 0 && typeof state[responseHeaders] === 'string') {
      state[responseTasks] = invocation[invocationWaits];
      return state;
    }
  }
  if (state[responseFlags] & responseIsError) throw new TypeError('The handler returned Response.error()');
  const parts = dispatchFilled;
  parts[0] = state[responseStatus];
  parts[1] = responsePacked(state[responseHeaders]);
  parts[2] = kind;
  parts[3] = state[bodySource];
  parts[4] = -1;
  if (kind >= bodyStream) dispatchFinishStream(state, parts);
  parts[5] = invocation[invocationWaits];
  return parts;
}

// A body that is a stream: its length is what the response declares. One that only passes through is left to the host.
function dispatchFinishStream(state, parts) {
  parts[4] = responseDeclaredLength(state);
  const number = bodyHandOver(state);
  if (number >= 0) {
    parts[2] = bodyIncoming;
    parts[3] = number;
    return;
  }
  if (state[bodyKind] === bodyIncoming) throw new TypeError('The handler returned a Response whose body is over');
  parts[3] = undefined;
  invocation[invocationReader] = acquireReader(state[bodySource]);
}

// How many tasks keep the invocation alive.
function dispatchWaits() { return invocation[invocationWaits]; }

// Ends the invocation for what may outlive it: only isolation `worker` calls it, a reset makes it needless.
function dispatchEnd() {
  invocation = null;
  coreOperations = { __proto__: null };
  timerForget();
}

function dispatchSettle(id, ok, value) {
  timerNesting = 0;
  settle(id, ok, value);
}

// Called when the client has left: request.signal is aborted, and one that is asked for later is born aborted.
function dispatchGone() {
  timerNesting = 0;
  invocation[invocationGone] = true;
  if (invocation[invocationSignal] !== null) signalAbort(invocation[invocationSignal], dispatchGoneReason());
}

function dispatchGoneReason() { return new DOMException('The client has closed the connection', 'AbortError'); }

// The signal of the incoming request, made when somebody first asks for it. Like the two below it is given the
// invocation that the request came with: a request that outlived it must not touch the next one's.
function incomingSignal(owner) {
  const signal = makeSignal();
  if (owner === invocation) {
    invocation[invocationSignal] = signal;
    host.signalUsed();
    if (invocation[invocationGone]) signalAbort(signal, dispatchGoneReason());
  }
  return signal;
}

// The next bytes of a body that the host has: a Uint8Array, null at the end, or a promise of these. It rejects when the
// body failed or the request's time is over.
function incomingBodyPull(source) {
  try {
    if (source[0] !== invocation) throw new DOMException('The request is over', 'AbortError');
    const got = host.bodyPull(source[1]);
    return typeof got === 'number' ? pending(got) : got;
  } catch (failure) {
    return CorePromise.reject(failure);
  }
}

// Nobody wants the rest of it.
function incomingBodyCancel(source) {
  if (source[0] === invocation) host.bodyCancel(source[1]);
}

const pumpLargest = 65536;
const pumpBytes = Uint8Array;

// Begins to read the next chunk of the response; the host looks at the promise itself.
function pumpRead() { return readChunk(invocation[invocationReader]); }

// A chunk as the host may keep it: null at the end, else bytes. The host copies a large chunk piece by piece while user
// code may run, so that one is copied here first.
function pumpTake(result) {
  if (result.done) return null;
  const chunk = result.value;
  if (!(chunk instanceof pumpBytes)) throw new TypeError('a response stream gave a chunk that is not a Uint8Array');
  return chunk.byteLength > pumpLargest ? new pumpBytes(chunk) : chunk;
}

// Cancels the response stream. The result is of no interest to anybody.
function pumpCancel() {
  const cancelled = cancelReader(invocation[invocationReader], dispatchGoneReason());
  coreThen(cancelled, undefined, () => {});
}

// Samples of what each invocation makes: a Response, by which the host knows others like it, and others. They keep alive the forms that such
// objects have and come through, which the engine would make and forget with every one; and a form that two objects have is not changed in
// place, on which the host relies when it compares them. They are made together, so that their forms lie side by side.
const dispatchFunction = Function.prototype;
const dispatchSamples = [new Response(''), dispatchObject(requestPrototype, fetchSlot, null), dispatchObject(contextPrototype, dispatchSlot, null), {}, coreCreate(responsePrototype), coreCreate(requestPrototype),
  coreCreate(contextPrototype), coreCreate(CorePromise.prototype), coreCreate(dispatchFunction),
  coreDefine(coreCreate(dispatchFunction), 'length', { __proto__: null, value: 1, configurable: true })];

return [dispatchAdopt, dispatchSeal, dispatchPrepare, dispatchEnv, dispatchScheduled, dispatchQueue, dispatchFollow, dispatchFinish, dispatchWaits, dispatchEnd,
  dispatchSettle, dispatchGone, timerFire, pumpRead, pumpTake, pumpCancel, coreDescribe, dispatchRejection, wasmImported, dispatchSamples[0], dispatchSamples];
