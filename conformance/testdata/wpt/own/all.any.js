// META: script=sub/helper.sub.js
// META: variant=?one
// META: variant=?two
'use strict';
test(() => { equal(this, globalThis); equal((function () { return this; })(), undefined); }, "the file is strict");
test(() => { equal(place, "web-platform.test:8000"); equal(boxed(3), 3); equal(self.boxed(4), 4); }, "a named script's declarations are there");
test(() => { equal(location.search === "?one" || location.search === "?two", true); }, "a variant is the search");
promise_test(async () => {
  const response = await fetch("sub/data.json");
  equal(response.url, "http://web-platform.test:8000/own/sub/data.json");
  equal((await response.json()).n, 7);
}, "a file of the suite");
promise_test(() => fetch("sub/program.py").then(() => { throw new Error("answered"); }, () => {}), "a program of the suite's server");
test(() => { globalThis.left = true; equal(new Request("x").url, "http://web-platform.test:8000/own/x"); }, "a relative URL");
test(() => {
  equal(new WebAssembly.Memory({ shared: true, initial: 0, maximum: 0 }).buffer.constructor, SharedArrayBuffer);
  equal(new WebAssembly.Memory({ initial: 1 }).buffer.byteLength, 65536);
}, "memories, shared ones too");
