package cron

import (
	"context"
	"sync"
	"time"

	"edged/internal/fault"
)

// parallel is how many runs there are at once; recorded matches beyond wait.
const parallel = 256

// Scheduler records and fires the matches of its triggers. All methods are safe for concurrent use.
type Scheduler struct {
	opt   Options       // set by New, then constant
	slots chan struct{} // capacity parallel: a run holds one

	recording sync.Mutex // held while a minute is recorded, so that Trigger and the clock do not cross; taken before mu

	mu   sync.Mutex // guards the fields below
	cal  calendar
	runs *runs // nil while Run is not running
}

// New returns a scheduler without triggers; Run starts it. Faults in the options are Invalid.
func New(opt Options) (*Scheduler, error) {
	opt, err := opt.complete()
	if err != nil {
		return nil, fault.New(fault.Invalid, "cron.New", err.Error())
	}
	return &Scheduler{opt: opt, slots: make(chan struct{}, parallel), cal: newCalendar()}, nil
}

// SetTriggers replaces the table of triggers. A new or changed one governs the minutes that begin from now on, or from its Since;
// one that is missing matches no more, and its recorded run goes on to its end. A fault is Invalid and changes nothing.
func (s *Scheduler) SetTriggers(table []Trigger) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cal.set(table, time.Now()); err != nil {
		return fault.New(fault.Invalid, "cron.SetTriggers", err.Error())
	}
	return nil
}

// List returns the state of all triggers in the order of their UIDs.
func (s *Scheduler) List() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cal.status(time.Now())
}

// Trigger records and fires a match of the current minute for one trigger, whatever its expression says. It returns when the match
// is on record. Errors: NotFound, Conflict if the trigger's run is open or that minute is on record, Unavailable if Run is
// not running.
func (s *Scheduler) Trigger(ctx context.Context, uid string) (Match, error) {
	const op = "cron.Trigger"
	s.recording.Lock()
	defer s.recording.Unlock()
	minute := time.Now().UTC().Truncate(time.Minute)
	s.mu.Lock()
	t := s.cal.triggers[uid]
	_, busy := s.cal.open[uid]
	running := s.runs != nil
	s.mu.Unlock()
	switch {
	case t == nil:
		return Match{}, fault.Newf(fault.NotFound, op, "no trigger %.64q", uid)
	case busy:
		return Match{}, fault.Newf(fault.Conflict, op, "the last run of %s is not over", uid)
	case !running:
		return Match{}, fault.New(fault.Unavailable, op, "the scheduler is not running")
	}
	recorded, err := s.opt.Record(ctx, minute, []Match{t.match(minute)})
	if err != nil || len(recorded) == 0 {
		s.catchUp()
	}
	if err != nil {
		return Match{}, fault.Wrap(fault.Unavailable, op, err)
	}
	if len(recorded) == 0 {
		return Match{}, fault.Newf(fault.Conflict, op, "this minute of %s is on record already", uid)
	}
	s.opt.Metrics.matches["recorded"].Inc()
	s.start(recorded)
	return recorded[0], nil
}
