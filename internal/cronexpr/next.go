package cronexpr

import (
	"math/bits"
	"time"
)

// horizon is how many years Next looks ahead: the 29th of February is at most eight years away, also around a century year
// that has none.
const horizon = 8

// Next returns the start of the first matching minute strictly after the minute that after lies in. ok is false if none
// follows within eight years, which means that none ever does. It skips by month, day and hour, so that the cost does not
// depend on how rare matches are beyond some hundred steps.
func (e Expr) Next(after time.Time) (match time.Time, ok bool) {
	t := after.UTC().Truncate(time.Minute).Add(time.Minute)
	for last := t.Year() + horizon; t.Year() <= last; {
		switch {
		case !has(e.sets[month], int(t.Month())):
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !e.matchDay(t.Day(), int(t.Weekday())):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		default:
			h := from(e.sets[hour], t.Hour())
			m := 0
			if h == t.Hour() {
				if m = from(e.sets[minute], t.Minute()); m > 59 {
					h, m = from(e.sets[hour], h+1), from(e.sets[minute], 0)
				}
			} else {
				m = from(e.sets[minute], 0)
			}
			if h < 24 && m < 60 {
				return time.Date(t.Year(), t.Month(), t.Day(), h, m, 0, 0, time.UTC), true
			}
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		}
	}
	return time.Time{}, false
}

// from returns the lowest value of the set that is not below n, 64 if there is none.
func from(set uint64, n int) int { return bits.TrailingZeros64(set >> n << n) }
