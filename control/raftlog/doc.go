// Package raftlog keeps the control log: raft's log and stable stores on Pebble, and its snapshots on files.
//
//	store.go      Store: the log entries and raft's own few values, in one Pebble
//	entry.go      how one log entry is encoded (fuzzed)
//	snapshots.go  OpenSnapshots: a private directory of raft's file snapshots
//
// Invariants: StoreLog, StoreLogs, DeleteRange and Set return when their effect is durable, all of it or none; what was
// acknowledged survives a crash at any later instant. Keys are big-endian, so that order in Pebble is order in the log.
//
// Not here: elections, and what a command means.
package raftlog
