/*---
flags: [noStrict]
---*/
assert((function () { return this; })() === globalThis, "sloppy");
Array.prototype[Symbol.iterator] = null;
Object.defineProperty(Array.prototype, "0", { get() { return 1; } });
