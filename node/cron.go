package node

import (
	"context"
	"time"

	"edged/control/plan"
	"edged/control/state"
	"edged/cron"
	"edged/internal/fault"
	"edged/sandbox/event"
)

func (n *Node) openCron() (err error) {
	n.cron, err = cron.New(cron.Options{Log: n.log, Metrics: cron.NewMetrics(n.registry), Drain: n.opt.DrainTimeout,
		Record: n.recordMatches, Load: n.owedMatches, Fire: n.fire,
		Done: func(ctx context.Context, m cron.Match) error { return n.control.EndRun(ctx, state.Run(m)) }})
	return err
}

// runCron fires what is owed once the node knows its workers, for as long as it leads the control room, which has the record of matches:
// one node of a fleet at a time.
func (n *Node) runCron(ctx context.Context) error {
	select {
	case <-n.planned:
	case <-ctx.Done():
		return nil
	}
	if n.control == nil {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		leads, moved := n.control.Leads()
		if leads {
			n.runTerm(ctx, moved)
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
		}
	}
	return nil
}

// runTerm runs the cron room until ctx is done or lost is closed.
func (n *Node) runTerm(ctx context.Context, lost <-chan struct{}) {
	term, end := context.WithCancel(ctx)
	defer end()
	go func() { // ends with term
		select {
		case <-lost:
			end()
		case <-term.Done():
		}
	}()
	_ = n.cron.Run(term) // the cause of its end is known
}

// applyTriggers gives the cron room the triggers after a delta.
func (n *Node) applyTriggers(d *plan.Delta) {
	if len(d.Crons.Put)+len(d.Crons.Gone) == 0 {
		return
	}
	p := n.versions.serving.plan
	table := make([]cron.Trigger, 0, len(p.Crons))
	for _, c := range p.Crons {
		table = append(table, cron.Trigger{UID: c.UID, Worker: c.Worker, Cron: c.Cron, Generation: c.Generation, Since: time.UnixMilli(c.Since)})
	}
	if err := n.cron.SetTriggers(table); err != nil {
		n.log.Error("cron triggers not applied; the ones before go on", "err", err, "do", fault.ReportBug)
	}
}

// recordMatches puts matches on the control room's record.
func (n *Node) recordMatches(ctx context.Context, _ time.Time, matches []cron.Match) ([]cron.Match, error) {
	runs := make([]state.Run, len(matches))
	for i, m := range matches {
		runs[i] = state.Run(m)
	}
	runs, err := n.control.RecordRuns(ctx, runs)
	return toMatches(runs), err
}

func (n *Node) owedMatches(ctx context.Context) ([]cron.Match, error) {
	runs, err := n.control.Runs(ctx)
	return toMatches(runs), err
}

func toMatches(runs []state.Run) []cron.Match {
	out := make([]cron.Match, len(runs))
	for i, r := range runs {
		out[i] = cron.Match(r)
	}
	return out
}

// fire calls the scheduled handler of a version of the worker, drawn by weight. A worker that has no deployment now may
// have one again: its run stays owed; one that is gone can never run it.
func (n *Node) fire(ctx context.Context, m cron.Match) (cron.Outcome, error) {
	w := n.versions.worker(m.Worker)
	if w == nil {
		return cron.Finished, fault.Newf(fault.NotFound, "node.fire", "the worker of trigger %s is gone", m.Trigger)
	}
	v := codeOf(w)
	if v == nil {
		return cron.Owed, fault.New(fault.Unavailable, "node.fire", "no version of the worker can run now")
	}
	defer n.tasks.begin("cron run", m.Cron, m.Worker)()
	span := n.cronTrace(m)
	reached, err := v.Scheduled(ctx, event.Scheduled{Cron: m.Cron, ScheduledTime: m.Minute, Trace: span})
	span.End(err)
	switch {
	case !reached:
		return cron.Owed, err
	case fault.CodeOf(err) == fault.Canceled || fault.NameOf(err) == "draining":
		return cron.Owed, err // stopped on its way: nobody knows how far it came
	}
	return cron.Finished, err
}
