// Package engine is the door to SQLite: the one package that knows the driver.
//
//	conn.go       Conn: one connection with its memory, limits and settings; broken for good after a panic inside
//	mode.go       Mode: on whose behalf a statement is compiled
//	authorize.go  what each Mode may do, decided by SQLite's authorizer, deny by default (sql §§5, 8.1)
//	compile.go    exactly one statement, cached with the facts that were learned while it was compiled
//	call.go       Execute and Query: whole transactions, checked before they commit
//	run.go        one compiled statement: bind, step, measure
//	script.go     a file of many statements, split by SQLite's own parser
//	function.go   functions of SQLite's in linear time, as a running function cannot be interrupted
//	scan.go       rows without limits, for operators and the host
//	backup.go     online copies through the backup API; the check of a file's integrity
//	fault.go      SQLite's codes to the names of sql §2
//
// Invariants. A Conn is used by one goroutine at a time. Every call leaves it outside a transaction, or broken; a broken
// Conn refuses everything but Close. User statements run with an authorizer Mode of their own; Host is only for statement
// texts of this room. Nothing here makes a goroutine.
//
// What is relied on in the driver, each held by a test: text after the first statement is returned; ReadOnly is a property
// of the compiled statement; the authorizer sees every access, also when SQLite compiles a statement again by itself;
// the interrupt context ends a running statement; OR ROLLBACK, a full database and an interrupt may already have ended
// the transaction; running out of memory panics.
//
// Not here: queues, readers and writers, files and their names. The room's root has them. There is no second SQLite in the
// process: two implementations on one file corrupt it.
package engine
