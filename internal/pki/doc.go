// Package pki is the certificates of a fleet: one authority, and a leaf by which each member proves who it is to the others.
//
//	authority.go   Authority: a root made or read back, and how it signs a member's request
//	member.go      what a member asks with, and what is read out of a leaf: member, serial, fingerprint
//
// Invariants: a leaf names exactly one member, in its URI and in its DNS name, and is for P-256 keys alone. The member in a
// leaf is what the caller of Sign says, never what the request claims. Nothing here touches a file or keeps state.
//
// Not here: where the root's key lies (control seals it), who is a member still (control), connections (node/peer).
package pki
