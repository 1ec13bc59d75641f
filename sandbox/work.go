package sandbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/hostapi"
)

// workState is what an invocation has going on beside its guest: pieces of work on goroutines of their own, which take
// nothing from the guest and count against its CPU. The invocation is not over before they are.
type workState struct {
	ctx     context.Context // done when the invocation is over
	cancel  context.CancelFunc
	running sync.WaitGroup
	spent   atomic.Int64 // nanoseconds that the guest's clock has not been charged yet
	budget  atomic.Int64 // nanoseconds that may be spent
}

var _ hostapi.Worker = (*guest)(nil)

// Work begins a piece of work (hostapi.Worker). It waits for one of the room's few places first.
func (g *guest) Work(do func(stop func() bool) hostapi.Outcome) (id int32, ok bool) {
	if id, ok = g.begun(); !ok {
		return 0, false
	}
	if g.work == nil {
		g.work = &workState{}
		g.work.ctx, g.work.cancel = context.WithCancel(context.Background())
	}
	w, ended, box := g.work, g.ended, g.box
	w.budget.Store(int64(box.opt.MaxCPU - g.in.CPU()))
	w.running.Go(func() {
		outcome := failedWork
		select {
		case box.workers <- struct{}{}:
			outcome = w.run(box, do)
			<-box.workers
		case <-w.ctx.Done():
		}
		ended <- completion{id: id, settle: func(g *guest) (engine.Value, bool) { return outcome(g.in) }}
	})
	return id, true
}

// failedWork is the outcome of work that was not done: its invocation is over, or it met a bug of ours.
func failedWork(in *engine.Instance) (engine.Value, bool) {
	return in.NewError("Error", "the operation could not be done"), false
}

// run does one piece of work and counts its time as it passes, so that several pieces share one budget.
func (w *workState) run(box *Sandbox, do func(stop func() bool) hostapi.Outcome) (outcome hostapi.Outcome) {
	last := time.Now()
	stop := func() bool {
		now := time.Now()
		w.spent.Add(int64(now.Sub(last)))
		last = now
		return w.ctx.Err() != nil || w.spent.Load() > w.budget.Load()
	}
	defer func() {
		stop()
		if r := recover(); r != nil { // as in recoverTo: a bug costs one operation
			outcome = failedWork
			box.opt.Metrics.panics.Inc()
			box.opt.Log.Error("panic beside a guest", "err", fault.Wrap(fault.Internal, "sandbox.work", fmt.Errorf("panic: %v", r)), "do", fault.ReportBug)
		}
	}()
	if stop() {
		return failedWork
	}
	return do(stop)
}

// charge moves the time that work has taken to the guest's clock. The guest has failed if that was too much.
func (g *guest) charge() {
	if g.work == nil {
		return
	}
	d := g.work.spent.Swap(0)
	g.work.budget.Add(-d)
	g.in.Charge(time.Duration(d))
}

// busy reports whether work goes on that endWork would have to wait for.
func (g *guest) busy() bool { return g.work != nil && g.operations > 0 }

// endWork calls off what still goes on and waits for it. What cannot be called off takes seconds at most.
func (g *guest) endWork() {
	if g.work == nil {
		return
	}
	g.work.cancel()
	g.work.running.Wait()
	g.charge()
	g.work = nil
}
