;; A start function that traps, after it has written.
(module
  (import "env" "memory" (memory 1))
  (data (i32.const 0) "data")
  (start $start)
  (func $start (i32.store (i32.const 8) (i32.const 42)) unreachable))
