// Package kv is the node's key-value store (kv.md): all namespaces in one durable store, and replicas of it on the other
// members of a fleet that converge.
//
//	store.go       Store: open, close, the life of namespaces
//	options.go     Options
//	namespace.go   Namespace: get, put, delete with the contract's limits and words
//	list.go        listings; cursor.go: cursors that cannot be made up
//	metadata.go    canonical JSON of metadata; limits.go: limits, expiry; errors.go: names
//	ledger.go      the data in Pebble: identity, views, what is durable
//	keys.go        how it is keyed; tx.go: one batch; write.go: own writes and applied ones; read.go
//	commit.go      group commit
//	space.go       what is known of a namespace
//	blob.go        values over 128 KiB: files by digest; collect.go: when they go
//	sweep.go       expiry, tombstones, leftovers of deleted namespaces
//	backup.go      online backup, and what a restored directory becomes
//	lost.go        notices deletes that come back
//	members.go     who the other members are, and who may be talked to
//	feed.go        units of this store's feed; serve.go: the handlers that send them
//	intake.go      one session with a peer, frame by frame; pull.go: keeps a session with each neighbour; fetch.go: value files
//	ended.go       why sessions end; refused.go: why peers are refused; fence.go: a disk that went back in time
//	doorbell.go    gossip wakes sessions; watch.go: lag, waiting; audit.go: digests compared
//	replica/       the pure core of replication
//	gossip/        the door to memberlist
//
// Invariants: a call that returned nil is on disk. A record names its value file only when that is complete and on disk, and the
// file goes only when the loss of its last name is on disk. Sequence numbers are never used twice under one epoch. What is not
// durable yet is never shown to a peer. A tombstone goes only when every member and this store cover it, nothing older is on its
// way here, and its grace is over. TestSimulation holds the whole to its promises, TestSimulationNeedsEachRule shows that each rule
// is needed.
//
// Not here: JavaScript (package sandbox), the Resource (package control), the peer listener and certificates (package node).
package kv
