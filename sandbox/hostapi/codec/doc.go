// Package codec compresses and decompresses byte streams a piece at a time, for the Compression standard.
//
//	codec.go    Codec: what both directions look like; formats and errors
//	encode.go   compressing, over the flate package
//	pool.go     Pool: encoders that are used again
//	decode.go   decompressing: the frames of gzip and zlib around a deflate stream
//	inflate.go  deflate streams, resumable at every bit
//	huffman.go  decoding tables
//	bits.go     the bits of an input that arrives in pieces
//
// Invariants: input that is wrong gives an error and nothing else. A decoder holds its window, the input of the last Feed
// and no more: a small input that unpacks to a large output costs memory only as fast as somebody takes it. No codec has
// a goroutine or anything else that must be freed.
//
// Encoding is the flate package's. Decoding is ours because every inflater at hand, that package's and the known faster
// ones, pulls: it calls a Reader and, when the bytes are not there yet, has to block or fail for good. Input comes here
// when the guest has it, in pieces that end anywhere, and the guest must go on in between. A pulling inflater would need a
// goroutine for each open stream, parked in Read for as long as the guest likes, ended with the invocation on every way
// out, and synchronised twice for every piece; in exchange for 600 lines that the tests hold against the flate package.
//
// Not here: streams, limits on the number of codecs, guests (package hostapi and the prelude).
package codec
