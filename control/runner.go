package control

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/faultpoint"
)

// Backoff of an effect that could not be done now.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// takeOver puts in doubt what a crash, or the end of the term before, has interrupted: its outcome is open until the effect, which is
// idempotent, was done again. Nobody is answered before, so that nothing is seen running that nobody runs.
func (c *Control) takeOver() {
	for _, op := range c.state.Unfinished() {
		if op.Status == state.Running {
			c.tell(&state.Command{Kind: state.DoubtOperation, Operation: op.ID})
		}
		if op.Status == state.Waiting && !c.comparable(op) {
			c.tell(&state.Command{Kind: state.Requeue, Operation: op.ID}) // nobody can help it any more: it fails
		}
	}
}

// runOperations works on accepted Operations until ctx is done, oldest first, as many at a time as take allows.
func (c *Control) runOperations(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	signal(c.machine.work)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.machine.work:
		}
		for _, op := range c.state.Unfinished() {
			if !c.take(op) {
				continue
			}
			jobs.Go(func() {
				c.perform(ctx, op)
				c.give(op.ID)
				signal(c.machine.work) // a place is free
			})
		}
	}
}

// work is one Operation in the runner's hands. Artifacts, each kind of store, migrations and retirements have places of their own: a
// retirement may wait for streams to end, a store may be out of order, and neither must keep the others from their work.
type work struct {
	tenant   string
	kind     string
	database string // of a migration: its next one waits, so that what is known of the ledger never goes back
}

func kindOfWork(d *form.Driver) string {
	switch {
	case d.ArtifactKind != "":
		return "artifact"
	case d.Store != "":
		return d.Store
	case d.Role == rules.Migration:
		return "migration"
	}
	return "retirement"
}

// take claims an Operation for one job; false if it has one already, if another migrates its database, or if its places are taken:
// Options.MaxOperations for each kind of work, half of them at most for one tenant, so that slow sources of one do not hold up the
// others.
func (c *Control) take(op *state.Operation) bool {
	r := c.state.Resource(op.Resource)
	if r == nil || op.Status == state.Waiting {
		return false // it ended since, or nothing can be done for it
	}
	w := work{op.Tenant, kindOfWork(r.Driver()), r.Parsed().Database}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.working[op.ID]; taken {
		return false
	}
	all, own := 0, 0
	for _, other := range c.working {
		if w.database != "" && other.database == w.database {
			return false
		}
		if other.kind == w.kind {
			all++
			if other.tenant == w.tenant {
				own++
			}
		}
	}
	if all >= c.opt.MaxOperations || own >= (c.opt.MaxOperations+1)/2 {
		return false
	}
	c.working[op.ID] = w
	return true
}

func (c *Control) give(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.working, id)
}

// Working lists the Operations whose effect is under way in this process, in no order. They do not hold a stop up: the next start goes on.
func (c *Control) Working() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, 0, len(c.working))
	for id := range c.working {
		out = append(out, id)
	}
	return out
}

// perform does the effect of one Operation and ends it. It gives up only with ctx: the next start goes on.
func (c *Control) perform(ctx context.Context, op *state.Operation) {
	cur := c.state.Operation(op.ID)
	if cur == nil || cur.Status.Terminal() || !c.hasInputs(cur) {
		return
	}
	again := cur.Status != state.Queued // an attempt before this one may have had effects
	faultpoint.Hit("control.dispatch")
	if !c.tell(&state.Command{Kind: state.StartOperation, Operation: op.ID}) {
		pause(ctx, firstRetry)
		return
	}
	faultpoint.Hit("control.dispatched")
	if cur = c.state.Operation(op.ID); cur == nil || cur.Status != state.Running {
		return // its values expired at this moment
	}
	shown := ""
	for wait := firstRetry; ; wait, again = min(2*wait, lastRetry), true {
		end, err := c.effect(ctx, op, again)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			faultpoint.Hit("control.done")
			end.Kind, end.Operation = state.EndOperation, op.ID
			if c.tell(end) {
				faultpoint.Hit("control.ended")
				return
			}
		} else {
			c.opt.Log.Warn("operation has to be tried again", "operation", op.ID, "err", err)
			// The outcome is open until the effect was done again. Whoever waits for it sees why.
			if why := cmp.Or(fault.Detail(err), "it could not be done yet; the node's log says why"); why != shown &&
				c.tell(&state.Command{Kind: state.DoubtOperation, Operation: op.ID, Seed: rules.BackendUnavailable, Message: why}) {
				shown = why
			}
		}
		if !pause(ctx, wait/2+rand.N(wait/2)) {
			return
		}
	}
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// tell submits a command of the node's own and reports whether it was committed.
func (c *Control) tell(cmd *state.Command) bool {
	_, err := c.submit(cmd)
	if err != nil {
		c.opt.Log.Warn("command was not committed", "kind", string(cmd.Kind), "err", err)
	}
	return err == nil
}

// failed is the end of an Operation whose effect is known not to be there.
func failed(seed rules.Seed, err error) *state.Command {
	text := fault.Detail(err)
	if text == "" {
		text = string(seed)
	}
	return &state.Command{Effect: state.EffectNone, Seed: seed, Message: text}
}

// sweep ends the retention of Operations, and tells the state what else time has done, until ctx is done.
func (c *Control) sweep(ctx context.Context) {
	c.everySweep(ctx, func(now time.Time) {
		c.expireInputs()
		c.flushUses()
		for more := c.state.Due(now.UnixMilli()); more && ctx.Err() == nil; {
			out, err := c.submit(&state.Command{Kind: state.Sweep, At: now.UnixMilli()})
			if err != nil {
				c.opt.Log.Warn("retention sweep failed", "err", err)
			}
			more = err == nil && out.More
		}
	})
}

// tidy ends the retention of this voter's artifact bytes, and makes its audit durable, until ctx is done.
func (c *Control) tidy(ctx context.Context) {
	c.everySweep(ctx, func(now time.Time) {
		c.audit.sync()
		if _, err := c.artifacts.Sweep(ctx, now); err != nil && ctx.Err() == nil {
			c.opt.Log.Warn("artifact sweep failed", "err", err)
		}
	})
}

func (c *Control) everySweep(ctx context.Context, do func(now time.Time)) {
	ticker := time.NewTicker(c.opt.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			do(now)
		}
	}
}
