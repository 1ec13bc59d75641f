// Package cronexpr is the cron grammar of attachments §4: five fields, UTC, one minute of granularity.
//
//	parse.go  Parse: the grammar (fuzzed); a refusal names field and reason
//	expr.go   Expr: Match, Canonical
//	next.go   Next: the first match after an instant
//
// Invariants: everything is a pure function of its arguments. An Expr is a value that never changes, so any goroutine may use
// it. The work is bounded: Parse reads at most 64 bytes, Next looks at most eight years ahead.
//
// Not here: firing, clocks and time zones. All times are taken and given as UTC.
package cronexpr
