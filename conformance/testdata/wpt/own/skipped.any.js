test(() => {}, "never");
