/*---
features: [Lacking]
---*/
assert(false);
