/*---
flags: [async, noStrict]
---*/
Promise.resolve().then(() => $DONE(), $DONE);
