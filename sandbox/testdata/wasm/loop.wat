;; A start function that never ends.
(module (start $start) (func $start (loop (br 0))))
