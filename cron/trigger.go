package cron

import (
	"time"

	"edged/internal/cronexpr"
)

// Trigger is a schedule of a worker.
type Trigger struct {
	UID        string // of the WorkerCronTrigger
	Worker     string // handed to Fire as it is
	Cron       string // the expression as written
	Generation uint64 // moves with every update
	// Since is when this generation was accepted: it governs minutes that begin from then on. The zero time means when
	// SetTriggers first brought it.
	Since time.Time
}

// Match is one minute of a trigger: its identity towards the handler is (Cron, Minute).
type Match struct {
	Trigger    string // UID
	Worker     string
	Cron       string // as written when it matched
	Generation uint64
	Minute     int64 // start of the matched minute, Unix milliseconds UTC: the event's scheduledTime
}

// Status is what an operator sees of a trigger.
type Status struct {
	Trigger
	Next time.Time // the next match, zero if the expression never matches again
	Open *Match    // the run that is going on or owed, nil if there is none
}

// scheduled is a trigger as the calendar holds it.
type scheduled struct {
	Trigger
	expr    cronexpr.Expr
	arrived time.Time // when SetTriggers brought this generation, with its monotonic reading
}

// governs reports whether the trigger was in force when the minute began, now being within it. Elapsed time decides where
// it can, because the wall clock may have been set meanwhile.
func (s *scheduled) governs(minute, now time.Time) bool {
	if !s.Since.IsZero() {
		return !minute.Before(s.Since) || now.Before(s.Since)
	}
	return now.Sub(s.arrived) >= now.Round(0).Sub(minute)
}

func (s *scheduled) match(minute time.Time) Match {
	return Match{Trigger: s.UID, Worker: s.Worker, Cron: s.Cron, Generation: s.Generation, Minute: minute.UnixMilli()}
}
