package sandbox

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"edged/internal/trace"
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
	"edged/sandbox/event"
	"edged/sandbox/hostapi"
)

// guest is one engine instance and the invocation in it. It belongs to the goroutine that took it from the pool; the
// exceptions are marked.
type guest struct {
	box *Sandbox
	in  *engine.Instance

	version    *Version  // whose image the instance holds; nil among the spares
	next, prev *guest    // in the version's list of guests at work; its lock guards them
	outlived   time.Time // since when it goes on after its response head or settlement; the same lock guards it
	origin     event.Origin
	since      time.Time // when it was last given back
	out        bool      // its memory was given back, too
	served     int       // invocations since the last reset (isolation worker)
	born       time.Time // of that state

	sampled, interpreter time.Duration // of the instance's counters, what its versions have been charged

	onReject func(promise, reason engine.Value, handled bool) // made once: a method value would be made per invocation
	alarm    *time.Timer                                      // made when an invocation first waits, kept for the next

	tally tally // of the invocation; closed by restore
	ready ready // for the next fetch

	call // the invocation; zeroed after each
}

// call is the state of one invocation.
type call struct {
	from     context.Context // whose invocation, or load, it is
	calls    calls
	gone     <-chan struct{} // closed when the client leaves; nil once that does not matter any more
	left     bool            // the client has left, and the code was told
	leftAt   time.Time       // when that was noticed while the code ran and could not be told
	quit     <-chan struct{} // closed when an invocation without a client has to end; nil if it need not
	batch    *event.Batch    // what the queue handler was given, nil once it has settled
	running  bool            // a slot is held and the guest's clock runs
	pace     pace            // of the slot
	long     bool            // its thread is marked (longSlice)
	deadline time.Time       // of the present stage; zero means none
	watch    *watch          // stops a guest that would run past the deadline

	promise  engine.Value // what the handler, or the module's evaluation, returned
	followed bool         // it was asked whether it is a thenable

	timers     timers
	ended      chan completion // room for every operation that may be open, so that no sender waits
	operations int             // begun and not yet settled
	lastID     int32

	work        *workState // nil until there is some
	signalUsed  bool
	waitUsed    bool
	plain       bool          // the response was read where it was, and nothing else is left of the invocation
	body        source        // of the request
	lent        *loan         // the request's body, if somebody else reads it
	excused     time.Duration // how much of its waiting the deadline has been moved for
	loans       []*loan
	exchanges   map[int32]*exchange
	subrequests int
	drops       int                 // values that were dropped
	held        int64               // bytes of arguments of calls that are open
	results     *semaphore.Weighted // bytes that results may take; nil until the first call
	trace       *trace.Span         // the invocation's step in a trace; nil while nothing is traced
	splice      *loan               // the response body, if it is somebody else's
	spliced     *loan               // the same, also when it is over
	stream      *stream
	thrown      *engine.ScriptError // the last exception that nobody caught
	namespace   engine.Value        // of the main module (loads)
	lost        []rejection         // promises that were rejected and that nobody handles, so far
	found       []rejection         // promises that were reported as lost, and that somebody handles now
	closing     bool                // nothing may be begun any more: what runs now are finalizers
	broken      bool                // a bug of ours interrupted it; not to be used again
	codecs      hostapi.Codecs      // of its compression streams
}

// completion is the end of a host operation. settle makes the value in the guest and reports whether it is a success.
type completion struct {
	id     int32
	settle func(g *guest) (v engine.Value, ok bool)
	drop   func() // frees what settle would have taken; nil for nothing
	room   *room  // of the result; nil for none
	held   int    // bytes of arguments that the call needs no more
	who    int    // the place of the binding that was called, see waited; 0 for none
	took   time.Duration
}

// free gives back what the operation held of the node's memory, whether it was settled or dropped.
func (c *completion) free(g *guest) {
	if c.room != nil {
		c.room.free()
	}
	g.letGo(c.held)
}

// rejection keeps both values alive until somebody handles the promise or the report is written.
type rejection struct{ promise, reason engine.Value }

const maxRejections = 32 // kept at once; more are counted as one

func newGuest(s *Sandbox, in *engine.Instance, origin event.Origin) *guest {
	g := &guest{box: s, in: in, origin: origin, born: time.Now()}
	g.onReject = g.onRejection
	in.Yield = g.yield
	return g
}

