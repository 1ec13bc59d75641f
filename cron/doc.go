// Package cron turns schedules into runs: at most one per trigger and minute, and once recorded at least one.
//
//	trigger.go    Trigger, Match, Status: what is scheduled, and one minute of it
//	calendar.go   calendar: which matches a moment brings, a pure state machine
//	minutes.go    minutes: the set of minutes that were looked at, of bounded size
//	options.go    Options: what the room is connected to
//	scheduler.go  Scheduler: New, SetTriggers, List, Trigger
//	run.go        Run: looks once a minute, records, fires until done
//	metrics.go    Metrics
//
// Invariants (attachments §4.3):
//   - A match is on record before it is fired, and fired until its run is over; a crash may repeat a run, never lose a recorded one.
//   - A minute is looked at once, while it lasts, however the clock moves. What is not recorded then never is.
//   - A trigger has at most one open run; matches that come meanwhile are skipped.
//   - Time inside is UTC.
//
// Not here: the record itself, which Options.Record and Options.Load keep (the control room's log, so that a fleet fires a
// minute once), the grammar (internal/cronexpr), versions and their weights, and running the handler: Options.Fire is wired to the
// sandbox by package node.
package cron
