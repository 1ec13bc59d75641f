package codec

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// level is a compromise between size and time; zlib calls it the default.
const level = 6

// Encoder compresses. Its output is held until it is read: never more than about what the input was.
type Encoder struct {
	format Format
	out    bytes.Buffer
	w      resetWriter
	ended  bool
}

// resetWriter is what the writers of the three formats are.
type resetWriter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func newEncoder(f Format) *Encoder {
	e := &Encoder{format: f}
	switch f {
	case Gzip:
		e.w, _ = gzip.NewWriterLevel(&e.out, level) // the level is valid
	case Deflate:
		e.w, _ = zlib.NewWriterLevel(&e.out, level)
	default:
		e.w, _ = flate.NewWriter(&e.out, level)
	}
	return e
}

// Feed compresses p.
func (e *Encoder) Feed(p []byte) {
	if !e.ended {
		_, _ = e.w.Write(p) // a bytes.Buffer takes everything
	}
}

// End compresses what the encoder still holds back.
func (e *Encoder) End() {
	if !e.ended {
		e.ended = true
		_ = e.w.Close() // as above
	}
}

// reset makes it as new.
func (e *Encoder) reset() {
	e.out.Reset()
	e.w.Reset(&e.out)
	e.ended = false
}

// Read gives what is compressed.
func (e *Encoder) Read(dst []byte) (int, error) {
	if e.out.Len() == 0 {
		return 0, end(e.ended)
	}
	return e.out.Read(dst)
}
