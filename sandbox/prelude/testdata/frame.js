// The frame of the scripts beside it: test(name, fn) notes a test, the host runs them with run() and reads results().

const tests = [];
const clock = []; // [ms, fn] of hostTimeout
function errorFire() { return false; }
function errorIs(value) { return value instanceof Error; }
function hostTimeout(ms, fn) { clock.push([ms, fn]); }

function test(name, fn) { tests.push({ name, fn, outcome: 'never ended' }); }

function eq(got, want, what = '') {
  const show = (v) => v instanceof Uint8Array ? `bytes ${[...v]}` : JSON.stringify(v, (_, x) => x === undefined ? 'undefined' : x);
  if (show(got) !== show(want)) throw new Error(`${what} got ${show(got)}, want ${show(want)}`);
}

function throws(C, fn) {
  try {
    fn();
  } catch (error) {
    if (error instanceof C) return;
    throw new Error(`threw ${error}, want a ${C.name}`);
  }
  throw new Error(`threw nothing, want a ${C.name}`);
}

async function rejects(want, promise) {
  try {
    await promise;
  } catch (error) {
    if (error === want || typeof want === 'function' && error instanceof want) return;
    throw new Error(`rejected with ${error}`);
  }
  throw new Error('did not reject');
}

// Lets everything happen that can happen without the host.
async function idle() { for (let i = 0; i < 50; i++) await undefined; }

async function run() {
  for (const t of tests) {
    try {
      await t.fn();
      t.outcome = '';
    } catch (error) {
      t.outcome = `${error}\n${error?.stack}`;
    }
  }
}

function results() { return tests.map(({ name, outcome }) => `${name}\u0000${outcome}`).join('\u0001'); }
