// Package gossip is the doorbell between the stores of a fleet: who is there, and that somebody has written. It is the only
// door to memberlist and carries no data: one small head per node, the newest replaces the one before.
//
//	bell.go   Bell: open, run, ring
//	key.go    the key file
//	head.go   what is rung, and its encoding (fuzzed)
//	guard.go  who may take part: names with epochs that the store knows
//	log.go    what is refused, and memberlist's log
//
// Invariants: every packet is encrypted and authenticated with the fleet's key. A node whose name and epoch are not allowed is
// refused. Nothing that arrives costs more than its own bytes. Losing every packet costs latency only.
//
// Not here: records, vectors, who the members are. Package kv knows and pulls.
package gossip
