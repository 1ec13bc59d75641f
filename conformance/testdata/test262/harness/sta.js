function Test262Error(message) {
  this.message = message;
}
function $DONOTEVALUATE() {
  throw "evaluated";
}
