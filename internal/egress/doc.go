// Package egress says which addresses outbound traffic may reach.
//
//	public.go  Public: is an address one of the public internet
//	policy.go  Policy: public, nothing, or an operator's rules; hooks into a net.Dialer
//	rules.go   ParseRules: the operator's file (fuzzed)
//
// Invariants: the address that is judged is the one that the kernel is about to connect to, for every connection, so
// that a name cannot change its mind between check and use. An address that hides another (IPv4 inside IPv6) is judged
// by what it hides. What is not known to be public is refused.
//
// Not here: names, TLS, HTTP, and who may use which policy.
package egress
