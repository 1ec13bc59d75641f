package intl

import (
	"strconv"
	"strings"
)

// maxDigits bounds the digits of a number that is formatted; more are dropped as zeros.
const maxDigits = 400

// decimal is 0.d1d2d3… times ten to the power of point; without digits it is zero.
type decimal struct {
	digits []byte // '0' to '9', the first and the last not '0'
	point  int
}

// parseDecimal reads what JavaScript writes: "12.5", "1e+21", without a sign.
func parseDecimal(s string) (d decimal, ok bool) {
	mantissa, exponent, has := strings.Cut(s, "e")
	e := 0
	if has {
		var err error
		if e, err = strconv.Atoi(exponent); err != nil || e > 10_000 || e < -10_000 {
			return d, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return d, false
	}
	d.point = len(whole) + e
	trimmed := strings.TrimLeft(all, "0")
	d.point -= len(all) - len(trimmed)
	d.digits = []byte(strings.TrimRight(trimmed, "0"))
	if len(d.digits) == 0 {
		return decimal{}, true
	}
	if d.point > maxDigits {
		return d, false
	}
	return d.round(maxDigits), true
}

func (d decimal) zero() bool { return len(d.digits) == 0 }

// round keeps n digits, ties away from zero.
func (d decimal) round(n int) decimal {
	if n >= len(d.digits) {
		return d
	}
	if n < 0 || n == 0 && d.digits[0] < '5' {
		return decimal{}
	}
	up := d.digits[n] >= '5'
	out := append([]byte(nil), d.digits[:n]...)
	if up {
		for n--; n >= 0 && out[n] == '9'; n-- {
		}
		if n < 0 {
			return decimal{[]byte("1"), d.point + 1}
		}
		out[n]++
		out = out[:n+1]
	}
	for len(out) > 0 && out[len(out)-1] == '0' {
		out = out[:len(out)-1]
	}
	if len(out) == 0 {
		return decimal{}
	}
	return decimal{out, d.point}
}

// roundFraction keeps n digits behind the point.
func (d decimal) roundFraction(n int) decimal { return d.round(d.point + n) }

// text returns the digits before and behind the point, at least as many as asked for.
func (d decimal) text(minInteger, minFraction int) (integer, fraction string) {
	whole := max(d.point, 0)
	if d.zero() {
		whole = 0
	}
	digit := func(i int) byte { // of the i-th place, counted from the point
		if i += d.point; i >= 0 && i < len(d.digits) {
			return d.digits[i]
		}
		return '0'
	}
	b := make([]byte, 0, whole+8)
	for i := -max(whole, minInteger); i < 0; i++ {
		b = append(b, digit(i))
	}
	if len(b) == 0 {
		b = append(b, '0')
	}
	integer = string(b)
	b = b[:0]
	for i := 0; i < max(len(d.digits)-d.point, minFraction) && i < maxDigits; i++ {
		if d.zero() && i >= minFraction {
			break
		}
		b = append(b, digit(i))
	}
	return integer, string(b)
}
