// Package h1 is the grammar of HTTP/1.1 as the public listeners speak it: bytes in, values out.
//
//	scan.go       Scanner finds the end of a request head in a growing buffer, within limits
//	head.go       Head: one request head, strictly parsed into packed fields
//	field.go      the byte tables, and which fields never pass the node
//	chunk.go      Chunked decodes a chunked body
//	response.go   Fields checks and appends a response's fields; status lines, dates, chunk sizes
//
// Invariants: no goroutine, clock, socket or file. Nothing is repaired: a head that two parsers could read differently is
// refused (bare CR or LF, folded lines, space before a colon, control bytes, several or no Host, two framings, a transfer
// coding other than chunked), so the length of every body that is let in has one reading. A Head borrows from the bytes
// it was parsed from.
//
// Not here: what a refusal looks like on the wire, and everything that waits. The room's root does both.
package h1
