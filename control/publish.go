package control

import (
	"context"
	"sync"
	"time"

	"edged/control/plan"
	"edged/internal/faultpoint"
)

// published is how far plans are in use, and who waits for that.
type published struct {
	mu    sync.Mutex
	index uint64
	moved chan struct{} // closed when index moves, then replaced
}

func (p *published) init() { p.moved = make(chan struct{}) }

func (p *published) set(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index = max(p.index, index)
	close(p.moved)
	p.moved = make(chan struct{})
}

// reach waits until the plan of the command with this index is in use.
func (p *published) reach(ctx context.Context, index uint64) error {
	for {
		p.mu.Lock()
		done, moved := p.index >= index, p.moved
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
// is being taken into use share the next one. The first plan after a start is handed over even if it is the one of before.
func (c *Control) publish(ctx context.Context) {
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
		index := c.machine.planned.Load() // read first: the plan then holds at least this
		if d := deriver.Next(index); first || !d.Empty() {
			if !first {
				faultpoint.Hit("control.plan")
			}
			c.hand(d, deriver.Plan())
		}
		c.plans.set(index)
	}
}

// hand saves a plan and gives it to the node. A plan that cannot be saved is served all the same: the node is then only
// worse off after a restart without control.
func (c *Control) hand(d *plan.Delta, now *plan.Plan) {
	if err := c.saved.Save(d, now); err != nil {
		c.opt.Log.Error("plan was not saved", "err", err)
	}
	c.opt.Metrics.plans.Inc()
	if c.opt.OnPlan != nil {
		c.opt.OnPlan(d)
	}
}

// wait is reach within a time; whoever waits goes on either way.
func (p *published) wait(ctx context.Context, index uint64, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = p.reach(ctx, index)
}
