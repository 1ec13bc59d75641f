function $DONE(e) {
  print(e ? "Test262:AsyncTestFailure:Test262Error: " + e.message : "Test262:AsyncTestComplete");
}
