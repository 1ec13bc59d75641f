// Package nettest holds stores in processes of their own to what they promise on a real network: links that are cut, lose packets
// or are slow, members that stop or die, disks that fill. It holds tests only; `make test-net` runs them.
//
//	net_test.go     the cases
//	fabric_test.go  a switch with one link per node, and what can be done to it
//	node_test.go    the process of one node: the test binary, started again
//	proc_test.go    a node's process, as the cases see it
//	certs_test.go   who is who
//	measure_test.go, converge_bench_test.go  how long a put takes to reach all, on loopback
//
// Invariants: nothing outside the namespaces that a run makes for itself is changed, and they go with its processes. A machine
// that does not allow namespaces, or has no ip, nft or tc, skips the run and says why.
//
// Not here: what needs no network (package kv's own tests, which also hold the protocol to its promises by simulation).
package nettest
