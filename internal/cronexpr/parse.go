package cronexpr

import (
	"strconv"
	"strings"

	"edged/internal/fault"
)

// MaxLen is the greatest length of an expression in characters.
const MaxLen = 64

// Parse reads an expression by the grammar of attachments §4.1. The error is Invalid; its detail names the field and the
// reason, as in "hour: 24 is outside 0-23".
func Parse(text string) (Expr, error) {
	e := Expr{text: text}
	if reason := checkText(text); reason != "" {
		return Expr{}, refuse("expression", reason)
	}
	fields := strings.Split(text, " ")
	if len(fields) != fieldCount {
		return Expr{}, fault.Newf(fault.Invalid, "cronexpr.Parse", "expression: has %d fields separated by single spaces, not 5", len(fields))
	}
	for f, d := range domains {
		set, reason := d.parse(fields[f])
		if reason != "" {
			return Expr{}, refuse(d.name, reason)
		}
		e.sets[f] = set
	}
	return e, nil
}

func refuse(field, reason string) error {
	return fault.New(fault.Invalid, "cronexpr.Parse", field+": "+reason)
}

// checkText judges what is not of one field: length, alphabet and spaces.
func checkText(text string) (reason string) {
	switch {
	case text == "":
		return "is empty"
	case len(text) > MaxLen:
		return "is longer than 64 characters"
	case text[0] == ' ' || text[len(text)-1] == ' ':
		return "starts or ends with a space"
	case strings.Contains(text, "  "):
		return "has two spaces in a row"
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9', c == '*', c == '/', c == '-', c == ',', c == ' ':
		case c > ' ' && c < 0x7f:
			return "holds " + string(rune(c)) + ", which is not part of the grammar"
		default:
			return "holds a control or non-ASCII character"
		}
	}
	return ""
}

// parse reads one field: terms joined by commas, whose values are united.
func (d domain) parse(field string) (set uint64, reason string) {
	if field == "" {
		return 0, "is empty"
	}
	for term := range strings.SplitSeq(field, ",") {
		values, reason := d.term(term)
		if reason != "" {
			return 0, reason
		}
		set |= values
	}
	return set, ""
}

// term reads *, n, a-b, */s or a-b/s.
func (d domain) term(term string) (set uint64, reason string) {
	if term == "" {
		return 0, "has an empty term"
	}
	values, stepText, stepped := strings.Cut(term, "/")
	lowText, highText, ranged := strings.Cut(values, "-")
	low, high, step := d.min, d.max, 1
	if values != "*" {
		if stepped && !ranged {
			return 0, "has a step on the bare number " + values
		}
		if low, reason = d.number(lowText); reason != "" {
			return 0, reason
		}
		if high = low; ranged {
			if high, reason = d.number(highText); reason != "" {
				return 0, reason
			}
		}
		if low > high {
			return 0, "has the inverted range " + values
		}
	}
	if stepped {
		if step = decimal(stepText); step < 1 || step > d.span() {
			return 0, "has the step " + quote(stepText) + ", allowed are 1 to " + strconv.Itoa(d.span())
		}
	}
	return run(low, high, step), ""
}

func (d domain) number(text string) (n int, reason string) {
	n = decimal(text)
	switch {
	case n < 0:
		return 0, quote(text) + " is not a number of one or two digits"
	case n < d.min || n > d.max:
		return 0, text + " is outside " + strconv.Itoa(d.min) + "-" + strconv.Itoa(d.max)
	}
	return n, ""
}

// decimal reads one or two digits; -1 for anything else.
func decimal(text string) int {
	if len(text) < 1 || len(text) > 2 {
		return -1
	}
	n := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return -1
		}
		n = n*10 + int(text[i]-'0')
	}
	return n
}

// quote shows a piece of the expression, which checkText has found to be plain ASCII.
func quote(text string) string { return `"` + text + `"` }
