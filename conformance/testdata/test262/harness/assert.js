function assert(ok, message) {
  if (!ok) throw new Test262Error(message);
}
