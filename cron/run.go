package cron

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"edged/internal/fault"
)

const (
	recheck  = 5 * time.Second // the clock is looked at that often: it may have been set
	firstTry = 250 * time.Millisecond
	lastTry  = 30 * time.Second
)

// runs are the goroutines of one Run.
type runs struct {
	ctx  context.Context // of the runs: it outlives Run's by Drain
	stop context.Context // Run's: no run starts after it
	all  sync.WaitGroup
}

// Run fires what is owed, then looks at the clock once a minute until ctx is done. Runs that go on may finish for Options.Drain,
// and are cancelled after it; what is then not over is owed by the next Run. One Run at a time.
func (s *Scheduler) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &runs{ctx: work, stop: ctx}
	if s.load(ctx, r) {
		s.watch(ctx)
	}
	s.mu.Lock()
	s.runs = nil
	s.mu.Unlock()
	late := time.AfterFunc(s.opt.Drain, cancel)
	r.all.Wait()
	late.Stop()
	return context.Cause(ctx)
}

// load fetches what is owed before anything is recorded: the rule of overlap needs it. It reports whether it could before ctx was
// done.
func (s *Scheduler) load(ctx context.Context, r *runs) bool {
	for try := 0; ; try++ {
		owed, err := s.opt.Load(ctx)
		if err == nil {
			s.mu.Lock()
			s.runs = r
			s.cal.open = make(map[string]Match)
			s.mu.Unlock()
			s.start(owed)
			return true
		}
		s.opt.Log.Warn("recorded cron matches cannot be read", "err", err)
		if !wait(ctx, backoff(try)) {
			return false
		}
	}
}

func (s *Scheduler) watch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		s.mu.Lock()
		minute, matches, skipped := s.cal.due(now)
		s.mu.Unlock()
		s.opt.Metrics.matches["overlapped"].Add(float64(skipped))
		if len(matches) > 0 {
			s.record(ctx, minute, matches)
			now = time.Now()
		}
		timer.Reset(min(now.Round(0).Truncate(time.Minute).Add(time.Minute).Sub(now.Round(0)), recheck))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// record has matches recorded while their minute lasts, and starts those that were. After an error it asks what came of it before
// it tries the rest again; if that cannot be told in time, it is found out later.
func (s *Scheduler) record(ctx context.Context, minute time.Time, matches []Match) {
	s.recording.Lock()
	defer s.recording.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Until(minute.Add(time.Minute)))
	defer cancel()
	doubt := false
	for try := 0; len(matches) > 0 && ctx.Err() == nil; try++ {
		recorded, err := s.opt.Record(ctx, minute, matches)
		if err == nil {
			s.opt.Metrics.record.Observe(time.Since(minute).Seconds())
			s.start(recorded)
			s.opt.Metrics.matches["recorded"].Add(float64(len(recorded)))
			s.opt.Metrics.matches["unrecorded"].Add(float64(len(matches) - len(recorded)))
			doubt = len(recorded) < len(matches) // a run that is open on record may be one that nobody here knows
			matches = nil
			break
		}
		doubt = true
		s.opt.Log.Warn("cron matches could not be recorded", "matches", len(matches), "err", err)
		if !wait(ctx, backoff(try)) {
			break
		}
		if owed, err := s.opt.Load(ctx); err == nil {
			doubt = false
			s.start(owed)
			rest := s.notOpen(matches)
			s.opt.Metrics.matches["recorded"].Add(float64(len(matches) - len(rest)))
			matches = rest
		}
	}
	s.opt.Metrics.matches["unrecorded"].Add(float64(len(matches)))
	if doubt {
		s.catchUp()
	}
}

// catchUp starts what was recorded although nobody could tell, or leaves it to the next Run.
func (s *Scheduler) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs
	if r == nil {
		return
	}
	r.all.Go(func() {
		for try := 0; ; try++ {
			owed, err := s.opt.Load(r.stop)
			if err == nil {
				s.start(owed)
				return
			}
			if !wait(r.stop, backoff(try)) {
				return
			}
		}
	})
}

func (s *Scheduler) notOpen(matches []Match) []Match {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []Match
	for _, m := range matches {
		if _, open := s.cal.open[m.Trigger]; !open {
			rest = append(rest, m)
		}
	}
	return rest
}

// start fires recorded matches that are not being fired.
func (s *Scheduler) start(recorded []Match) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range recorded {
		if s.runs == nil {
			return // it stays owed
		}
		if s.cal.begin(m) {
			s.opt.Metrics.open.Inc()
			r := s.runs
			r.all.Go(func() { s.see(r, m) })
		}
	}
}

// see fires one match until its run is over and that is on record.
func (s *Scheduler) see(r *runs, m Match) {
	defer s.opt.Metrics.open.Dec()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.stop.Done():
		return
	}
	for try := 0; s.fire(r.ctx, m) != Finished; try++ {
		if !wait(r.stop, backoff(try)) {
			return
		}
	}
	for try := 0; ; try++ {
		err := s.opt.Done(r.ctx, m)
		if err == nil {
			break
		}
		s.opt.Log.Warn("end of a cron run could not be recorded", "trigger", m.Trigger, "err", err)
		if !wait(r.ctx, backoff(try)) {
			return
		}
	}
	s.mu.Lock()
	s.cal.over(m)
	s.mu.Unlock()
}

// fire calls the handler once. A panic is an end that nobody knows.
func (s *Scheduler) fire(ctx context.Context, m Match) (o Outcome) {
	start := time.Now()
	var err error
	defer func() {
		if p := recover(); p != nil {
			s.opt.Metrics.panics.Inc()
			s.opt.Log.Error("bug in a cron run", "trigger", m.Trigger, "panic", p, "stack", string(debug.Stack()), "do", fault.ReportBug)
			o, err = Owed, fault.New(fault.Internal, "cron.fire", "panic")
		}
		s.opt.Metrics.seconds.Observe(time.Since(start).Seconds())
		name := "returned"
		switch {
		case o != Finished:
			name = "owed"
		case err != nil:
			name = "failed"
		}
		s.opt.Metrics.runs[name].Inc()
		if name != "returned" {
			s.opt.Log.Warn("cron run failed", "trigger", m.Trigger, "worker", m.Worker, "scheduledTime", m.Minute, "outcome", name, "err", err)
		}
	}()
	o, err = s.opt.Fire(ctx, m)
	return o
}

// backoff grows to lastTry, with jitter.
func backoff(try int) time.Duration {
	d := min(firstTry<<min(try, 10), lastTry)
	return d/2 + rand.N(d/2)
}

// wait reports whether d passed before ctx was done.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
