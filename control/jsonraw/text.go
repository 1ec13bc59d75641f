package jsonraw

import (
	"unicode/utf16"
	"unicode/utf8"
)

// scanText finds the end of the string literal that starts at b[i] (a quote), the byte after its closing quote, and
// says whether it has escapes. If what is not empty the literal is bad for that reason, at end. UTF-8 validity has been
// checked before.
func scanText(b []byte, i int) (end int, escaped bool, what string) {
	for i++; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped, ""
		case c < 0x20:
			return i, escaped, "a string holds a bare control character"
		case c != '\\':
			i++
		default:
			escaped = true
			n, bad := scanEscape(b[i:])
			if bad != "" {
				return i, escaped, bad
			}
			i += n
		}
	}
	return i, escaped, "a string is not closed"
}

// scanEscape returns the length of the escape that b starts with, a surrogate pair being one.
func scanEscape(b []byte) (n int, what string) {
	if len(b) < 2 {
		return 0, "a string is not closed"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, "a string holds an invalid escape"
	}
	r, ok := hex4(b[2:])
	if !ok {
		return 0, "a string holds an invalid escape"
	}
	if !utf16.IsSurrogate(r) {
		return 6, ""
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[8:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12, ""
		}
	}
	return 0, "a string holds a lone surrogate"
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendText decodes the inside of a string literal that scanText accepted.
func appendText(dst, body []byte) []byte {
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			dst = append(dst, body[i])
			i++
			continue
		}
		n, what := scanEscape(body[i:])
		if what != "" { // never after scanText; the caller's bytes were not checked
			return append(dst, body[i:]...)
		}
		switch c := body[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(body[i+2:])
			if n == 12 {
				low, _ := hex4(body[i+8:])
				r = utf16.DecodeRune(r, low)
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}
