/*---
flags: [module, async]
---*/
import { value } from "./value_FIXTURE.js";
assert(value === 4);
import("./value_FIXTURE.js").then((ns) => { assert(ns.value === 4); }).then($DONE, $DONE);
