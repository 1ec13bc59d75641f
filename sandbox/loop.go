package sandbox

import (
	"errors"
	"slices"
	"time"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// maxJobsAtOnce is how many promise jobs run before the loop looks around; the CPU limit bounds their number.
const maxJobsAtOnce = 4096

// jobs runs promise jobs until none is left. What they throw is reported and does not end the invocation.
func (g *guest) jobs() error {
	for {
		ran, err := g.in.RunJobs(maxJobsAtOnce)
		if failure := g.in.Err(); failure != nil {
			return failure
		}
		if err != nil {
			_ = g.uncaught(err) // a job belongs to nobody: the report is all
			continue
		}
		if ran < maxJobsAtOnce {
			return nil
		}
	}
}

// wait gives the slot up until something happens that the invocation waits for, and lets the guest have it. When it
// returns nil the guest runs again and has had its say, jobs excepted. errStuck means that nothing can happen any more.
func (g *guest) wait() error {
	if g.reportLost() {
		return g.in.Err()
	}
	if !g.hopeful() {
		return errStuck
	}
	g.leave()
	var alarm <-chan time.Time
	due, timed := g.timers.next()
	excused := g.onlyClient()
	if !excused && !g.deadline.IsZero() && (!timed || g.deadline.Before(due)) {
		due, timed = g.deadline, true
	}
	if timed {
		alarm = g.wakeAt(due)
		defer g.alarm.Stop()
	}
	began := time.Now()
	var wants chan []byte
	var closing, spliced chan struct{}
	if g.splice != nil {
		spliced = g.splice.over
	}
	if g.stream != nil && !g.stream.over {
		closing = g.stream.closing
		if g.stream.buf == nil {
			wants = g.stream.wants
		}
	}
	select {
	case <-alarm:
		g.excuse()
		return g.wake()
	case c := <-g.ended:
		if excused && !g.deadline.IsZero() {
			g.deadline = g.deadline.Add(time.Since(began))
		}
		return g.complete(c)
	case g.stream.buf = <-wants:
		return g.enter()
	case <-closing:
		return g.closeStream()
	case <-g.gone:
		return g.clientLeft()
	case <-g.quit:
		return errQuit
	case <-spliced:
		g.splice = nil
		return g.enter()
	case <-g.version.kill:
		return errShutdown
	}
}

// hopeful reports whether anything can still happen that makes the guest run.
func (g *guest) hopeful() bool {
	if g.timers.len() > 0 || g.operations > 0 {
		return true
	}
	if g.signalUsed && !g.left && g.gone != nil {
		return true // the client may leave, and somebody listens
	}
	// the client may want more
	return g.splice != nil || g.stream != nil && !g.stream.over && g.stream.buf == nil
}

// onlyClient reports whether the next bytes of the request body are all that the handler can wait for: that time is the client's.
func (g *guest) onlyClient() bool {
	return g.body.reading && g.operations == 1 && g.timers.len() == 0
}

// excuse moves a deadline that has come by the time in which the handler could only wait for somebody else to get the
// client's next bytes.
func (g *guest) excuse() {
	if g.lent == nil || g.deadline.IsZero() || g.operations != 1 || g.timers.len() > 0 || time.Now().Before(g.deadline) {
		return
	}
	if d := g.lent.waiting() - g.excused; d > 0 {
		g.excused += d
		g.deadline = g.deadline.Add(d)
	}
}

// wake runs the timers that are due, oldest first, each with the jobs it leaves.
func (g *guest) wake() error {
	if err := g.enter(); err != nil {
		return err
	}
	now := time.Now()
	for {
		id, ok := g.timers.pop(now)
		if !ok {
			return nil
		}
		v, err := g.in.Call(g.version.entries[entryTimer], engine.Undefined, engine.Int(id))
		if err != nil {
			if err := g.uncaught(err); !errors.Is(err, errUncaught) {
				return err
			}
		}
		g.drop(v)
		if err := g.jobs(); err != nil {
			return err
		}
		for g.reportLost() {
			if err := g.jobs(); err != nil {
				return err
			}
		}
		if g.timers.len() == 0 {
			return nil
		}
	}
}

// begun makes a number for a host operation whose completion will arrive on g.ended; ok is false if too many are open, or the invocation is over.
func (g *guest) begun() (id int32, ok bool) {
	if g.closing || g.operations >= g.box.opt.MaxOperations {
		return 0, false
	}
	if g.ended == nil {
		g.ended = make(chan completion, g.box.opt.MaxOperations)
	}
	g.operations++
	g.lastID++
	return g.lastID, true
}

// complete hands the result of a host operation to the promise that waits for it.
func (g *guest) complete(c completion) error {
	g.operations--
	g.waited(c.who, c.took)
	defer c.free(g)
	if err := g.enter(); err != nil {
		if c.drop != nil {
			c.drop()
		}
		return err
	}
	if g.charge(); g.in.Err() != nil {
		return g.in.Err()
	}
	value, ok := c.settle(g)
	if value.IsException() {
		return g.failed()
	}
	v, err := g.in.Call(g.version.entries[entrySettle], engine.Undefined, engine.Int(c.id), engine.Bool(ok), value)
	g.drop(value)
	g.drop(v)
	if err != nil {
		return g.uncaught(err)
	}
	return nil
}

// failed is the error of an instance that could not make a value.
func (g *guest) failed() error {
	if err := g.in.Err(); err != nil {
		return err
	}
	return event.ErrMemory
}

// clientLeft tells the guest, once. Before the head it returns errClient, so that Serve can return.
func (g *guest) clientLeft() error {
	g.gone, g.left = nil, true
	if err := g.enter(); err != nil {
		return err
	}
	v, err := g.in.Call(g.version.entries[entryGone], engine.Undefined)
	g.drop(v)
	if err != nil {
		if err := g.uncaught(err); !errors.Is(err, errUncaught) {
			return err
		}
	}
	if err := g.jobs(); err != nil {
		return err
	}
	if g.stream != nil {
		g.cancelStream()
		return nil
	}
	return errClient
}

// afterHead runs what is left once the head went out: the stream, then the tasks given to waitUntil.
func (g *guest) afterHead() {
	g.deadline = time.Time{} // a response that streams has no wall limit of its own
	err := g.enter()
	for err == nil {
		if err = g.jobs(); err != nil {
			break
		}
		if g.stream != nil && !g.stream.over {
			if err = g.pump(); err != nil {
				break
			}
		}
		streaming := g.splice != nil || g.stream != nil && !g.stream.over
		if !streaming {
			g.gone = nil
			g.endSource(&g.body)
			var waits int32
			if waits, err = g.waits(); err != nil || waits == 0 {
				break
			}
			if g.deadline.IsZero() {
				g.deadline = time.Now().Add(g.box.opt.MaxWallEvents)
			}
		}
		err = g.wait()
		if errors.Is(err, errStuck) && g.stream != nil {
			g.failStream("the response stream waits for something that can no longer happen")
			err = nil
		}
	}
	g.fell(err)
	g.tellEnd("the work after the response", err)
}

// waits returns how many tasks waitUntil keeps.
func (g *guest) waits() (int32, error) {
	v, err := g.in.Call(g.version.entries[entryWaits], engine.Undefined)
	if err != nil {
		return 0, g.uncaught(err)
	}
	n, _ := v.Int()
	return n, nil
}

// handled takes a promise off the list of those that nobody handles, and reports whether it was there.
func (g *guest) handled(promise engine.Value) bool {
	for i, r := range g.lost {
		if r.promise == promise {
			g.in.Free(r.promise)
			g.in.Free(r.reason)
			g.lost = slices.Delete(g.lost, i, i+1)
			return true
		}
	}
	return false
}

// reportLost tells the worker's listeners of the rejections that nobody handled, and of those that somebody handles after
// all; it is time for that when no job is left. What no listener prevents is written to the worker's log. It reports
// whether there was anything: then there may be jobs again.
func (g *guest) reportLost() bool {
	if len(g.lost)+len(g.found) == 0 {
		return false
	}
	lost, found := slices.Clone(g.lost), slices.Clone(g.found)
	g.lost, g.found = g.lost[:0], g.found[:0]
	for _, r := range lost {
		if g.tellRejection(r, true) || g.in.Err() != nil {
			continue
		}
		var script *engine.ScriptError
		if errors.As(g.in.Describe(r.reason), &script) {
			g.version.console(LevelUncaught, "in a promise: "+scriptText(script))
		}
	}
	for _, r := range found {
		g.tellRejection(r, false)
	}
	for _, r := range append(lost, found...) {
		g.drop(r.promise)
		g.drop(r.reason)
	}
	return true
}

// tellRejection fires the event and reports whether a listener prevented the report. The guest runs.
func (g *guest) tellRejection(r rejection, lost bool) bool {
	v, err := g.in.Call(g.version.entries[entryRejection], engine.Undefined, r.promise, r.reason, engine.Bool(lost))
	if err != nil {
		_ = g.uncaught(err) // the report is all: a failed instance is told by Err
		return false
	}
	return v.Bool()
}
