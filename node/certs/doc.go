// Package certs is the node's own certificate authority: a root made on first start, and a leaf for every name that the
// node answers for.
//
//	authority.go  Authority: Open, the root's files, the pool that trusts it
//	leaf.go       how a leaf is made and when it is due again
//	names.go      Names: leaves on demand for the names a callback allows, kept in a bounded cache
//	operator.go   Dir: the operator's own certificates, read again when their files change
//	control.go    Hosts: the one leaf of a listener with fixed addresses
//
// Invariants: the root's key is in one file with mode 0600 and nowhere else; keys of our leaves are in memory only. A name that
// the callback does not allow never gets a certificate of its own. A handshake that finds its leaf takes no lock.
//
// Not here: listeners, and which names are routed.
package certs
