// Package facade holds the host functions behind the objects in env: each takes its arguments out of the guest, has the
// door of the binding called beside the guest, and makes the result a value when the guest is there again.
//
//	call.go     Caller: what the invocation offers; how a call begins and how its failure is told
//	method.go   Methods: every binding's methods and the error names of each, the one table
//	table.go    Table: the host functions
//	kv.go       key-value namespaces
//	queue.go    queue producers
//	batch.go    settlement of a delivered batch
//	sql.go      databases
//	bucket.go   the methods of object buckets and services; package sandbox has their host functions, which move bodies
//
// Invariants: no slice of guest memory lives past the host function that took it. A door's error reaches the guest as
// one of the names that its method declares, else as a TypeError (Invalid) or backend_unavailable.
//
// Not here: the JavaScript side (sandbox/prelude 85-*.js), which checks types, options and the number of arguments.
package facade
