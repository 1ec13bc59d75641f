package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/event"
)

const stuckText = "it waits for something that can no longer happen"

var (
	errUncaught = event.ErrWorker.New("sandbox.Serve", "the worker threw an error")
	errStuck    = event.ErrWorker.New("sandbox.Serve", stuckText)
	errNoFetch  = event.ErrNotServing.New("sandbox.Serve", "the version has no fetch handler")
	errClient   = fault.New(fault.Canceled, "sandbox.Serve", "the client has left")
)

// Serve runs the fetch handler for one request and fills res, which must be empty. It returns when the response head is
// there and, unless res.Stream is set, the body too. What is then still going on (a streamed body, waitUntil) goes on by
// itself: Retire and Close wait for it. The request's slices are not used after Serve returned; its Body is read on only
// while res.Stream is not closed.
//
// ctx stands for the client: when it is done, request.signal is aborted and the response stream is cancelled, also
// after Serve returned with a stream. The error is one of the names of package event, or Canceled when the client left.
func (v *Version) Serve(ctx context.Context, req *event.Request, res *event.Response) (err error) {
	start, limit := takenAt(req), v.box.opt.MaxWall
	if !v.serves {
		v.served(0, req.Trace, errNoFetch)
		return errNoFetch
	}
	watcher := v.watched()
	deadline := start.Add(limit)
	steps := v.beginSteps(req.Trace)
	g, err := v.acquire(ctx, start, limit)
	steps.acquired(g, err)
	if err != nil {
		v.served(time.Since(start), req.Trace, err)
		if watcher != nil && !errors.Is(err, errRetired) { // else the caller asks another version: nothing has happened
			refused(watcher, v.announcedRequest(ctx, start, req), err)
		}
		return err
	}
	if watcher != nil {
		g.tally.watcher, g.tally.told = watcher, v.announcedRequest(ctx, start, req)
	}
	if !req.Arrived.IsZero() {
		g.tally.admission = start.Sub(req.Arrived)
	}
	res.Origin = g.origin
	v.box.opt.Metrics.origins[g.origin].Inc()
	more, err := g.fetch(ctx, deadline, req, res)
	now := start.Add(time.Since(start)) // half of time.Now
	g.headed(now, err)
	if err == nil {
		g.tally.told.Status = res.Status
	}
	v.served(now.Sub(start), req.Trace, err)
	g.trace.Fail(err)
	if res.Receipt != nil && (more || g.busy()) {
		g.atHead(res.Receipt)
	} else {
		g.tally.want = res.Receipt
	}
	if more {
		// Owned by the version: the guest stays in its list of guests at work until the tail gives it back, and Retire
		// and Close wait for that list to be empty.
		v.outlives(g)
		go g.tail(err)
		return err
	}
	g.tellEnd("the invocation", err)
	if g.busy() { // the answer does not wait for what cannot be called off; owned as the tail is
		go g.finish(time.Time{})
		return err
	}
	g.finish(now)
	return err
}

// takenAt is the time, read with half of what time.Now costs where the request says when it came.
func takenAt(req *event.Request) time.Time {
	if req.Arrived.IsZero() {
		return time.Now()
	}
	return req.Arrived.Add(time.Since(req.Arrived))
}

// tellEnd writes to the worker's log what ended a piece of work, unless that was done where it happened.
func (g *guest) tellEnd(what string, err error) {
	g.trace.Fail(err)
	if err == nil || errors.Is(err, errUncaught) || errors.Is(err, errAnswer) {
		return
	}
	text := fault.Detail(err)
	if errors.Is(err, errStuck) {
		text = stuckText
	}
	if text == "" {
		text = fault.NameOf(err)
	}
	g.version.console(LevelUncaught, what+" was ended: "+text)
}

// fetch runs one request up to its response, on a slot that was taken for it. more says that the invocation is not over;
// the tail has to see to the rest. Otherwise it may return with the slot.
func (g *guest) fetch(ctx context.Context, deadline time.Time, req *event.Request, res *event.Response) (more bool, err error) {
	defer g.recoverTo(&more, &err)
	g.begin(ctx, deadline)
	if err := g.start(); err != nil {
		return false, err
	}
	g.in.Watch() // until the guest waits for something, or is reset
	if g.promise, err = g.dispatch(req); err != nil {
		return false, err
	}
	value, err := g.await()
	if err != nil {
		if errors.Is(err, errClient) {
			g.endSource(&g.body)
			g.leave()
			return true, errClient
		}
		return false, err
	}
	more, err = g.answer(value, res)
	if err != nil {
		return false, err
	}
	if g.stream == nil && g.splice == nil {
		g.endSource(&g.body)
	}
	if more {
		g.leave()
	}
	return more, nil
}

// dropsKept is how many values an invocation may drop before they are freed.
const dropsKept = 16

// drop frees a value where values have to be freed: under isolation request the reset takes the few of a short invocation all at
// once. One that streams drops a value, with its bytes, for each chunk.
func (g *guest) drop(v engine.Value) {
	if g.drops++; g.drops > dropsKept || g.box.opt.Isolation == IsolateWorker {
		g.in.Free(v)
	}
}