// begin makes the guest ready for an invocation that ctx's client waits for, and that must have its result by the deadline.
func (g *guest) begin(ctx context.Context, deadline time.Time) {
	g.from, g.gone = ctx, ctx.Done()
	g.deadline = deadline
	g.in.User, g.in.Loader, g.in.OnRejection = g, g.version.loader, g.onReject
	g.in.Arm(g.box.opt.MaxCPU)
}

// enter takes a slot and starts the guest's clock. It fails when the version is being stopped or the deadline passed.
func (g *guest) enter() error {
	if g.running {
		return nil
	}
	p := g.nextPace()
	if !g.box.turns.try(p) {
		if err := g.queue(p); err != nil {
			return err
		}
	}
	g.pace = p
	return g.start()
}

// start starts the clock of a guest for which a slot was taken. If it fails the slot is given back.
func (g *guest) start() error {
	g.running = true
	select {
	case <-g.version.kill:
		g.leave()
		return errShutdown
	default:
	}
	budget := g.box.opt.MaxCPU - g.in.CPU() // asked for while the clock stands still, which needs no reading of it
	now := g.in.Resume()
	if g.deadline.IsZero() {
		return nil
	}
	// The engine watches CPU by itself; a watch of our own is needed only if the deadline comes first.
	left := g.deadline.Sub(now)
	if left <= 0 {
		g.leave()
		return event.ErrWall
	}
	if left < budget {
		g.watch = startWatch(g.in, left)
	}
	return nil
}

// queue waits for a slot, as long as the deadline allows.
func (g *guest) queue(as pace) error {
	began := time.Now()
	defer func() { g.tally.queued += time.Since(began) }()
	return g.box.turns.wait(&g.version.queues, as, until{kill: g.version.kill, deadline: g.deadline})
}

// nextPace is the pace at which the guest takes its next slot.
func (g *guest) nextPace() pace { return max(paceOf(g.in.CPU()), g.version.pace()) }

// pace is how the version's invocations are as a rule. Of one that had none nothing is known.
func (v *Version) pace() pace {
	usual := v.usual.Load()
	if usual == 0 {
		return quick
	}
	return paceOf(time.Duration(usual))
}

// learn counts an invocation that used so much CPU time into what is usual: a mean in which the last ones weigh most.
func (v *Version) learn(cpu time.Duration) {
	usual := v.usual.Load()
	if usual == 0 {
		usual = int64(cpu)
	}
	v.usual.Store(usual + (int64(cpu)-usual)/8) // two at once may lose one: it is a guess
}

// yield lets those who wait for a slot have theirs first: without it a few guests that never end would keep everybody
// else out until their CPU time is used up. It is called while the guest runs.
func (g *guest) yield() {
	if !g.running {
		return
	}
	if g.deserted() {
		g.in.Interrupt(errClient)
	}
	if g.box.turns.waiting.Load() == 0 {
		g.mark()
		return
	}
	g.in.Unwatch()
	g.in.Pause()
	g.unmark()
	g.box.turns.give(g.pace)
	g.pace = g.nextPace()
	began := time.Now()
	_ = g.box.turns.wait(&g.version.queues, g.pace, until{}) // whoever runs yields in its turn
	g.tally.queued += time.Since(began)
	g.mark()
	if !g.deadline.IsZero() && !time.Now().Before(g.deadline) {
		g.in.Interrupt(event.ErrWall)
	}
	g.in.Resume()
}

// mark tells the kernel about a guest that works long, unmark that its turn is over.
func (g *guest) mark() {
	if !g.long && g.nextPace() == slow {
		g.long = true
		longSlice()
	}
}

func (g *guest) unmark() {
	if g.long {
		g.long = false
		shortSlice()
	}
}

// desertedFor is how long code may go on that does not come to hear that its client has left.
const desertedFor = time.Second

// deserted reports whether the client left so long ago, and nothing but this one stretch of code was run since.
func (g *guest) deserted() bool {
	select {
	case <-g.gone: // nil, and never ready, once the code was told
	default:
		return false
	}
	if g.leftAt.IsZero() {
		g.leftAt = time.Now()
	}
	return time.Since(g.leftAt) > desertedFor
}

// leave stops the clock and gives the slot to somebody else.
func (g *guest) leave() {
	g.in.Unwatch()
	if g.halt() {
		g.box.turns.give(g.pace)
	}
}

// halt stops the clock and reports whether the guest held a slot, which is then the caller's.
func (g *guest) halt() bool {
	if !g.running {
		return false
	}
	if g.watch != nil {
		g.watch.stop()
		g.watch = nil
	}
	g.in.Pause()
	g.unmark()
	g.running = false
	return true
}

