// The worker that runs a file of the web platform tests. It is sent the scripts that the file names and the
// file, and answers with the results. What it uses is taken from the global object before a test can change it.
import harness from "./testharness.txt";

const { EventTarget, JSON, Promise, Proxy, Reflect, Request, Response, SharedArrayBuffer, String, URL, fetch, setTimeout } = globalThis;
const evaluate = eval; // indirect: in the global scope

// A worker has no page: the suite's files expect one, as base for relative URLs and as what they ask for its parts.
function place(href) {
  const u = new URL(href);
  const { pathname, search, origin, protocol, host, hostname, port, hash } = u;
  globalThis.location = { href, pathname, search, origin, protocol, host, hostname, port, hash, toString: () => href };
  globalThis.GLOBAL = { isWindow: () => false, isWorker: () => true, isShadowRealm: () => false };

  const absolute = (input) => (input instanceof Request || URL.canParse(input) ? input : new URL(String(input), href).href);
  globalThis.Request = new Proxy(Request, {
    construct(target, args, newTarget) {
      if (args.length > 0) args[0] = absolute(args[0]);
      return Reflect.construct(target, args, newTarget === globalThis.Request ? Request : newTarget);
    },
  });
  Request.prototype.constructor = globalThis.Request;
  globalThis.fetch = (...args) => {
    try {
      if (args.length > 0) args[0] = absolute(args[0]);
    } catch {} // fetch rejects
    return fetch(...args);
  };
  const { redirect } = Response;
  Response.redirect = (...args) => {
    if (args.length > 0 && URL.canParse(args[0], href)) args[0] = new URL(args[0], href).href;
    return Reflect.apply(redirect, Response, args);
  };
}

// What the suite asks a global object for to find out what it may expect of it.
function pretend(url) {
  // The interface tests ask what kind of worker this is. The harness must not: it would wait for messages.
  if (url.includes("/idlharness.")) globalThis.DedicatedWorkerGlobalScope = EventTarget;
  // Tests take the constructor of shared buffers from a shared memory, since pages often do not have it by name.
  const { Memory } = WebAssembly;
  WebAssembly.Memory = function (descriptor) {
    return descriptor?.shared ? { buffer: new SharedArrayBuffer(65536) } : new Memory(descriptor);
  };
}

export default {
  async fetch(request) {
    const { url, millis, scripts } = await request.json();
    place(url);
    const done = Promise.withResolvers();
    evaluate(harness);
    pretend(url);
    globalThis.add_completion_callback((tests, { status, message }) => {
      done.resolve(Response.json({
        status,
        message: String(message ?? ""),
        tests: tests.map((t) => ({ name: t.name, status: t.status, message: String(t.message ?? "") })),
      }));
    });
    setTimeout(globalThis.timeout, millis);
    try {
      for (const script of scripts) evaluate(script);
    } catch (e) {
      return Response.json({ status: 1, message: `${e?.name}: ${e?.message}\n${e?.stack}`, tests: [] });
    }
    return done.promise;
  },
};
