// Package tail shows operators what a worker does as it happens: each invocation when it is over, and what it logs.
//
//	hub.go     Hub: who watches which worker
//	watcher.go Watcher: one who does, with a bounded queue
//	filter.go  Filter: which of it all
//	line.go    how it is written, one JSON document a line
//
// Invariants: nobody who serves a request ever waits here. While nobody watches, an invocation costs one atomic load; what does not
// fit into a watcher's queue is dropped and counted, and the watcher is told how much. Of a request only the method, host and path are
// shown.
//
// Not here: who may watch (control/operator), and what an invocation is (sandbox, router).
package tail
