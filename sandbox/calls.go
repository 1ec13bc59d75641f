package sandbox

import (
	"context"
	"fmt"
	"sync"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/engine"
	"edged/sandbox/event"
	"edged/sandbox/facade"
)

var _ facade.Caller = (*guest)(nil)

// calls are the host calls of an invocation that are at work beside its guest. The invocation is not over before all of
// them are: none outlives it, and none reports to the next one.
type calls struct {
	ctx    context.Context // of the invocation; nil until the first call
	cancel context.CancelFunc
	atWork sync.WaitGroup
}

// Binding is facade.Caller's.
func (g *guest) Binding(number int32) *binding.Binding {
	list := g.version.spec.Bindings
	if number < 0 || int(number) >= len(list) {
		return nil
	}
	return &list[number]
}

// Batch is facade.Caller's.
func (g *guest) Batch() *event.Batch { return g.batch }

// Start is facade.Caller's. The goroutine ends with work, which returns promptly when ctx is done; endCalls waits for it.
func (g *guest) Start(work func(ctx context.Context) facade.Settle) engine.Value {
	id, ok := g.begun()
	if !ok {
		return g.in.ThrowRange("too many operations are open")
	}
	if g.calls.ctx == nil {
		// Not the client's: a handler may go on when the client has left.
		g.calls.ctx, g.calls.cancel = context.WithCancel(context.WithoutCancel(g.from))
	}
	ctx, ended := g.calls.ctx, g.ended
	g.calls.atWork.Go(func() {
		settle := g.guarded(ctx, work)
		ended <- completion{id: id, settle: func(g *guest) (engine.Value, bool) { return settle(g.in) }}
	})
	return engine.Int(id)
}

// guarded keeps a bug in a host call from the node.
func (g *guest) guarded(ctx context.Context, work func(ctx context.Context) facade.Settle) (settle facade.Settle) {
	defer func() {
		if r := recover(); r != nil {
			g.box.opt.Metrics.panics.Inc()
			g.box.opt.Log.Error("panic in a host call", "err", fault.Wrap(fault.Internal, "sandbox.Start", fmt.Errorf("panic: %v", r)))
			settle = func(in *engine.Instance) (engine.Value, bool) {
				return in.NewError("backend_unavailable", "the call could not be done"), false
			}
		}
	}()
	return work(ctx)
}

// endCalls cuts the host calls short and returns when none is at work. It must not hold a slot.
func (g *guest) endCalls() {
	if g.calls.cancel == nil {
		return
	}
	g.calls.cancel()
	g.calls.atWork.Wait()
	g.calls.ctx, g.calls.cancel = nil, nil
}
