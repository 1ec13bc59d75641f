/*---
flags: [raw]
---*/
"use strict"; if (typeof assert !== "undefined") throw 1;
