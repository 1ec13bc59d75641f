// Package replica is the pure core of replication: which version of a key wins, how time is told, what crosses the wire, and
// when a deleted key may be forgotten. No goroutine, clock, socket or file: inputs in, outputs out.
//
//	version.go   Origin, HLC, Version: the total order of writes
//	clock.go     Clock: a hybrid logical clock that never goes back
//	record.go    Record: what one key holds, and its encoding on disk and on the wire (fuzzed)
//	vector.go    Vector: "everything of origin o up to seq is dominated here"
//	frame.go     the frames of a feed (fuzzed)
//	feed.go      Feeder: which records a server sends, and when it may claim its vector
//	pull.go      Puller: what a client accepts, and in which units it applies it
//	apply.go     Admit: whether a record that arrived changes the state
//	coverage.go  Coverage: which tombstones nobody can need any more
//	topology.go  Neighbours: whom a node pulls from
//
// Invariants: merge is a maximum over a total order, so it is commutative, associative and idempotent. A vector is merged only
// at a live mark, together with everything before it. Every length is checked before it is trusted.
//
// Not here: storing, sending, reading clocks. Package kv does that and is the only caller.
package replica
