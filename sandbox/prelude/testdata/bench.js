// What the benchmark measures: each gives a promise. promises is the measure for the others: as many awaits, no stream.

const chunk = new Uint8Array(10);

async function drain(stream) {
  const reader = stream.getReader();
  while (!(await reader.read()).done);
}

const benchmarks = {
  async promises() {
    const read = async () => ({ value: chunk, done: false });
    for (let i = 0; i < 4; i++) await read();
  },
  async create() { return new ReadableStream({ pull() {} }); },
  async queued() {
    await drain(new ReadableStream({ start(c) { c.enqueue(chunk); c.enqueue(chunk); c.enqueue(chunk); c.close(); } }));
  },
  async pulled() {
    let n = 0;
    await drain(new ReadableStream({ pull(c) { if (n++ < 3) c.enqueue(chunk); else c.close(); } }));
  },
  async host() {
    let n = 0;
    await drain(newHostReadableStream(() => n++ < 3 ? chunk : null));
  },
  async hostAll() {
    let n = 0;
    await readAllBytes(newHostReadableStream(() => n++ < 3 ? chunk : null));
  },
  async transform() {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    for (let i = 0; i < 3; i++) writer.write(chunk);
    writer.close();
    await drain(readable);
  },
  async pipe() {
    let n = 0;
    const source = new ReadableStream({ pull(c) { if (n++ < 3) c.enqueue(chunk); else c.close(); } });
    await source.pipeTo(new WritableStream({ write() {} }));
  },
};
