package intl

import (
	"strconv"
	"strings"
)

// NumberOptions are resolved options of Intl.NumberFormat, by their names there. Of the digits either the fraction or
// the significant ones count: MaxSignificant 0 means the fraction.
type NumberOptions struct {
	Style           string `json:"style"` // decimal, percent, currency
	Currency        string `json:"currency"`
	CurrencyDisplay string `json:"currencyDisplay"` // symbol, narrowSymbol, code
	CurrencySign    string `json:"currencySign"`    // standard, accounting
	MinInteger      int    `json:"minimumIntegerDigits"`
	MinFraction     int    `json:"minimumFractionDigits"`
	MaxFraction     int    `json:"maximumFractionDigits"`
	MinSignificant  int    `json:"minimumSignificantDigits"`
	MaxSignificant  int    `json:"maximumSignificantDigits"`
	UseGrouping     string `json:"useGrouping"`    // always, auto, min2, false
	Notation        string `json:"notation"`       // standard, scientific, engineering, compact
	CompactDisplay  string `json:"compactDisplay"` // short, long
	CompactRounding bool   `json:"compactRounding"`
	SignDisplay     string `json:"signDisplay"` // auto, always, never, exceptZero, negative
}

// Number formats a number as JavaScript writes it: digits, "NaN", "Infinity", with a minus before them. False if text is
// none, or has more digits than can be shown.
func Number(text string, o NumberOptions) (parts []Part, ok bool) {
	minus := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	var body []Part
	zero := false
	switch text {
	case "NaN":
		body, minus = []Part{{"nan", "NaN"}}, false
		zero = true // for the sign
	case "Infinity":
		body = []Part{{"infinity", "∞"}}
	default:
		d, valid := parseDecimal(text)
		if !valid {
			return nil, false
		}
		if o.Style == "percent" && !d.zero() {
			d.point += 2
		}
		body, zero = o.body(d)
	}
	sign := o.sign(minus, zero)
	brackets := sign == "-" && o.Style == "currency" && o.CurrencySign == "accounting"
	switch {
	case brackets:
		parts = append(parts, Part{"literal", "("})
	case sign == "-":
		parts = append(parts, Part{"minusSign", "-"})
	case sign == "+":
		parts = append(parts, Part{"plusSign", "+"})
	}
	if o.Style == "currency" {
		symbol, space := currencySymbol(o.Currency, o.CurrencyDisplay)
		parts = append(parts, Part{"currency", symbol})
		if space {
			parts = append(parts, Part{"literal", "\u00a0"})
		}
	}
	parts = append(parts, body...)
	if o.Style == "percent" {
		parts = append(parts, Part{"percentSign", "%"})
	}
	if brackets {
		parts = append(parts, Part{"literal", ")"})
	}
	return parts, true
}

func (o *NumberOptions) sign(minus, zero bool) string {
	switch o.SignDisplay {
	case "never":
		return ""
	case "always":
		if !minus {
			return "+"
		}
	case "exceptZero":
		if zero {
			return ""
		}
		if !minus {
			return "+"
		}
	case "negative":
		if zero {
			return ""
		}
	}
	if minus {
		return "-"
	}
	return ""
}

func (o *NumberOptions) round(d decimal) decimal {
	switch {
	case o.CompactRounding && d.point <= 1: // one digit before the point: two that count
		return d.round(2)
	case o.CompactRounding:
		return d.roundFraction(0)
	case o.MaxSignificant > 0:
		return d.round(o.MaxSignificant)
	}
	return d.roundFraction(o.MaxFraction)
}

// body formats a number without its sign; zero says whether that is what is shown.
func (o *NumberOptions) body(d decimal) (parts []Part, zero bool) {
	exponent := 0
	scale := func(d decimal) int {
		switch {
		case d.zero():
			return 0
		case o.Notation == "scientific":
			return d.point - 1
		case o.Notation == "engineering":
			return floor3(d.point - 1)
		case o.Notation == "compact":
			return min(max(floor3(d.point-1), 0), 12)
		}
		return 0
	}
	exponent = scale(d)
	rounded := o.round(decimal{d.digits, d.point - exponent})
	if again := scale(decimal{rounded.digits, rounded.point + exponent}); again != exponent { // 999.9 thousand is a million
		exponent = again
		rounded = o.round(decimal{d.digits, d.point - exponent})
	}
	minFraction := o.MinFraction
	if o.CompactRounding {
		minFraction = 0
	} else if o.MaxSignificant > 0 {
		minFraction = o.MinSignificant - max(rounded.point, 1)
		if !rounded.zero() && rounded.point < 1 {
			minFraction = o.MinSignificant - rounded.point
		}
	}
	integer, fraction := rounded.text(o.MinInteger, max(minFraction, 0))
	parts = o.group(integer)
	if fraction != "" {
		parts = append(parts, Part{"decimal", "."}, Part{"fraction", fraction})
	}
	switch o.Notation {
	case "scientific", "engineering":
		parts = append(parts, Part{"exponentSeparator", "E"})
		if exponent < 0 {
			parts = append(parts, Part{"exponentMinusSign", "-"})
			exponent = -exponent
		}
		parts = append(parts, Part{"exponentInteger", strconv.Itoa(exponent)})
	case "compact":
		parts = append(parts, o.compact(exponent)...)
	}
	return parts, rounded.zero()
}

func floor3(n int) int {
	if n < 0 {
		n -= 2
	}
	return n / 3 * 3
}

func (o *NumberOptions) compact(exponent int) []Part {
	if exponent == 0 {
		return nil
	}
	i := exponent/3 - 1
	if o.CompactDisplay == "long" {
		return []Part{{"literal", " "}, {"compact", [...]string{"thousand", "million", "billion", "trillion"}[i]}}
	}
	return []Part{{"compact", [...]string{"K", "M", "B", "T"}[i]}}
}

// group puts a comma before every three digits.
func (o *NumberOptions) group(integer string) (parts []Part) {
	least := 4
	if o.UseGrouping == "min2" || o.UseGrouping == "auto" && o.Notation == "compact" {
		least = 5
	}
	if o.UseGrouping == "false" || len(integer) < least {
		return []Part{{"integer", integer}}
	}
	for len(integer) > 0 {
		n := (len(integer)-1)%3 + 1
		if parts != nil {
			parts = append(parts, Part{"group", ","})
		}
		parts = append(parts, Part{"integer", integer[:n]})
		integer = integer[n:]
	}
	return parts
}
