// META: global=window
test(() => {}, "never");
