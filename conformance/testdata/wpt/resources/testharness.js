// As much of the suite's harness as the runner uses, written for its tests.
(() => {
  const tests = [];
  const done = [];
  let open = 0;
  let over = false;
  const end = (status, message) => {
    if (over) return;
    over = true;
    for (const t of tests) t.status ??= 3;
    for (const f of done) f(tests, { status, message });
  };
  const settle = () => Promise.resolve().then(() => { if (open === 0) end(0, null); });
  const run = (name, f) => {
    const t = { name, status: null, message: null };
    tests.push(t);
    open++;
    const finish = (status, message) => {
      t.status = status;
      t.message = message;
      open--;
      settle();
    };
    return [finish, f];
  };
  globalThis.test = (f, name) => {
    const [finish] = run(name, f);
    try {
      f();
      finish(0, null);
    } catch (e) {
      finish(1, String(e));
    }
  };
  globalThis.promise_test = (f, name) => {
    const [finish] = run(name, f);
    Promise.resolve().then(f).then(() => finish(0, null), (e) => finish(1, String(e)));
  };
  globalThis.equal = (got, want) => { if (got !== want) throw new Error(`${got} is not ${want}`); };
  globalThis.add_completion_callback = (f) => { done.push(f); };
  globalThis.timeout = () => end(2, "out of time");
})();
