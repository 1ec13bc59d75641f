package cronexpr

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Expr is a parsed expression. The zero value matches nothing.
type Expr struct {
	text string
	sets [fieldCount]uint64 // bit n of a set: value n matches
}

const (
	minute = iota
	hour
	day
	month
	weekday
	fieldCount
)

// domain is what one field may hold.
type domain struct {
	name     string
	min, max int
}

var domains = [fieldCount]domain{
	{"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 6},
}

// full returns the set of every value of the domain.
func (d domain) full() uint64 { return run(d.min, d.max, 1) }

// span is the largest step.
func (d domain) span() int { return d.max - d.min }

// run returns the set low, low+step, … up to high.
func run(low, high, step int) (set uint64) {
	for n := low; n <= high; n += step {
		set |= 1 << n
	}
	return set
}

// String returns the expression as it was written.
func (e Expr) String() string { return e.text }

// Match reports whether the expression fires in the minute that t lies in. Both day fields restricted means that either
// may match; a field is restricted when its value set is smaller than its domain (attachments §4.2, D-28).
func (e Expr) Match(t time.Time) bool {
	t = t.UTC()
	return has(e.sets[minute], t.Minute()) && has(e.sets[hour], t.Hour()) && has(e.sets[month], int(t.Month())) &&
		e.matchDay(t.Day(), int(t.Weekday()))
}

func (e Expr) matchDay(ofMonth, ofWeek int) bool {
	a, b := has(e.sets[day], ofMonth), has(e.sets[weekday], ofWeek)
	if e.sets[day] != domains[day].full() && e.sets[weekday] != domains[weekday].full() {
		return a || b
	}
	return a && b
}

func has(set uint64, n int) bool { return set>>n&1 == 1 }

// Canonical returns the form in which expressions are compared: equal forms fire at equal times. Per field it is * for the
// whole domain, else ascending values with runs of three or more written low-high. It is never stored.
func (e Expr) Canonical() string {
	var b strings.Builder
	for f, d := range domains {
		if f > 0 {
			b.WriteByte(' ')
		}
		if e.sets[f] == d.full() {
			b.WriteByte('*')
			continue
		}
		appendSet(&b, e.sets[f])
	}
	return b.String()
}

func appendSet(b *strings.Builder, set uint64) {
	for first := true; set != 0; first = false {
		if !first {
			b.WriteByte(',')
		}
		low := bits.TrailingZeros64(set)
		n := bits.TrailingZeros64(^(set >> low)) // length of the run
		if n < 3 {
			n = 1
		}
		b.WriteString(strconv.Itoa(low))
		if n > 1 {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(low + n - 1))
		}
		set &^= (1<<n - 1) << low
	}
}
