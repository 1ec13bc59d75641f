// Package front is an S3-compatible front of a node's object buckets: a backend of the VersityGW library that is a client of the
// node's Host API and operators' door. docs/s3.md says what it maps and what it refuses.
//
//	front.go    Options, Run
//	limits.go   what is refused before a request is read: lengths, headers that promise what no bucket keeps
//	buckets.go  buckets: Resources of one Space
//	objects.go  head, get, put, delete
//	list.go     both listings
//	uploads.go  multipart uploads
//	body.go     bodies on their way, in both directions
//	sums.go     checksums that clients send
//	errors.go   the node's refusals in the words of S3
//
// Invariants: no body is kept, a transfer holds 128 KiB whatever its size. The last bytes of an upload leave only after the library has
// verified the body, so that nothing is stored whose signature or checksum is wrong. What a bucket cannot keep is refused, not dropped,
// unless the operator asked for that. A stalled client or node ends a transfer after two minutes. Nothing is cached: each request finds its
// bucket anew.
//
// Not here: signatures, XML and routes are the library's, rules about objects the node's.
package front
