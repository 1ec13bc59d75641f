package hostapi

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// The tables of the legacy encodings come from x/text. What is a sequence, and how much of a wrong one is skipped, is
// decided here, because there x/text differs from the standard: a wrong lead byte must not swallow ASCII behind it.

// encodingName returns the name, in lower case, of the encoding that a label stands for; "" if there is none or it is
// one that TextDecoder refuses.
func encodingName(label string) string {
	label = strings.Trim(label, "\t\n\f\r ")
	for i := 0; i < len(label); i++ {
		if label[i] <= ' ' || label[i] >= 0x7f {
			return ""
		}
	}
	enc, err := htmlindex.Get(label)
	if err != nil {
		return ""
	}
	name, err := htmlindex.Name(enc)
	if err != nil || decoderOf(name) == nil {
		return ""
	}
	return name
}

// singleByte decodes encodings of one byte. Where a table has a hole among the C1 controls, the standard has the control.
type singleByte struct{ table *charmap.Charmap }

func (d singleByte) decode(dst, src []byte, _ bool, _ *byte) ([]byte, int) {
	for _, c := range src {
		r := d.table.DecodeByte(c)
		if r == utf8.RuneError && c >= 0x80 && c < 0xa0 {
			r = rune(c)
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, 0
}

// multiByte decodes encodings whose sequences begin with a byte above ASCII.
type multiByte struct {
	enc    encoding.Encoding
	single func(c byte) rune // what a byte means alone, 0 if nothing
	// length looks at the sequence that src, of two bytes or more, begins with. n is its length: more than len(src) if
	// that cannot be told yet, and bad how many bytes to skip if the table has no such sequence.
	length func(src []byte) (n, bad int)
	extra  func(seq []byte) rune // a character that the table lacks, 0 if none
}

func (d multiByte) decode(dst, src []byte, last bool, _ *byte) ([]byte, int) {
	table := d.enc.NewDecoder().Transformer
	var buf [16]byte
	for len(src) > 0 {
		if c := src[0]; c < utf8.RuneSelf {
			dst = append(dst, c)
			src = src[1:]
			continue
		} else if r := d.single(c); r != 0 {
			dst = utf8.AppendRune(dst, r)
			src = src[1:]
			continue
		}
		n, bad := 2, 1
		if len(src) >= 2 {
			n, bad = d.length(src)
		} else if src[0] == 0x80 || src[0] == 0xff {
			n = 1
		}
		if n > len(src) {
			if !last {
				return dst, len(src)
			}
			return append(dst, replacement...), 0
		}
		if n > 1 {
			if r := d.extra(src[:n]); r != 0 {
				dst = utf8.AppendRune(dst, r)
				src = src[n:]
				continue
			}
			table.Reset()
			if size, used, err := table.Transform(buf[:], src[:n], true); err == nil && used == n && string(buf[:min(size, 3)]) != replacement {
				dst = append(dst, buf[:size]...)
				src = src[n:]
				continue
			}
		}
		dst = append(dst, replacement...)
		src = src[bad:]
	}
	return dst, 0
}

func never(byte) rune { return 0 }

func none([]byte) rune { return 0 }

// pairLength is the rule of the encodings of two bytes: a wrong trail byte is skipped too, unless it is ASCII.
func pairLength(src []byte) (n, bad int) {
	switch {
	case src[0] == 0x80 || src[0] == 0xff:
		return 1, 1
	case src[1] < utf8.RuneSelf:
		return 2, 1
	}
	return 2, 2
}

// eucJPLength knows the sequences of three bytes, which begin with 0x8f.
func eucJPLength(src []byte) (n, bad int) {
	if src[0] != 0x8f || src[1] < 0xa1 || src[1] == 0xff {
		if c := src[0]; c != 0x8e && c != 0x8f && c < 0xa1 || c == 0xff {
			return 1, 1
		}
		return pairLength(src)
	}
	if len(src) >= 3 && src[2] >= utf8.RuneSelf {
		return 3, 3
	}
	return 3, 2
}

func shiftJISSingle(c byte) rune {
	switch {
	case c == 0x80:
		return 0x80
	case c >= 0xa1 && c <= 0xdf: // half-width katakana
		return 0xff61 + rune(c) - 0xa1
	}
	return 0
}

func shiftJISLength(src []byte) (n, bad int) {
	if c := src[0]; c == 0xa0 || c >= 0xfd {
		return 1, 1
	}
	return pairLength(src)
}

// shiftJISExtra is the area for private use.
func shiftJISExtra(seq []byte) rune {
	lead, trail := rune(seq[0]), rune(seq[1])
	if lead < 0xf0 || lead > 0xf9 || trail < 0x40 || trail == 0x7f || trail > 0xfc {
		return 0
	}
	if trail > 0x7f {
		trail--
	}
	return 0xe000 + (lead-0xf0)*188 + trail - 0x40
}

func gb18030Single(c byte) rune {
	if c == 0x80 {
		return '€'
	}
	return 0
}

// gb18030Length knows the sequences of four bytes, whose second and fourth are digits.
func gb18030Length(src []byte) (n, bad int) {
	if src[0] == 0xff {
		return 1, 1
	}
	if src[1] < '0' || src[1] > '9' {
		return pairLength(src)
	}
	if len(src) >= 3 && (src[2] < 0x81 || src[2] == 0xff) || len(src) >= 4 && (src[3] < '0' || src[3] > '9') {
		return 1, 1
	}
	return 4, 4
}

// gb18030Pairs are characters that moved, and those that the edition of 2022 gave a place outside of private use.
var gb18030Pairs = map[rune]rune{
	0xa3a0: 0x3000, 0xa8bc: 0x1e3f,
	0xa6d9: 0xfe10, 0xa6da: 0xfe12, 0xa6db: 0xfe11, 0xa6dc: 0xfe13, 0xa6dd: 0xfe14, 0xa6de: 0xfe15, 0xa6df: 0xfe16, 0xa6ec: 0xfe17, 0xa6ed: 0xfe18, 0xa6f3: 0xfe19,
	0xfe59: 0x9fb4, 0xfe61: 0x9fb5, 0xfe66: 0x9fb6, 0xfe67: 0x9fb7, 0xfe6d: 0x9fb8, 0xfe7e: 0x9fb9, 0xfe90: 0x9fba, 0xfea0: 0x9fbb,
}

// gb18030Extra is what is for private use, and the pairs above.
func gb18030Extra(seq []byte) rune {
	lead, trail := rune(seq[0]), rune(seq[1])
	switch {
	case len(seq) == 4:
		switch string(seq) {
		case "\x81\x35\xf4\x37":
			return 0xe7c7
		case "\x84\x31\xa4\x39":
			return 0xffff
		}
	case gb18030Pairs[lead<<8|trail] != 0:
		return gb18030Pairs[lead<<8|trail]
	case trail >= 0xa1 && trail <= 0xfe && lead >= 0xaa && lead <= 0xaf:
		return 0xe000 + (lead-0xaa)*94 + trail - 0xa1
	case trail >= 0xa1 && trail <= 0xfe && lead >= 0xf8 && lead <= 0xfe:
		return 0xe234 + (lead-0xf8)*94 + trail - 0xa1
	case trail >= 0x40 && trail <= 0xa0 && trail != 0x7f && lead >= 0xa1 && lead <= 0xa7:
		if trail > 0x7f {
			trail--
		}
		return 0xe4c6 + (lead-0xa1)*96 + trail - 0x40
	}
	return 0
}

// multiByteDecoder returns the decoder of an encoding of several bytes; ok is false for others.
func multiByteDecoder(name string) (d multiByte, ok bool) {
	switch name {
	case "gbk", "gb18030": // they differ in encoding only
		return multiByte{simplifiedchinese.GB18030, gb18030Single, gb18030Length, gb18030Extra}, true
	case "big5":
		return multiByte{traditionalchinese.Big5, never, pairLength, none}, true
	case "euc-kr":
		return multiByte{korean.EUCKR, never, pairLength, none}, true
	case "euc-jp":
		return multiByte{japanese.EUCJP, never, eucJPLength, none}, true
	case "shift_jis":
		return multiByte{japanese.ShiftJIS, shiftJISSingle, shiftJISLength, shiftJISExtra}, true
	}
	return multiByte{}, false
}
