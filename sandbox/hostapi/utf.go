package hostapi

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// A decoder turns bytes of one encoding into UTF-8.
type decoder interface {
	// decode appends the text of src to dst, errors as U+FFFD. Unless last is set, bytes at the end that may become a
	// character with more bytes behind them are not decoded; rest is how many they are, at most maxPending. mode is the
	// memory of an encoding that has one: 0 before the first call.
	decode(dst, src []byte, last bool, mode *byte) (out []byte, rest int)
}

// maxPending is the most that a decoder leaves undecoded.
const maxPending = 3

// decoderOf returns the decoder of an encoding by its name, nil if there is none.
func decoderOf(name string) decoder {
	switch name {
	case "utf-8":
		return utf8Decoder{}
	case "utf-16le":
		return utf16Decoder{binary.LittleEndian}
	case "utf-16be":
		return utf16Decoder{binary.BigEndian}
	case "iso-2022-jp":
		return iso2022JP{}
	case "iso-8859-8-i":
		return singleByte{charmap.ISO8859_8}
	}
	if d, ok := multiByteDecoder(name); ok {
		return d
	}
	if enc, err := htmlindex.Get(name); err == nil {
		if table, ok := enc.(*charmap.Charmap); ok {
			return singleByte{table}
		}
	}
	return nil
}

const replacement = "\uFFFD"

// utf8Decoder is the standard's: each maximal part of a sequence that went wrong becomes one U+FFFD.
type utf8Decoder struct{}

func (utf8Decoder) decode(dst, src []byte, last bool, _ *byte) ([]byte, int) {
	for len(src) > 0 {
		n := validPrefix(src)
		dst = append(dst, src[:n]...)
		if src = src[n:]; len(src) == 0 {
			break
		}
		n, short := badPrefix(src)
		if short && !last {
			return dst, n
		}
		dst = append(dst, replacement...)
		src = src[n:]
	}
	return dst, 0
}

// validPrefix returns how many bytes at the start of b are UTF-8.
func validPrefix(b []byte) int {
	if utf8.Valid(b) {
		return len(b)
	}
	i := 0
	for i < len(b) {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// badPrefix returns the length of the wrong sequence that b begins with; short means that it is only incomplete.
func badPrefix(b []byte) (n int, short bool) {
	low, high, need := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			low = 0xa0
		}
		if c == 0xed {
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			low = 0x90
		}
		if c == 0xf4 {
			high = 0x8f
		}
	default:
		return 1, false
	}
	for n = 1; n <= need; n++ {
		if n == len(b) {
			return n, true
		}
		if b[n] < low || b[n] > high {
			return n, false
		}
		low, high = 0x80, 0xbf
	}
	return n, false // not reached: such a sequence is valid
}

// utf16Decoder decodes either byte order; a lone surrogate becomes U+FFFD.
type utf16Decoder struct{ order binary.ByteOrder }

func (d utf16Decoder) decode(dst, src []byte, last bool, _ *byte) ([]byte, int) {
	for len(src) >= 2 {
		r := rune(d.order.Uint16(src))
		if r >= 0xd800 && r < 0xdc00 {
			if len(src) < 4 {
				break
			}
			if pair := utf16.DecodeRune(r, rune(d.order.Uint16(src[2:]))); pair != utf8.RuneError {
				dst = utf8.AppendRune(dst, pair)
				src = src[4:]
				continue
			}
		}
		dst = utf8.AppendRune(dst, r) // a surrogate is appended as U+FFFD
		src = src[2:]
	}
	if len(src) > 0 && last {
		return append(dst, replacement...), 0 // however much is missing, it is one error
	}
	return dst, len(src)
}

// wellFormedUTF16 reports whether src decodes without error. It ends where the decoder would wait for more.
func (d utf16Decoder) wellFormed(src []byte, last bool) bool {
	for len(src) >= 2 {
		r := rune(d.order.Uint16(src))
		switch {
		case r >= 0xdc00 && r < 0xe000:
			return false
		case r < 0xd800 || r >= 0xe000:
			src = src[2:]
			continue
		case len(src) < 4:
			return !last
		case utf16.DecodeRune(r, rune(d.order.Uint16(src[2:]))) == utf8.RuneError:
			return false
		}
		src = src[4:]
	}
	return len(src) == 0 || !last
}
