package wasmpass

import "fmt"

// reader walks bytes from outside. The first fault sticks: after it every read returns zero, and the caller looks at
// err once, where it would act on what it read.
type reader struct {
	b   []byte
	pos int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: %s", r.pos, fmt.Sprintf(format, args...))
	}
}

func (r *reader) rest() int { return len(r.b) - r.pos }

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.pos >= len(r.b) {
		r.fail("unexpected end")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// bytes returns the next n bytes as a view of the input.
func (r *reader) bytes(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(r.rest()) {
		r.fail("length %d exceeds the %d bytes left", n, r.rest())
		return nil
	}
	s := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return s
}

// u32 reads an unsigned LEB128 of at most five bytes, as the format demands.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 0xffffffff {
				r.fail("integer over 32 bits")
				return 0
			}
			return uint32(v)
		}
	}
	r.fail("integer too long")
	return 0
}

// skipLEB passes over a signed integer of at most max bytes; its value does not matter here.
func (r *reader) skipLEB(max int) {
	for range max {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("integer too long")
}

// count reads the length of a vector whose entries take at least size bytes each, so that a hostile length cannot
// make the caller allocate more than a small multiple of the input.
func (r *reader) count(size int) int {
	n := r.u32()
	if uint64(n)*uint64(size) > uint64(r.rest()) {
		r.fail("%d entries in %d bytes", n, r.rest())
		return 0
	}
	return int(n)
}

func (r *reader) name() string { return string(r.bytes(r.u32())) }

func appendU32(dst []byte, v uint32) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

func appendS32(dst []byte, v int32) []byte { return appendS64(dst, int64(v)) }

func appendS64(dst []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(dst, c)
		}
		dst = append(dst, c|0x80)
	}
}

func appendBytes(dst, b []byte) []byte { return append(appendU32(dst, uint32(len(b))), b...) }

func appendName(dst []byte, s string) []byte { return append(appendU32(dst, uint32(len(s))), s...) }
