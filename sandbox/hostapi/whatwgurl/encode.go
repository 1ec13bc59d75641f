package whatwgurl

import "unicode/utf8"

// A set is a percent-encode set: the ASCII bytes that are written as %XX. Everything above ASCII always is.
type set [128]bool

var (
	c0Set       = newSet(nil, "")
	fragmentSet = newSet(c0Set, " \"<>`")
	querySet    = newSet(c0Set, " \"#<>")
	specialSet  = newSet(querySet, "'")
	pathSet     = newSet(querySet, "?^`{}")
	userSet     = newSet(pathSet, "/:;=@[\\]|")
)

func newSet(base *set, more string) *set {
	s := new(set)
	if base != nil {
		*s = *base
	}
	for c := range 0x20 {
		s[c] = true
	}
	s[0x7f] = true
	for _, c := range []byte(more) {
		s[c] = true
	}
	return s
}

const upperHex = "0123456789ABCDEF"

// encode returns text with everything in the set percent-encoded; text itself if nothing is.
func (s *set) encode(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= utf8.RuneSelf || s[c] {
			return string(s.append(nil, text, i))
		}
	}
	return text
}

// append appends text encoded to dst; the first plain bytes are known to need nothing.
func (s *set) append(dst []byte, text string, plain int) []byte {
	dst = append(dst, text[:plain]...)
	for i := plain; i < len(text); {
		c := text[i]
		switch {
		case c < utf8.RuneSelf && !s[c]:
			dst = append(dst, c)
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
			i++
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			var b [utf8.UTFMax]byte
			for _, c := range b[:utf8.EncodeRune(b[:], r)] {
				dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
			}
			i += n
		}
	}
	return dst
}

// AppendPercentDecoded appends text to dst with every %XX replaced by its byte. The result need not be UTF-8.
func AppendPercentDecoded(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && i+2 < len(text) {
			if hi, lo := unhex(text[i+1]), unhex(text[i+2]); hi >= 0 && lo >= 0 {
				c = byte(hi<<4 | lo)
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
