package codec

import (
	"errors"
	"io"
)

// Format is a format of the Compression standard.
type Format int

// The formats.
const (
	Gzip Format = iota
	Deflate
	DeflateRaw
	numFormats
)

// Valid reports whether f is one of the formats.
func (f Format) Valid() bool { return f >= 0 && f < numFormats }

// Errors of a decoder. They are final: every later call gives the same one.
var (
	ErrCorrupt   = errors.New("the compressed data is not valid")
	ErrTruncated = errors.New("the compressed data ends too early")
	ErrTrailing  = errors.New("there is more data behind the end of the compressed data")
)

// ErrMore says that all input is used up and that more is needed to go on.
var ErrMore = errors.New("more input is needed")

// Codec is one stream on its way. Not safe for concurrent use.
type Codec interface {
	// Feed gives the next input, of which a copy is kept, or says (End) that there is no more. It may only be called
	// when Read last gave ErrMore, and at the start.
	Feed(p []byte)
	// End says that the input is over.
	End()
	// Read writes output to dst, which must not be empty. Once there is none left of the input so far the error is
	// ErrMore, after End io.EOF; or it is one of the errors above. n is 0 with every error.
	Read(dst []byte) (n int, err error)
}

var _, _ Codec = (*Encoder)(nil), (*Decoder)(nil)

// New makes a codec that compresses, or one that decompresses. The format must be valid.
func New(f Format, decompress bool) Codec {
	if decompress {
		return newDecoder(f)
	}
	return newEncoder(f)
}

// end is the error of an input that is used up.
func end(ended bool) error {
	if ended {
		return io.EOF
	}
	return ErrMore
}
