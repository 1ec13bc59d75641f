package jsonraw

import (
	"bytes"
	"strconv"
	"strings"
)

// Decimal is a JSON number as an exact decimal: digits times ten to the exponent. It is in lowest terms, so two
// numbers are mathematically equal exactly if their Decimals are ==. The zero value is 0.
type Decimal struct {
	digits   string // without leading and trailing zeros; empty for 0
	exponent int64  // of the last digit; 0 for 0
	negative bool   // false for 0
}

// maxExponentDigits keeps exponents, corrected by any number of digits a document can hold, well inside int64.
const maxExponentDigits = 18

// ParseDecimal reads one JSON number token. ok is false if b is not one, or if its exponent has more than 18
// significant digits. The result does not refer to b. The cost is linear in len(b): nothing is expanded.
func ParseDecimal(b []byte) (d Decimal, ok bool) {
	end, hasExponent := scanNumber(b, 0)
	if end != len(b) || end <= 0 {
		return Decimal{}, false
	}
	if b[0] == '-' {
		d.negative = true
		b = b[1:]
	}
	mantissa := b
	if hasExponent {
		at := bytes.IndexAny(b, "eE")
		mantissa = b[:at]
		if d.exponent, ok = parseExponent(b[at+1:]); !ok {
			return Decimal{}, false
		}
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	digits := make([]byte, 0, len(mantissa))
	digits = append(append(digits, whole...), fraction...)
	d.exponent -= int64(len(fraction))
	digits = bytes.TrimLeft(digits, "0")
	trimmed := bytes.TrimRight(digits, "0")
	if len(trimmed) == 0 {
		return Decimal{}, true
	}
	d.exponent += int64(len(digits) - len(trimmed))
	d.digits = string(trimmed)
	return d, true
}

func parseExponent(b []byte) (int64, bool) {
	sign := int64(1)
	switch b[0] {
	case '-':
		sign, b = -1, b[1:]
	case '+':
		b = b[1:]
	}
	b = bytes.TrimLeft(b, "0")
	if len(b) > maxExponentDigits {
		return 0, false
	}
	if len(b) == 0 {
		return 0, true
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return sign * n, err == nil
}

// Int returns the number if it is an integer in int64, however it was spelled.
func (d Decimal) Int() (int64, bool) {
	if d.digits == "" {
		return 0, true
	}
	if d.exponent < 0 || d.exponent > 19 || len(d.digits) > 19 {
		return 0, false
	}
	text := d.digits + strings.Repeat("0", int(d.exponent))
	if d.negative {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
