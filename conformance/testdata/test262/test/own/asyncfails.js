/*---
flags:
  - async
  - noStrict
---*/
Promise.resolve().then(() => $DONE({ message: "late" }));
