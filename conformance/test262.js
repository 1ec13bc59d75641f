// The worker that runs a file of test262. The harness files are evaluated once and are part of the snapshot. What this
// uses is taken from the global object before a test can change it.
import harness from "./harness.txt";

const { Promise, Response, String } = globalThis;
const evaluate = eval; // indirect: in the global scope
const text = (s) => (typeof s === "symbol" ? "a symbol" : String(s));
const done = Promise.withResolvers();

globalThis.print = (line) => {
  line = text(line);
  if (line === "Test262:AsyncTestComplete") done.resolve();
  else if (line.startsWith("Test262:AsyncTestFailure:")) {
    const [, name, message] = /^([^:]*): ?(.*)$/s.exec(line.slice(25)) ?? [, "Error", line.slice(25)];
    done.reject({ constructor: { name }, message });
  }
};

globalThis.$262 = {
  global: globalThis,
  createRealm() { throw new Error("a sandbox is one realm"); },
  evalScript: (source) => evaluate(source),
  detachArrayBuffer: (buffer) => {
    buffer.transfer();
  },
};

for (const source of JSON.parse(harness)) evaluate(source);

// outcome says what was thrown: the name of its constructor, a line feed, its message. It must get by without what tests
// have broken, JSON among it.
function outcome(e) {
  try {
    return `${text(e?.constructor?.name ?? typeof e)}\n${text(e?.message ?? e)}`;
  } catch {
    return "unreadable\n";
  }
}

export default {
  async fetch(request) {
    const { program, module, async } = await request.json();
    let said = "";
    try {
      if (module !== undefined) await import(module);
      else evaluate(program);
      if (async) await done.promise;
    } catch (e) {
      said = outcome(e);
    }
    return new Response(said);
  },
};
