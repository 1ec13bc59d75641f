promise_test(() => new Promise(() => {}), "never settles");