// wakeAt sets the guest's one timer.
func (g *guest) wakeAt(at time.Time) <-chan time.Time {
	if g.alarm == nil {
		g.alarm = time.NewTimer(time.Until(at))
	} else {
		g.alarm.Reset(time.Until(at))
	}
	return g.alarm.C
}

// watch interrupts a running guest after a while. stop returns when it certainly will not any more, so that it cannot
// hit the guest's next invocation.
type watch struct {
	timer *time.Timer
	fired sync.WaitGroup
}

func startWatch(in *engine.Instance, after time.Duration) *watch {
	w := &watch{}
	w.fired.Add(1)
	w.timer = time.AfterFunc(after, func() {
		defer w.fired.Done()
		in.Interrupt(event.ErrWall)
	})
	return w
}

func (w *watch) stop() {
	if !w.timer.Stop() {
		w.fired.Wait()
	}
}

// restore brings the guest back to where an invocation begins and reports whether it can be used again. The invocation must be over; it
// is now or not long after.
func (g *guest) restore(now time.Time) bool {
	g.chargeSamples()
	broken := g.broken
	g.served++
	keep := g.box.opt.Isolation == IsolateWorker && !broken && g.in.Err() == nil &&
		g.served < g.box.opt.ReuseRequests && now.Sub(g.born) < g.box.opt.ReuseFor && !g.version.retired.Load() && !userwasm.Worn(g.in)
	if keep {
		keep = g.clearCall()
	}
	clear(g.lost)
	clear(g.found)
	if !broken {
		g.codecs.Close()
	}
	g.timers.reset()
	g.call = call{timers: g.timers, ended: g.ended, lost: g.lost[:0], found: g.found[:0]}
	if keep {
		g.in.Unwatch()
		g.account(g.tally.memory)
		g.since = now
		return true
	}
	g.ready.forget()
	if broken || g.in.Reset() != nil {
		g.account(0)
		return false
	}
	g.account(g.in.Stats().LastBytes())
	g.served, g.born, g.since = 0, now, now
	m, stats := g.box.opt.Metrics, g.in.Stats()
	m.resets.Inc()
	m.pages.Add(float64(stats.LastPages))
	m.gap(stats.MaxPollGap)
	return true
}

// chargeSamples adds what the guest was seen doing since the last time to its worker's counters.
func (g *guest) chargeSamples() {
	stats := g.in.Stats()
	if stats.Sampled == g.sampled {
		return // most invocations are over before they are looked at
	}
	g.version.counts.sampled.Add((stats.Sampled - g.sampled).Seconds())
	g.version.counts.interpreter.Add((stats.Interpreter - g.interpreter).Seconds())
	g.sampled, g.interpreter = stats.Sampled, stats.Interpreter
}

// clearCall ends, in a guest that keeps its state, what belongs to the invocation alone.
func (g *guest) clearCall() bool {
	g.closing = true
	g.in.Free(g.promise)
	g.in.Arm(g.box.opt.MaxCPU)
	if !g.plain || g.lastID > 0 || g.timers.last > 0 { // else the guest has nothing to forget
		v, err := g.in.Call(g.version.entries[entryEnd], engine.Undefined)
		g.in.Free(v)
		if err != nil {
			return false
		}
	}
	g.keepReady()
	if g.in.JobsPending() && (g.jobs() != nil || !g.stillReady()) { // they must not run in the next invocation's time
		return false
	}
	for _, list := range [...][]rejection{g.lost, g.found} {
		for _, r := range list {
			g.in.Free(r.promise)
			g.in.Free(r.reason)
		}
	}
	g.tally.memory = g.in.HeapBytes()
	return g.in.Err() == nil && g.tally.memory < g.box.opt.MaxMemoryBytes/2
}

func guestOf(in *engine.Instance) *guest { return in.User.(*guest) }

// onRejection is called by the engine while the guest runs.
func (g *guest) onRejection(promise, reason engine.Value, handled bool) {
	if !handled {
		if len(g.lost) < maxRejections {
			g.lost = append(g.lost, rejection{g.in.Dup(promise), g.in.Dup(reason)})
		}
		return
	}
	if !g.handled(promise) && len(g.found) < maxRejections {
		g.found = append(g.found, rejection{g.in.Dup(promise), g.in.Dup(reason)})
	}
}
