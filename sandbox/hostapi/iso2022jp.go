package hostapi

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
)

// iso2022JP is the only encoding with a memory longer than a character: which set of characters an escape sequence
// chose. mode holds it, and whether nothing came since.
type iso2022JP struct{}

const (
	jpASCII = iota
	jpRoman
	jpKatakana
	jpPairs
	jpSetMask = 3
	jpFresh   = 4 // an escape came and no output since: another one is an error
)

func (iso2022JP) decode(dst, src []byte, last bool, mode *byte) ([]byte, int) {
	for len(src) > 0 {
		c := src[0]
		if c == 0x1b {
			if len(src) < 3 && !last && mayBeEscape(src) {
				return dst, len(src)
			}
			set := escapeSet(src)
			if set < 0 {
				dst = append(dst, replacement...)
				src = src[1:]
				*mode &^= jpFresh
				continue
			}
			if *mode&jpFresh != 0 {
				dst = append(dst, replacement...)
			}
			*mode = byte(set) | jpFresh
			src = src[3:]
			continue
		}
		*mode &^= jpFresh
		if *mode&jpSetMask != jpPairs || c < 0x21 || c > 0x7e {
			dst = utf8.AppendRune(dst, singleJP(c, *mode&jpSetMask))
			src = src[1:]
			continue
		}
		if len(src) < 2 {
			if !last {
				return dst, 1
			}
			return append(dst, replacement...), 0
		}
		if src[1] == 0x1b { // the lead byte is lost, the escape is not
			dst = append(dst, replacement...)
			src = src[1:]
			continue
		}
		dst = utf8.AppendRune(dst, pairJP(c, src[1]))
		src = src[2:]
	}
	return dst, 0
}

func mayBeEscape(src []byte) bool {
	return len(src) < 2 || src[1] == '(' || src[1] == '$'
}

// escapeSet returns the set that an escape sequence chooses, -1 if src does not begin with one.
func escapeSet(src []byte) int {
	if len(src) < 3 {
		return -1
	}
	switch string(src[1:3]) {
	case "(B":
		return jpASCII
	case "(J":
		return jpRoman
	case "(I":
		return jpKatakana
	case "$@", "$B":
		return jpPairs
	}
	return -1
}

func singleJP(c, set byte) rune {
	switch {
	case set == jpKatakana:
		if c >= 0x21 && c <= 0x5f {
			return 0xff61 + rune(c) - 0x21
		}
		return utf8.RuneError
	case set == jpPairs || c >= 0x80 || c == 0x0e || c == 0x0f:
		return utf8.RuneError
	case set == jpRoman && c == 0x5c:
		return '¥'
	case set == jpRoman && c == 0x7e:
		return '‾'
	}
	return rune(c)
}

// pairJP looks a pair up where EUC-JP has it.
func pairJP(lead, trail byte) rune {
	if trail < 0x21 || trail > 0x7e {
		return utf8.RuneError
	}
	var buf [8]byte
	n, _, err := japanese.EUCJP.NewDecoder().Transformer.Transform(buf[:], []byte{lead | 0x80, trail | 0x80}, true)
	if err != nil {
		return utf8.RuneError
	}
	r, _ := utf8.DecodeRune(buf[:n])
	return r
}
