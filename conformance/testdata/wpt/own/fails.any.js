test(() => equal(typeof left, "undefined"), "nothing is left of another file");
test(() => equal(1, 2), "a known failure");
test(() => equal(1, 3), "an unknown failure");
