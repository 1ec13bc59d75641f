package engine

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf16"
	"unicode/utf8"

	"edged/sandbox/engine/abi"
)

// Strings are read and made in place where that is possible: the engine's own conversions are loops of compiled
// WebAssembly that count fuel, ten to forty times slower than a copy. What follows is how this build lays out a string
// behind the pointer in its value. learnStrings checks all of it at start, and without it everything still works through
// the engine's calls.
const (
	strLength = 0       // number of units, and strWide
	strWide   = 1 << 31 // two bytes for each unit; otherwise one, which is Latin-1
	strKind   = 4       // two bits of this word
	kindMask  = 3 << 28
	kindFlat  = 0 << 28 // units begin at strData
	kindSlice = 1 << 28 // a part of another string: strData holds its pointer, strStart the first unit
	strData   = 24
	strStart  = 28
)

// stringLayout says which of the above holds.
type stringLayout struct{ flat, slice bool }

// units returns the units of a string where they are, or false for what only the engine can read: a string still in pieces.
func (in *Instance) units(v Value) (b []byte, wide, ok bool) {
	if v.tag() != tagString || !in.engine.layout.flat {
		return nil, false, false
	}
	p := v.pointer()
	head, ok := in.bytesAt(p, strData+8)
	if !ok {
		return nil, false, false
	}
	word := binary.LittleEndian.Uint32(head[strLength:])
	n, start := word&^strWide, uint32(0)
	wide = word&strWide != 0
	switch binary.LittleEndian.Uint32(head[strKind:]) & kindMask {
	case kindFlat:
	case kindSlice:
		parent, whole, ok := in.sliceOf(head)
		if start = binary.LittleEndian.Uint32(head[strStart:]); !ok || uint64(start)+uint64(n) > uint64(whole) {
			return nil, false, false
		}
		p = parent
	default:
		return nil, false, false
	}
	from, size := uint64(start), uint64(n)
	if wide {
		from, size = 2*from, 2*size
	}
	if from += uint64(p) + strData; from+size > uint64(len(in.mem.view())) {
		return nil, false, false
	}
	return in.mem.view()[from : from+size], wide, true
}

// sliceOf returns the flat string that a slice is a part of, and its length.
func (in *Instance) sliceOf(head []byte) (parent, length uint32, ok bool) {
	if !in.engine.layout.slice {
		return 0, 0, false
	}
	parent = binary.LittleEndian.Uint32(head[strData:])
	h, ok := in.bytesAt(parent, strData)
	if !ok || binary.LittleEndian.Uint32(h[strKind:])&kindMask != kindFlat {
		return 0, 0, false
	}
	word := binary.LittleEndian.Uint32(h[strLength:])
	same := word&strWide == binary.LittleEndian.Uint32(head[strLength:])&strWide
	return parent, word &^ strWide, same
}

// String returns a string value as UTF-8; lone surrogates become U+FFFD. False for other values: nothing is converted.
func (in *Instance) String(v Value) (string, bool) {
	b, ok := in.AppendString(nil, v)
	return string(b), ok
}

// AppendString appends a string value to dst as UTF-8; lone surrogates become U+FFFD. False, and dst as it was, for
// other values.
func (in *Instance) AppendString(dst []byte, v Value) ([]byte, bool) {
	return in.appendText(dst, v, math.MaxInt)
}

// appendText reads at most limit bytes of the string, as the guest holds it, so that a long one costs nothing.
func (in *Instance) appendText(dst []byte, v Value, limit int) ([]byte, bool) {
	if !v.IsString() || in.failure != nil {
		return dst, false
	}
	b, wide, ok := in.units(v)
	b = b[:min(len(b), limit)]
	switch {
	case !ok:
		return in.appendCString(dst, v, limit)
	case wide:
		return appendUTF16(dst, b), true
	case IsASCII(b):
		return append(dst, b...), true
	}
	for _, c := range b {
		dst = utf8.AppendRune(dst, rune(c))
	}
	return dst, true
}

// AppendLatin1 appends a string of characters up to U+00FF to dst, one byte each. False, and dst as it was, if v is no
// such string.
func (in *Instance) AppendLatin1(dst []byte, v Value) ([]byte, bool) {
	if b, wide, ok := in.units(v); ok && !wide && in.failure == nil {
		return append(dst, b...), true
	}
	n := len(dst)
	dst, ok := in.AppendString(dst, v)
	if !ok {
		return dst, false
	}
	out := dst[:n]
	for text := dst[n:]; len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		if r > 0xff {
			return dst[:n], false
		}
		out = append(out, byte(r)) // never ahead of what is still to be read
		text = text[size:]
	}
	return out, true
}

// appendCString lets the engine convert.
func (in *Instance) appendCString(dst []byte, v Value, limit int) ([]byte, bool) {
	p := in.opPtr(abi.ToCStringLen2, in.cx(), uint64(in.known.scratch), uint64(v), 0)
	n, ok := in.u32At(in.known.scratch)
	if !ok || p == 0 || in.failure != nil {
		return dst, false
	}
	b, ok := in.bytesAt(p, n)
	if !ok {
		return dst, false
	}
	dst = appendScalar(dst, b[:min(len(b), limit)])
	in.op(abi.FreeCString, in.cx(), uint64(p))
	return dst, true
}

