test('capturing listeners come first, then the order of adding', () => {
  const target = new EventTarget(), seen = [];
  target.addEventListener('x', () => seen.push('a'));
  target.addEventListener('x', () => seen.push('b'), true);
  target.addEventListener('x', { handleEvent() { seen.push(this === target ? 'target' : 'object'); } });
  target.dispatchEvent(new Event('x'));
  eq(seen, ['b', 'a', 'object']);
});

test('a listener counts once, once means once, and a signal takes it away', () => {
  const target = new EventTarget(), seen = [];
  const twice = () => seen.push('twice');
  target.addEventListener('x', twice);
  target.addEventListener('x', twice);
  target.addEventListener('x', () => seen.push('once'), { once: true });
  const gone = new AbortController();
  target.addEventListener('x', () => seen.push('signal'), { signal: gone.signal });
  target.dispatchEvent(new Event('x'));
  gone.abort();
  target.dispatchEvent(new Event('x'));
  eq(seen, ['twice', 'once', 'signal', 'twice']);
});

test('what a listener throws is reported and stops nobody', () => {
  const target = new EventTarget();
  let after = false;
  target.addEventListener('x', () => { throw new Error('by listener'); });
  target.addEventListener('x', () => { after = true; });
  eq(target.dispatchEvent(new Event('x')), true);
  eq(after, true);
  eq(reports.length, 1);
  eq(reports[0].includes('by listener'), true);
});

test('preventDefault needs a cancelable event and a listener that is not passive', () => {
  const dispatch = (init, options) => {
    const target = new EventTarget();
    target.addEventListener('x', (e) => e.preventDefault(), options);
    return target.dispatchEvent(new Event('x', init));
  };
  eq(dispatch({ cancelable: true }), false);
  eq(dispatch({}), true);
  eq(dispatch({ cancelable: true }, { passive: true }), true);
});

test('an event under way cannot be dispatched again, and users make no trusted one', () => {
  const target = new EventTarget();
  let code;
  target.addEventListener('x', (e) => {
    try { target.dispatchEvent(e); } catch (error) { code = error.name; }
    eq(e.isTrusted, false);
  });
  target.dispatchEvent(new Event('x'));
  eq(code, 'InvalidStateError');
  eq(reports.length, 1, 'reports of the test before and of none here:');
});

test('brands cannot be forged and nothing internal has a name', () => {
  throws(TypeError, () => EventTarget.prototype.addEventListener.call({}, 'x', null));
  throws(TypeError, () => new EventTarget().dispatchEvent({ type: 'x' }));
  throws(TypeError, () => new AbortSignal());
  throws(TypeError, () => EventTarget());
  eq(Object.getOwnPropertyNames(new AbortController().signal), []);
  eq(Object.getOwnPropertyNames(new Event('x')), ['isTrusted']);
  eq(Object.prototype.toString.call(new CustomEvent('x', { detail: 1 })), '[object CustomEvent]');
});

test('an abort happens once, with its reason, runtime steps before listeners', () => {
  const controller = new AbortController(), { signal } = controller, seen = [];
  signal.onabort = (e) => seen.push(`event ${e.isTrusted}`);
  signalOnAbort(signal, () => seen.push('step'));
  const forgotten = () => seen.push('forgotten');
  signalOnAbort(signal, forgotten);
  signalForget(signal, forgotten);
  controller.abort('why');
  controller.abort('again');
  eq([signal.aborted, signal.reason, seen], [true, 'why', ['step', 'event true']]);
  throws(DOMException, () => AbortSignal.abort().throwIfAborted());
});

test('any() is aborted together with its first source, before any listener runs', () => {
  const a = new AbortController(), b = new AbortController();
  const either = AbortSignal.any([a.signal, AbortSignal.any([b.signal])]);
  let then;
  b.signal.addEventListener('abort', () => { then = either.aborted; });
  b.abort('b');
  a.abort('a');
  eq([then, either.reason], [true, 'b']);
});

test('timeout() aborts when the host says so', () => {
  const signal = AbortSignal.timeout(20);
  eq(signal.aborted, false);
  const [ms, fire] = clock.pop();
  fire();
  eq([ms, signal.reason.name], [20, 'TimeoutError']);
  throws(TypeError, () => AbortSignal.timeout(-1));
});
