// Package audit keeps who changed what: records that are appended, never altered, and dropped oldest first once there are
// too many.
//
//	record.go  Record
//	log.go     Log: Open, Append, Sync, Close; segments on disk
//	read.go    Newest: reading backwards
//
// Invariants: a record is one line, written whole before Append returns; a line that a crash cut is removed at the next
// Open. A record never holds a value of a private input, a token's secret or a spec.
//
// Not here: what is recorded (package control), and who may read it.
package audit
