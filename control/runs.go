package control

import (
	"context"
	"time"

	"edged/control/state"
)

// RecordRuns puts matches of one minute of cron triggers on record and returns those that it did, durably; the others
// are skipped for ever (attachments §4.3). It decides in the order of the log that also changes triggers. After an error
// Runs tells what was recorded. Errors: Unavailable.
func (c *Control) RecordRuns(_ context.Context, runs []state.Run) ([]state.Run, error) {
	out, err := c.submit(&state.Command{Kind: state.RecordRuns, At: time.Now().UnixMilli(), Runs: runs})
	return out.Runs, err
}

// EndRun makes durable that a recorded run is done. Idempotent.
func (c *Control) EndRun(_ context.Context, run state.Run) error {
	_, err := c.submit(&state.Command{Kind: state.EndRuns, At: time.Now().UnixMilli(), Runs: []state.Run{run}})
	return err
}

// Runs returns the runs that are on record and not done. It waits until the state has caught up with its log.
func (c *Control) Runs(ctx context.Context) ([]state.Run, error) {
	select {
	case <-c.Started():
		return c.state.Runs(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
