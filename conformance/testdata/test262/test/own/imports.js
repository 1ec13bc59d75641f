/*---
flags: [async, noStrict]
---*/
import("./value_FIXTURE.js").then((ns) => { assert(ns.value === 4); }).then($DONE, $DONE);
