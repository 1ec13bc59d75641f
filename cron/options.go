package cron

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Outcome says whether a run is over.
type Outcome uint8

// The outcomes of a run.
const (
	Owed     Outcome = iota // nobody knows that the handler ran to its end, or it was not reached: fire it again
	Finished                // the handler returned or threw, or nobody can ever run it: its worker is gone
)

// Options says what a scheduler is connected to. All funcs are required and must return soon after their context is done.
type Options struct {
	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void

	// Record makes matches of one minute durable and returns those that it did; the others are skipped for ever. It decides in
	// the order of the log that also changes triggers: a match is refused if its trigger is gone or of another generation
	// there, if the trigger has an open run, if the minute is over by its own clock, or if that trigger and minute are on
	// record already. After an error Load tells what was recorded.
	Record func(ctx context.Context, minute time.Time, matches []Match) ([]Match, error)
	// Load returns every match that is on record and not done, whatever became of its trigger.
	Load func(ctx context.Context) ([]Match, error)
	// Fire calls the handler of one recorded match, of a version chosen by weight. The error is for the log.
	Fire func(ctx context.Context, m Match) (Outcome, error)
	// Done makes durable that a match's run is over. Calling it again is fine.
	Done func(ctx context.Context, m Match) error

	Drain time.Duration // how long runs may go on once Run was told to stop, 0 means 5 s
}

func (o Options) complete() (Options, error) {
	var faults []error
	if o.Record == nil || o.Load == nil || o.Fire == nil || o.Done == nil {
		faults = append(faults, errors.New("a scheduler needs Record, Load, Fire and Done"))
	}
	if o.Drain < 0 {
		faults = append(faults, errors.New("the time to drain is negative"))
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Drain == 0 {
		o.Drain = 5 * time.Second
	}
	return o, errors.Join(faults...)
}
