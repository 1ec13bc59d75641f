// Package hostapi holds the host functions behind the web classes of the prelude: what is too heavy for JavaScript.
//
//	table.go      Table: the functions in their order, which stored images rely on
//	url.go        URLs, over the pure core whatwgurl
//	pattern.go    URL patterns, over the pure core urlpattern
//	encoding.go   TextEncoder and TextDecoder
//	utf.go        the UTF-8 and UTF-16 decoders of the Encoding standard
//	legacy.go     the other encodings: single-byte and multi-byte tables
//	iso2022jp.go  the one with a memory
//	crypto.go     random values and digests
//	subtle.go     the other methods of crypto.subtle, over the pure core webcrypto
//	subtlejwk.go  JsonWebKey as the guest gives it
//	worker.go     Worker, which the current invocation implements: what takes long, beside the guest
//	clone.go      what structuredClone must know about an object; names that scripts do not see
//	headers.go    the checks of header names and values
//	mime.go       MIME types of Content-Type headers
//	form.go       multipart/form-data
//	compress.go   compression streams, over the pure core codec; Codecs, which the current invocation keeps
//	intl.go       numbers and dates in US English, over the pure core intl
//	log.go        console; Console, which the current invocation implements
//
// Invariants: only the prelude calls these functions, yet every argument is checked: a wrong one throws a TypeError and
// nothing else. No function waits. No slice of guest memory is kept.
//
// Not here: timers, bodies, events (package sandbox), the classes themselves (sandbox/prelude).
package hostapi
