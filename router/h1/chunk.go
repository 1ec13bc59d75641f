package h1

import "io"

// What a chunked body may carry besides data: the bytes of one chunk extension, and those of all trailer lines.
const (
	maxExtension = 1 << 10
	maxTrailer   = 8 << 10
)

type chunkState uint8

const (
	chunkSize      chunkState = iota // before or inside the digits
	chunkExtension                   // after a ';', which is ignored
	chunkSizeLF                      // after the CR of the size line
	chunkData
	chunkDataCR
	chunkDataLF
	trailerStart // at the start of a trailer line
	trailerLine
	trailerLF
	trailerEndLF // after the CR of the empty line
	chunkEnd
)

// Chunked decodes one chunked body. The zero value stands before the first chunk.
type Chunked struct {
	state  chunkState
	digits int
	left   int64 // data bytes of the chunk that are still to come
	extra  int   // bytes of the current extension, later of all trailer lines
}

// Done reports whether the body's last byte was decoded.
func (d *Chunked) Done() bool { return d.state == chunkEnd }

// Decode copies data from src to dst, as much as both allow. It returns the bytes written and the bytes of src used up,
// and io.EOF at the body's end; bytes behind it are left in src. Trailers are checked and thrown away. A malformed body
// is ErrBad. Zero written without error means that it needs more of src (or of dst).
func (d *Chunked) Decode(dst, src []byte) (written, used int, err error) {
	for {
		switch {
		case d.state == chunkEnd:
			return written, used, io.EOF
		case used == len(src):
			return written, used, nil
		case d.state == chunkData:
			n := copy(dst[written:], src[used:min(int64(len(src)), int64(used)+d.left)])
			if n == 0 {
				return written, used, nil
			}
			written, used, d.left = written+n, used+n, d.left-int64(n)
			if d.left == 0 {
				d.state = chunkDataCR
			}
		default:
			if !d.step(src[used]) {
				return written, used, errChunk
			}
			if used++; d.extra > maxTrailer {
				return written, used, errTrailerTooLarge
			}
		}
	}
}

// step takes one byte of framing; false refuses it.
func (d *Chunked) step(c byte) bool {
	switch d.state {
	case chunkSize:
		return d.size(c)
	case chunkExtension:
		if c == '\r' {
			d.state = chunkSizeLF
			return true
		}
		d.extra++
		return valueByte[c] && d.extra <= maxExtension
	case chunkSizeLF:
		d.state, d.extra = chunkData, 0
		if d.left == 0 {
			d.state = trailerStart
		}
		return c == '\n'
	case chunkDataCR:
		d.state = chunkDataLF
		return c == '\r'
	case chunkDataLF:
		d.state, d.digits = chunkSize, 0
		return c == '\n'
	}
	return d.trailer(c)
}

func (d *Chunked) size(c byte) bool {
	digit, ok := unhex(c)
	switch {
	case ok:
		d.left = d.left<<4 | int64(digit)
		d.digits++
		return d.digits <= 15 // 2^60: no overflow
	case d.digits == 0:
		return false
	case c == ';':
		d.state = chunkExtension
		return true
	}
	d.state = chunkSizeLF
	return c == '\r'
}

func (d *Chunked) trailer(c byte) bool {
	d.extra++
	switch d.state {
	case trailerStart:
		if c == '\r' {
			d.state = trailerEndLF
			return true
		}
		d.state = trailerLine
		return isToken(c)
	case trailerLine:
		if c == '\r' {
			d.state = trailerLF
			return true
		}
		return valueByte[c]
	case trailerLF:
		d.state = trailerStart
		return c == '\n'
	default: // trailerEndLF
		d.state = chunkEnd
		return c == '\n'
	}
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
