/*---
description: two modes
includes: [more.js]
---*/
assert(included === 5, "include");
assert((function () { return this; })() === (typeof this.strict === "undefined" ? (function () { return this; })() : 0));
