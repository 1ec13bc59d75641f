// Package jsonraw judges JSON by its raw bytes, where encoding/json is too kind: it replaces invalid UTF-8 and lone
// surrogates, takes the last of two equal members, matches names without regard to case and rounds numbers.
//
//	check.go    Check: is this one well-formed document by host-api §2.2
//	digest.go   Fingerprint, Equal: the value behind the bytes (host-api §7.4)
//	text.go     string literals: validation and decoding
//	decimal.go  Decimal: numbers as exact decimals
//	access.go   KindOf, Members, Items, Text: exact, lazy access to checked bytes
//
// Invariants: the work is O(n log n) and the memory O(n) in the length of the input, the depth is bounded, nothing
// panics. What Check accepts, encoding/json accepts too.
//
// Not here: what a document means, and which members it may have.
package jsonraw
