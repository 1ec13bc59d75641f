// Package whatwgurl parses, changes and serialises URLs as the WHATWG URL standard says. It is a pure core: no input
// and no output but strings.
//
//	url.go      URL: the record, its serialisation, where the parts are in it
//	parse.go    Parse: from a string, with or without a base
//	path.go     the path states, shared by Parse and the setters
//	set.go      the setters of the parts
//	host.go     hosts: domains, IPv4, opaque hosts
//	ipv6.go     IPv6 addresses, both ways
//	encode.go   the percent-encode sets
//
// Invariants: a serialised URL is ASCII, and parsing it again gives the same URL. No input longer than MaxBytes is
// accepted. Input is UTF-8; what is not is read as U+FFFD.
//
// Not here: the query as a list of pairs (the prelude has it), the URL class.
package whatwgurl
