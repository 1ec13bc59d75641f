// Package nettest holds a fleet of real nodes to what it promises on a real network (issue 7): each in a network of its own, killed, cut
// off in both directions and in one, behind loss, moved to another address, while all serve, take writes and deploys go on. It holds
// tests only; `make test-net` runs them.
//
//	net_test.go     the run: which fault comes upon whom, and what must hold while it lasts and at the end
//	fabric_test.go  a switch with one link per node, and what can be done to it
//	node_test.go    a node's process and its command line
//	load_test.go    what goes on all the time: requests, writes, deploys
//	ledger_test.go  what was acknowledged, and what a node must therefore answer
//
// Invariants: those of package netns. A run prints its seed; -seed repeats its faults, though not its timing.
//
// Not here: a fleet without faults (package e2e), the replication of KV alone (kv/nettest).
package nettest
