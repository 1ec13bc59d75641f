// Package intl writes numbers and dates as US English does, for the subset of ECMA-402 that the runtime offers. It is a
// pure core: options are resolved and checked by the caller.
//
//	number.go   Number: from a decimal to the parts of its text
//	decimal.go  exact decimals and their rounding
//	currency.go symbols and digits of currencies
//	date.go     Date: from milliseconds to the parts of its text; styles
//	zone.go     UTC and fixed offsets
//
// Invariants: whatever the options, nothing panics and the output is bounded by them.
//
// Not here: other locales, calendars, numbering systems and named time zones; the Intl classes (the prelude has them).
package intl

// Part is a piece of formatted text, with the name that ECMA-402 gives its kind.
type Part struct{ Kind, Value string }
