// Host streams and the runtime's own reading (39); what the standard says in general is checked against its own suite.

const bytes = (...list) => new Uint8Array(list);

// A host stream over a script of answers; a function is called, a promise is given as it is.
function hostStream(...answers) {
  const log = { pulls: 0, cancelled: [] };
  log.stream = newHostReadableStream(() => {
    log.pulls++;
    const answer = answers.shift();
    return typeof answer === 'function' ? answer() : answer;
  }, (reason) => { log.cancelled.push(reason); });
  return log;
}

test('a host stream asks for a chunk when somebody reads, and never before', async () => {
  const log = hostStream(bytes(1), bytes(2), null);
  const reader = log.stream.getReader();
  await idle();
  eq(log.pulls, 0);
  eq((await reader.read()).value, bytes(1));
  await idle();
  eq(log.pulls, 1);
  eq((await reader.read()).value, bytes(2));
  eq(await reader.read(), { value: undefined, done: true });
  await reader.closed;
});

test('a host stream is not asked again before its promise has settled', async () => {
  const first = Promise.withResolvers();
  const log = hostStream(first.promise, bytes(2), null);
  const reader = log.stream.getReader();
  const reads = [reader.read(), reader.read(), reader.read()];
  await idle();
  eq(log.pulls, 1);
  first.resolve(bytes(1));
  const got = await Promise.all(reads);
  eq(got.map((r) => r.done), [false, false, true]);
  eq([got[0].value, got[1].value].map((b) => b[0]), [1, 2]);
});

test('an empty chunk of the host is no chunk', async () => {
  const log = hostStream(Promise.resolve(bytes()), bytes(), bytes(7), bytes(), Promise.resolve(bytes(8)), null);
  const reader = log.stream.getReader();
  eq((await reader.read()).value, bytes(7));
  await idle();
  eq((await reader.read()).value, bytes(8));
});

test('a reader that leaves while a chunk is on its way leaves it to the next one', async () => {
  const first = Promise.withResolvers();
  const log = hostStream(first.promise, null);
  const early = log.stream.getReader();
  const lost = early.read();
  early.releaseLock();
  await rejects(TypeError, lost);
  const read = log.stream.getReader().read();
  await idle();
  eq(log.pulls, 1);
  first.resolve(bytes(1));
  eq((await read).value, bytes(1));
});

test('errors of the host reach the reader, thrown or rejected', async () => {
  const error = new Error('gone');
  await rejects(error, hostStream(() => { throw error; }).stream.getReader().read());
  const reader = hostStream(Promise.reject(error)).stream.getReader();
  await rejects(error, reader.read());
  await rejects(error, reader.closed);
  const stream = hostStream(bytes(1)).stream;
  errorStream(stream, error);
  await rejects(error, stream.getReader().read());
});

test('cancel reaches the host once, and a late chunk is dropped', async () => {
  const late = Promise.withResolvers();
  const log = hostStream(late.promise);
  const reader = log.stream.getReader();
  const read = reader.read();
  await reader.cancel('enough');
  late.resolve(bytes(1));
  await idle();
  eq([(await read).done, log.cancelled, log.pulls], [true, ['enough'], 1]);
});

test('a BYOB reader gets the bytes of the host in its own buffer', async () => {
  const log = hostStream(bytes(1, 2, 3), Promise.resolve(bytes(4)), null);
  const reader = log.stream.getReader({ mode: 'byob' });
  const { value } = await reader.read(new Uint8Array(2));
  eq(value, bytes(1, 2));
  eq((await reader.read(new Uint8Array(8), { min: 2 })).value, bytes(3, 4));
  eq(await reader.read(new Uint8Array(1)).then((r) => [r.done, r.value.length]), [true, 0]);
});

test('tee gives both branches all bytes and copies them', async () => {
  const [a, b] = teeStream(hostStream(bytes(1, 2), Promise.resolve(bytes(3)), null).stream);
  const [x, y] = await Promise.all([readAllBytes(a), readAllBytes(b)]);
  eq([x, y].map((v) => [...v]), [[1, 2, 3], [1, 2, 3]]);
  eq(x.buffer === y.buffer, false);
});

test('readAllBytes joins chunks, takes a single one as it is, and refuses what is no Uint8Array', async () => {
  const whole = bytes(1, 2);
  eq(await readAllBytes(hostStream(whole, null).stream) === whole, true);
  eq(await readAllBytes(hostStream(bytes(1), bytes(), bytes(2), null).stream), bytes(1, 2));
  eq(await readAllBytes(hostStream(null).stream), bytes());
  const mine = bytes(9);
  const user = new ReadableStream({ start(c) { c.enqueue(mine); c.close(); } });
  const copy = await readAllBytes(user);
  eq([copy[0], copy === mine], [9, false]);
  let cancelled;
  const text = new ReadableStream({ start(c) { c.enqueue('text'); }, cancel(e) { cancelled = e; } });
  await rejects(TypeError, readAllBytes(text));
  eq(cancelled instanceof TypeError, true);
});