// await drives the invocation until g.promise is settled and returns its value. It may be called again after errClient:
// the handler is then given the time that is left.
func (g *guest) await() (engine.Value, error) {
	for {
		if err := g.jobs(); err != nil {
			return engine.Undefined, err
		}
		switch g.in.PromiseState(g.promise) {
		case engine.Fulfilled:
			return g.in.PromiseResult(g.promise), nil
		case engine.Rejected:
			reason := g.in.PromiseResult(g.promise)
			g.handled(g.promise)
			return engine.Undefined, g.uncaught(g.in.Describe(reason))
		case engine.NotPromise:
			if err := g.in.Err(); err != nil {
				return engine.Undefined, err
			}
			if g.followed {
				v := g.promise
				g.promise = engine.Undefined // the caller frees it
				return v, nil
			}
			g.followed = true
			v, err := g.in.Call(g.version.entries[entryFollow], engine.Undefined, g.promise)
			if err != nil {
				return engine.Undefined, g.uncaught(err)
			}
			g.drop(g.promise)
			g.promise = v
		default:
			if err := g.wait(); err != nil {
				return engine.Undefined, err
			}
		}
	}
}

// tail sees an invocation to its end after Serve has returned.
func (g *guest) tail(cause error) {
	defer g.finish(time.Time{})
	var more bool
	var err error
	defer g.recoverTo(&more, &err)
	if cause != nil { // the client left: the handler may still clean up
		if err = g.abandon(); err != nil {
			g.tellEnd("the invocation", err)
			return
		}
	}
	g.afterHead()
}

// abandon lets the handler of a client that has left come to its end; its response is thrown away.
func (g *guest) abandon() error {
	if err := g.enter(); err != nil {
		return err
	}
	value, err := g.await()
	if err != nil {
		return err
	}
	var res event.Response
	if _, err := g.answer(value, &res); err != nil {
		return err
	}
	if g.stream != nil {
		g.cancelStream()
	}
	if g.splice != nil {
		g.splice.Close()
	}
	return nil
}

// finish gives the guest back. Whatever the invocation still had open ends here. now is the time if the caller has read it and the
// guest has not run since; zero if not, or if much may have to be waited for.
func (g *guest) finish(now time.Time) {
	if g.stream != nil {
		g.stream.end(errCut)
	}
	if len(g.lost)+len(g.found) > 0 && g.in.Err() == nil && g.enter() == nil {
		now = time.Time{}
		for g.reportLost() && g.jobs() == nil { // the guest's CPU limit bounds it
		}
	}
	if g.calls.cancel != nil || g.work != nil { // they may be waited for
		now = time.Time{}
	}
	if !now.IsZero() {
		g.in.PauseAt(now)
	}
	if g.busy() {
		g.leave()
	}
	holds := g.halt()
	if holds && g.calls.cancel != nil {
		g.box.turns.give(g.pace) // what is still at work beside the guest takes its time
		holds = false
	}
	g.endCalls()
	g.endWork()
	g.endSources()
	g.endSource(&g.body)
	for len(g.ended) > 0 { // ended while nobody waited any more; nothing that could end is left
		c := <-g.ended
		if c.drop != nil {
			c.drop()
		}
		c.free(g)
	}
	g.letAllGo()
	g.sum()
	g.endSteps()
	g.version.learn(g.tally.cpu)
	box, pace := g.box, g.pace
	if g.tally.cpu >= quickCPU { // what it leaves behind may be much
		longSlice()
		defer shortSlice()
	}
	if now.IsZero() {
		now = time.Now()
	}
	g.version.release(g, now)
	if holds { // only now: whoever gets the slot finds the sandbox that is warm
		box.turns.give(pace)
	}
}

// recoverTo is the one place where a bug of ours, hit while this guest was served, is kept from the node. It ends a
// deferring function.
func (g *guest) recoverTo(more *bool, err *error) {
	r := recover()
	if r == nil {
		return
	}
	g.broken = true
	g.box.opt.Metrics.panics.Inc()
	*more = false
	*err = fault.Wrap(fault.Internal, "sandbox.Serve", fmt.Errorf("panic: %v", r))
	g.box.opt.Log.Error("panic while serving", "err", *err, "version", g.version.spec.UID, g.trace.Attr(), "do", fault.ReportBug)
}

// uncaught turns what the engine returned into the error of the invocation. An exception is shown to the worker's own
// log and to nobody else; a limit is itself.
func (g *guest) uncaught(err error) error {
	if failure := g.in.Err(); failure != nil {
		return failure
	}
	var script *engine.ScriptError
	if errors.As(err, &script) {
		g.thrown = script
		g.version.console(LevelUncaught, scriptText(script))
		return errUncaught
	}
	return err
}

func scriptText(e *engine.ScriptError) string {
	if e.Stack == "" {
		return e.Error()
	}
	return e.Error() + "\n" + e.Stack
}
