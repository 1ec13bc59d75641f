// Package binding holds the doors through which a worker reaches what is bound to it: plain types, no engine, no store.
//
//	binding.go   Binding: one entry of env and the door behind it
//	kv.go        KV: a key-value namespace
//	sql.go       SQL: a database
//	queue.go     Queue: a queue's producer side
//	service.go   Service: another worker's HTTP route
//	outbound.go  Fetcher: what global fetch sends to the outside
//
// Invariants: an implementation is safe for concurrent use, returns promptly when its context is done, and keeps no slice
// that it was given after it returned. Errors carry the contract's names; what else is wrong with a call is Invalid
// without a name and becomes a TypeError, and every other failure becomes backend_unavailable.
//
// Not here: the JavaScript objects in env (sandbox/prelude), and what is behind the doors (package node connects them).
package binding
