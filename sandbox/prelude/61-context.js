// ExecutionContext, the third argument of a handler. It stands before Response so that the prototypes of both, used by
// every invocation, lie side by side.

const dispatchSlot = coreSlot('context'); // the invocation that it came with

class ExecutionContext {
  constructor() { throw new TypeError('Illegal constructor'); }

  waitUntil(promise) {
    const mine = typeof this === 'object' && this !== null ? this[dispatchSlot] : undefined;
    if (mine === undefined) throw new TypeError('Illegal invocation');
    if (arguments.length === 0) throw new TypeError("Failed to execute 'waitUntil': 1 argument required");
    if (mine !== invocation) {
      const expired = new Error('the execution context has expired');
      expired.name = 'context_expired';
      throw expired;
    }
    const settled = coreResolve(promise);
    mine[invocationWaits]++;
    host.waitUsed();
    coreThen(settled, () => { mine[invocationWaits]--; }, (reason) => {
      mine[invocationWaits]--;
      host.report('waitUntil', coreDescribe(reason));
    });
  }
}
coreDefine(ExecutionContext.prototype, Symbol.toStringTag, { __proto__: null, value: 'ExecutionContext', configurable: true });

const contextPrototype = ExecutionContext.prototype;
