// Package proxyproto reads the PROXY protocol, versions 1 and 2, with which a load balancer says who connected to it.
//
//	proxyproto.go   Parse (fuzzed)
//
// Invariants: a pure function of its bytes; no input makes it panic or wait for more than MaxHeader bytes.
//
// Not here: whether the sender is believed. The room's root asks only for trusted proxies.
package proxyproto