test('ten thousand chunks that are there need no stack', async () => {
  const stream = new ReadableStream({ start(c) { for (let i = 0; i < 10000; i++) c.enqueue(bytes(i)); c.close(); } });
  eq((await readAllBytes(stream)).length, 10000);
  let left = 10000;
  eq((await readAllBytes(newHostReadableStream(() => left-- > 0 ? bytes(1) : null))).length, 10000);
});

test('the runtime reads without what users can observe', async () => {
  const stream = new ReadableStream({ start(c) { c.enqueue(bytes(1)); c.close(); } });
  const observed = () => { throw new Error('observed'); };
  Object.defineProperty(stream, 'getReader', { value: observed });
  const { read } = ReadableStreamDefaultReader.prototype;
  ReadableStreamDefaultReader.prototype.read = observed;
  eq([isDisturbed(stream), isLocked(stream), isReadableStream(stream), isReadableStream({})], [false, false, true, false]);
  const reader = acquireReader(stream);
  eq((await readChunk(reader)).value, bytes(1));
  ReadableStreamDefaultReader.prototype.read = read;
  eq(await readChunk(reader), { value: undefined, done: true });
  eq([isDisturbed(stream), isLocked(stream)], [true, true]);
  throws(TypeError, () => acquireReader(stream));
});

test('backpressure reaches the producer through a pipe', async () => {
  let pulls = 0, go;
  const source = new ReadableStream({ pull(c) { c.enqueue(pulls++); } }, { highWaterMark: 0 });
  const sink = new WritableStream({ write() { return new Promise((resolve) => { go = resolve; }); } });
  source.pipeThrough(new TransformStream()).pipeTo(sink);
  await idle();
  const before = pulls;
  await idle();
  eq(pulls, before);
  go();
  await idle();
  eq(pulls, before + 1);
});

test('a pipe carries close, errors and an abort to both ends', async () => {
  const log = [];
  const sink = () => new WritableStream({ write(c) { log.push(c); }, close() { log.push('close'); }, abort(e) { log.push(`abort ${e}`); } });
  await ReadableStream.from(['a', 'b']).pipeTo(sink());
  const failing = new ReadableStream({ start(c) { c.enqueue('c'); }, pull() { throw 'source'; } }, { highWaterMark: 2 });
  await rejects(undefined, failing.pipeTo(sink()).catch((e) => { log.push(`rejected ${e}`); throw undefined; }));
  const controller = new AbortController();
  const endless = new ReadableStream({ cancel(e) { log.push(`cancel ${e}`); } });
  const piped = endless.pipeTo(sink(), { signal: controller.signal });
  controller.abort('stop');
  await rejects(undefined, piped.catch(() => { throw undefined; }));
  eq(log, ['a', 'b', 'close', 'c', 'abort source', 'rejected source', 'abort stop', 'cancel stop']);
  eq([endless.locked], [false]);
});

test('leaving a loop cancels the stream, unless it says otherwise', async () => {
  const make = () => {
    const log = { stream: null, cancelled: false };
    log.stream = new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); }, cancel() { log.cancelled = true; } });
    return log;
  };
  const one = make(), two = make();
  for await (const chunk of one.stream) if (chunk === 1) break;
  for await (const chunk of two.stream.values({ preventCancel: true })) if (chunk === 1) break;
  eq([one.cancelled, one.stream.locked, two.cancelled, two.stream.locked], [true, false, false, false]);
});

test('an abort of a writable stream shows at the controller of its sink, also to who looks late', async () => {
  let controller;
  const stream = new WritableStream({ start(c) { controller = c; } });
  await stream.abort('stop');
  eq([controller.signal.aborted, controller.signal.reason], [true, 'stop']);
});

test('what users put on prototypes does not get in the way', async () => {
  let seen = 0;
  const trap = { get() { seen++; }, set() { seen++; }, configurable: true };
  for (const name of ['size', 'next', 'state', 'queue', 'highWaterMark']) Object.defineProperty(Object.prototype, name, trap);
  const { then } = Promise.prototype;
  Promise.prototype.then = function (...args) { seen++; return then.apply(this, args); };
  let got;
  try {
    const { readable, writable } = new TransformStream({ async transform(c, t) { t.enqueue(c); } }, new CountQueuingStrategy({ highWaterMark: 1 }),
      new CountQueuingStrategy({ highWaterMark: 1 }));
    const writer = writable.getWriter();
    writer.write('x');
    got = await readable.getReader().read();
  } finally {
    Promise.prototype.then = then;
    for (const name of ['size', 'next', 'state', 'queue', 'highWaterMark']) delete Object.prototype[name];
  }
  eq([got.value, seen], ['x', 0]);
});

test('facades check their brand and show no name of ours', () => {
  const get = (C, name) => Object.getOwnPropertyDescriptor(C.prototype, name).get;
  throws(TypeError, () => get(ReadableStream, 'locked').call({}));
  throws(TypeError, () => get(WritableStream, 'locked').call(new ReadableStream()));
  throws(TypeError, () => new ReadableStreamDefaultController());
  throws(TypeError, () => ReadableStream());
  eq(Object.getOwnPropertyNames(new ReadableStream()), []);
  eq(Object.getOwnPropertyNames(new WritableStream().getWriter()), []);
  eq([ReadableStream.length, ReadableStream.name, String(new TransformStream())], [0, 'ReadableStream', '[object TransformStream]']);
});
