package control

import (
	"context"
	"sync"
	"time"

	"edged/control/plan"
	"edged/internal/fault"
	"edged/internal/faultpoint"
)

// progress is how far something is along the log, and who waits for that. The zero value is ready.
type progress struct {
	mu    sync.Mutex
	index uint64
	moved chan struct{} // closed when index moves; nil while nobody waits
}

func (p *progress) set(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index = max(p.index, index)
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// at returns the index reached.
func (p *progress) at() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index
}

// reach waits until the command with this index is behind.
func (p *progress) reach(ctx context.Context, index uint64) error {
	for {
		p.mu.Lock()
		done := p.index >= index
		if p.moved == nil && !done {
			p.moved = make(chan struct{})
		}
		moved := p.moved
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

// publish finds what each change alters in the plan, keeps that on disk and hands it to the node. Changes that come while a plan
// is being taken into use share the next one. The first plan after a start is handed over even if it is the one of before. Every voter
// does so, each from its own state, once that is current: a plan must not be older than the one of before. A voter that lacks bytes of
// what is new gets them first.
func (c *Control) publish(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.ready:
	}
	faultpoint.Hit("control.publish")
	c.state.Track()
	deriver := plan.NewDeriver(c.state, c.last)
	signal(c.machine.changed)
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-c.machine.changed:
		}
		c.machine.exact.Lock() // members that change from one voter to another go on at an index: every voter's plan there is the same
		index := c.machine.planned.Load()
		d := deriver.Next(index)
		c.machine.exact.Unlock()
		if late := c.late.came.Swap(false); first || late || !d.Empty() {
			if !first {
				faultpoint.Hit("control.plan")
			}
			c.bringBundles(ctx, d)
			c.hand(d, deriver.Plan())
		}
		c.plans.set(index)
	}
}

// hand saves a plan and gives it to the node. A plan that cannot be saved is served all the same: the node is then only
// worse off after a restart without control.
func (c *Control) hand(d *plan.Delta, now *plan.Plan) {
	if err := c.saved.Save(d, now); err != nil {
		c.opt.Log.Error("plan was not saved", "err", err, "do", fault.CheckDisk)
	}
	c.opt.Metrics.plans.Inc()
	if c.opt.OnPlan != nil {
		c.opt.OnPlan(d)
	}
}

// wait is reach within a time; whoever waits goes on either way.
func (p *progress) wait(ctx context.Context, index uint64, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = p.reach(ctx, index)
}

// reachPlan waits until a plan that holds at least the command with this index, on whichever voter it was made, is in use here.
func (c *Control) reachPlan(ctx context.Context, index uint64) error {
	if err := c.machine.applied.reach(ctx, index); err != nil {
		return err
	}
	return c.plans.reach(ctx, c.machine.planned.Load())
}
