// Package netns gives tests networks of their own: namespaces, a packet filter between them, and processes inside.
//
//	netns.go  Apart: the test again, in namespaces; Run and Filter: the tools; Namespace: a network with one end of a link
//
// Invariants: nothing outside the namespaces that a run makes for itself is changed, and they go with its processes. A machine that
// does not allow namespaces, or has no ip, nft or tc, skips the test and says why.
//
// Not here: what is tested. It is imported by _test.go files only.
package netns
