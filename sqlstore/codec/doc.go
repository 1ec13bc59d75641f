// Package codec is the form of SQL values between an application and a database: tagged by storage class, exact (sql §3).
//
//	value.go    Value, Statement and Result: what goes in and comes out, as Go types
//	check.go    the limits of sql §6 and what a statement must satisfy before it runs
//	meter.go    Meter: the size of a result in bytes of canonical JSON, row by row
//	parse.go    JSON bytes to Statements
//	scan.go     the JSON grammar that parse.go reads, nothing more than it needs
//	render.go   Results to JSON bytes
//	fault.go    the names of sql §2 that an application sees
//
// Invariants: no goroutine, clock or file. Nothing is rounded, repaired or cut: a value that has no exact form is refused.
// A wrong shape (ErrType, a TypeError in JavaScript) wins over a wrong content (ErrSQL, ErrRange) wherever the two meet in
// one call.
//
// Not here: plain, untagged values. They are another codec, which this project does not have.
package codec
