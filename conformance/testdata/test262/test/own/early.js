/*---
negative:
  phase: parse
  type: SyntaxError
---*/
$DONOTEVALUATE();
var = 1;