// appendScalar copies the engine's UTF-8, in which a lone surrogate is three bytes that begin with 0xED.
func appendScalar(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 0xed)
		if i < 0 || i+2 >= len(b) {
			return append(dst, b...)
		}
		if b[i+1] >= 0xa0 {
			dst = append(append(dst, b[:i]...), "\uFFFD"...)
		} else {
			dst = append(dst, b[:i+3]...)
		}
		b = b[i+3:]
	}
}

func appendUTF16(dst, b []byte) []byte {
	for i := 0; i+1 < len(b); i += 2 {
		r := rune(binary.LittleEndian.Uint16(b[i:]))
		if utf16.IsSurrogate(r) {
			low := utf8.RuneError
			if i+3 < len(b) {
				low = rune(binary.LittleEndian.Uint16(b[i+2:]))
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 2
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// IsASCII reports whether b has no byte from 0x80 up: it is the same text as UTF-8 and as Latin-1.
func IsASCII(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// NewString returns a string from UTF-8; each byte that is none becomes U+FFFD. Exception if there is no memory for it.
func (in *Instance) NewString(b []byte) Value {
	if IsASCII(b) {
		return in.NewLatin1(b)
	}
	units := uint32(0)
	narrow := true
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		i += size
		units++
		if r > 0xffff {
			units++
		}
		narrow = narrow && r <= 0xff
	}
	if narrow {
		return in.newUnits(units, 1, func(dst []byte) {
			for i := 0; len(b) > 0; i++ {
				r, size := utf8.DecodeRune(b)
				dst[i] = byte(r)
				b = b[size:]
			}
		})
	}
	return in.newUnits(units, 2, func(dst []byte) {
		dst = dst[:0]
		for len(b) > 0 {
			r, size := utf8.DecodeRune(b)
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				dst = binary.LittleEndian.AppendUint16(dst, uint16(high))
				r = low
			}
			dst = binary.LittleEndian.AppendUint16(dst, uint16(r))
			b = b[size:]
		}
	})
}

// NewLatin1 returns a string with one character for each byte. Exception if there is no memory for it.
func (in *Instance) NewLatin1(b []byte) Value {
	return in.newUnits(uint32(len(b)), 1, func(dst []byte) { copy(dst, b) })
}

// newUnits makes a string of n units of the given width, which fill writes. A narrow one is first a wide one of half the
// length, whose units the engine copies unseen, and then told what it really is.
func (in *Instance) newUnits(n, width uint32, fill func(dst []byte)) Value {
	if in.failure != nil {
		return Exception
	}
	size := uint64(n) * uint64(width)
	if size >= uint64(in.engine.opt.MaxMemoryBytes) || n >= strWide>>1 {
		return in.opVal(abi.ThrowOutOfMemory, in.cx())
	}
	p := in.known.io
	if size+2 > ioBytes {
		if p = in.malloc(uint32(size) + 2); p == 0 {
			return in.opVal(abi.ThrowOutOfMemory, in.cx())
		}
	}
	dst, ok := in.bytesAt(p, uint32(size)+2)
	if !ok {
		return in.opVal(abi.ThrowOutOfMemory, in.cx())
	}
	fill(dst[:size])
	dst[size], dst[size+1] = 0, 0
	v := in.stringAt(p, n, width)
	if p != in.known.io && in.failure == nil {
		in.free(p)
	}
	return v
}

func (in *Instance) stringAt(p, n, width uint32) Value {
	switch {
	case width == 2:
		return in.opVal(abi.NewStringUTF16, in.cx(), uint64(p), uint64(n))
	case !in.engine.layout.flat:
		return in.latin1Slowly(p, n)
	case n == 0:
		return in.opVal(abi.NewStringLen, in.cx(), uint64(p), 0)
	}
	v := in.opVal(abi.NewStringUTF16, in.cx(), uint64(p), uint64(n/2+1)) // always a byte more for the NUL
	if v.tag() == tagString {
		if head, ok := in.bytesAt(v.pointer(), strLength+4); ok {
			binary.LittleEndian.PutUint32(head[strLength:], n)
		}
	}
	return v
}

// latin1Slowly is for a build whose layout is not the expected one.
func (in *Instance) latin1Slowly(p, n uint32) Value {
	b, _ := in.bytesAt(p, n)
	if IsASCII(b) {
		return in.opVal(abi.NewStringLen, in.cx(), uint64(p), uint64(n))
	}
	wide := make([]byte, 0, 2*len(b))
	for _, c := range b {
		wide = append(wide, c, 0)
	}
	q := in.put(wide)
	v := in.opVal(abi.NewStringUTF16, in.cx(), uint64(q), uint64(n))
	in.free(q)
	return v
}

// Text renders any value for a log, as String(v) would, at most 16 KiB of it. It may run code of the guest; "" if that
// throws.
func (in *Instance) Text(v Value) string {
	s := v
	if !v.IsString() {
		if v.IsSymbol() {
			return "Symbol()"
		}
		if s = in.opVal(abi.ToString, in.cx(), uint64(v)); s.IsException() {
			in.swallow()
			return ""
		}
		defer in.Free(s)
	}
	b, _ := in.appendText(nil, s, maxErrorText)
	if len(b) >= maxErrorText {
		b = bytes.ToValidUTF8(b[:maxErrorText], nil) // the cut may go through a character
	}
	return string(b)
}
