package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

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
func (g *guest) Start(by *binding.Binding, held int, work func(ctx context.Context, room facade.Room) facade.Settle) engine.Value {
	id, ok := g.begun()
	if !ok {
		g.letGo(held)
		return g.in.ThrowRange("too many operations are open")
	}
	ctx, ended, room, who, began := g.callContext(), g.ended, g.room(), g.placeOf(by), time.Now()
	g.calls.atWork.Go(func() {
		settle := g.guarded(ctx, func(ctx context.Context) facade.Settle { return work(ctx, room) })
		ended <- completion{id: id, room: room, held: held, who: who, took: time.Since(began), settle: func(g *guest) (engine.Value, bool) { return settle(g.in) }}
	})
	return engine.Int(id)
}

// callContext is the context of everything that is done for the invocation beside its guest. It is not the client's: a
// handler may go on when the client has left.
func (g *guest) callContext() context.Context {
	if g.calls.ctx == nil {
		g.calls.ctx, g.calls.cancel = context.WithCancel(context.WithoutCancel(g.from))
	}
	return g.calls.ctx
}

// guarded keeps a bug in a host call from the node.
func (g *guest) guarded(ctx context.Context, work func(ctx context.Context) facade.Settle) (settle facade.Settle) {
	defer func() {
		if r := recover(); r != nil {
			g.panicked(r)
			settle = func(in *engine.Instance) (engine.Value, bool) {
				return in.NewError("backend_unavailable", "the call could not be done"), false
			}
		}
	}()
	return work(ctx)
}

func (g *guest) panicked(r any) {
	g.box.opt.Metrics.panics.Inc()
	g.box.opt.Log.Error("panic in a host call", "err", fault.Wrap(fault.Internal, "sandbox.Start", fmt.Errorf("panic: %v", r)), "do", fault.ReportBug)
}

// endCalls cuts everything short that is done beside the guest and returns when nothing is at work. It must not hold a
// slot.
func (g *guest) endCalls() {
	g.endLoans()
	if g.calls.cancel == nil {
		return
	}
	g.endExchanges()
	g.calls.cancel()
	g.calls.atWork.Wait()
	g.calls.ctx, g.calls.cancel = nil, nil
}
