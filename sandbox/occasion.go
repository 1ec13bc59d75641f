package sandbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"edged/internal/fault"
	"edged/internal/trace"
	"edged/sandbox/engine"
	"edged/sandbox/event"
)

var (
	errNoScheduled = event.ErrNotServing.New("sandbox.Scheduled", "the version has no scheduled handler")
	errNoQueue     = event.ErrNotServing.New("sandbox.Queue", "the version has no queue handler")
)

// Scheduled runs the scheduled handler once and returns when its promise has settled; tasks given to waitUntil may go on
// after that. It ends early when ctx is done. reached says whether the handler was called: if not, the error tells why
// the version could not run now. Otherwise an error is a failed invocation.
func (v *Version) Scheduled(ctx context.Context, e event.Scheduled) (reached bool, err error) {
	if !slices.Contains(v.spec.Handlers, "scheduled") {
		return false, errNoScheduled
	}
	what := v.announced(time.Now(), event.KindScheduled)
	what.Event = e.Cron
	return v.occasion(ctx, what, e.Trace, func(g *guest) (engine.Value, error) {
		vars, bound := g.env()
		cron := g.in.NewString([]byte(e.Cron))
		return g.handler(entryScheduled, cron, engine.Float(float64(e.ScheduledTime)), vars, bound)
	})
}

// Queue delivers a batch to the queue handler and returns when the handler's promise has settled, as Scheduled does.
// After that the batch takes no settlement any more.
func (v *Version) Queue(ctx context.Context, b *event.Batch) (reached bool, err error) {
	if !slices.Contains(v.spec.Handlers, "queue") {
		return false, errNoQueue
	}
	what := v.announced(time.Now(), event.KindQueue)
	what.Event, what.Batch = b.Queue, len(b.Messages)
	return v.occasion(ctx, what, b.Trace, func(g *guest) (engine.Value, error) {
		g.batch = b
		return g.deliver(b)
	})
}

// deliver calls the queue handler. The messages travel in one flat array.
func (g *guest) deliver(b *event.Batch) (engine.Value, error) {
	flat := make([]engine.Value, 0, 4*len(b.Messages))
	for i := range b.Messages {
		m := &b.Messages[i]
		flat = append(flat, g.in.NewString([]byte(m.ID)), engine.Float(float64(m.Timestamp)), engine.Int(int32(m.Attempts)), g.in.NewBytes(m.Body))
	}
	vars, bound := g.env()
	return g.handler(entryQueue, g.in.NewString([]byte(b.ID)), g.in.NewString([]byte(b.Queue)), g.in.NewArray(flat...), vars, bound)
}

// handler calls one of the entries that begin an invocation.
func (g *guest) handler(entry int, args ...engine.Value) (engine.Value, error) {
	promise, err := g.in.Call(g.version.entries[entry], engine.Undefined, args...)
	for _, v := range args {
		g.drop(v)
	}
	if err != nil {
		return engine.Undefined, g.uncaught(err)
	}
	return promise, nil
}

// occasion runs an invocation that has no client and no response.
func (v *Version) occasion(ctx context.Context, what event.Invocation, cause *trace.Span, call func(g *guest) (engine.Value, error)) (reached bool, err error) {
	start, limit := what.Start, v.box.opt.MaxWallEvents
	watcher := v.watched()
	deadline := start.Add(limit)
	steps := v.beginSteps(cause)
	g, err := v.acquire(ctx, start, limit)
	steps.acquired(g, err)
	if err != nil {
		v.served(time.Since(start), cause, err)
		if watcher != nil && !errors.Is(err, errRetired) {
			refused(watcher, what, err)
		}
		return false, err
	}
	if watcher != nil {
		g.tally.watcher, g.tally.told = watcher, what
	}
	v.box.opt.Metrics.origins[g.origin].Inc()
	more, err := g.attend(ctx, deadline, call)
	now := start.Add(time.Since(start)) // half of time.Now
	g.headed(now, err)
	v.served(now.Sub(start), cause, err)
	g.trace.Fail(err)
	g.batch = nil
	if more {
		v.outlives(g)
		go g.tail(nil) // the version waits for it, as after Serve
		return true, err
	}
	g.tellEnd("the invocation", err)
	g.finish(now)
	return true, err
}

// attend runs the handler to its settlement. more says that tasks of waitUntil go on; a failed handler's do too, unless
// the sandbox itself is lost.
func (g *guest) attend(ctx context.Context, deadline time.Time, call func(g *guest) (engine.Value, error)) (more bool, err error) {
	defer g.recoverTo(&more, &err)
	g.begin(ctx, deadline)
	g.gone, g.quit = nil, ctx.Done()
	if err := g.start(); err != nil {
		return false, err
	}
	g.in.Watch()
	if g.promise, err = call(g); err == nil {
		var v engine.Value
		v, err = g.await()
		g.drop(v)
	}
	if g.in.Err() != nil || err != nil && !g.running {
		return false, err
	}
	g.batch = nil
	waits, werr := g.waits()
	if werr != nil || waits == 0 {
		return false, err
	}
	g.quit = nil
	g.leave()
	return true, err
}

var errQuit = fault.New(fault.Canceled, "sandbox.occasion", "whoever wanted the invocation has given it up")
