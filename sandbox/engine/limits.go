package engine

import (
	"time"

	"edged/sandbox/engine/abi"
	"edged/sandbox/event"
)

// limits is the stop-watch and the budget of one invocation.
type limits struct {
	budget  time.Duration // CPU that was left when the watch started
	used    time.Duration // CPU of this invocation up to the last pause
	started time.Duration // clock reading; meaningful while running
	running bool
	lazy    bool          // the poll started the watch because nobody had
	stop    error         // why the guest must end; sticky
	stopAt  time.Duration // when that was noticed
	last    time.Duration // the previous poll since the watch started
	hurried bool          // a host function brought the next poll forward
}

// stopCause boxes the error of Interrupt for the atomic pointer.
type stopCause struct{ err error }

var epoch = time.Now()

// clock is the monotonic time since the process started.
func clock() time.Duration { return time.Since(epoch) }

// Arm begins an invocation: it may use cpu of active time, nothing interrupts it, and its clock stands still. A guest
// that nobody armed has one second.
func (in *Instance) Arm(cpu time.Duration) {
	in.stopped.Store(nil)
	in.limits = limits{budget: cpu}
}

// Resume starts the CPU clock: the caller is about to run the guest. Bracket several calls with one Resume and one
// Pause. A guest that runs on a stopped clock is still bounded, but time up to its first poll (about 0.1 ms) is not
// counted. It returns the time that it read, which is good for comparing with other times and not for the hour.
func (in *Instance) Resume() time.Time {
	now := clock()
	if !in.limits.running {
		in.limits.running = true
		in.limits.started, in.limits.last = now, now
	}
	return epoch.Add(now)
}

// Pause stops the CPU clock: the guest waits for something. A host function that waits calls it before, and Resume after.
func (in *Instance) Pause() {
	if in.limits.running {
		in.pause(clock())
	}
}

// PauseAt is Pause for a caller who has read the clock since the guest last ran: what passed after now is not the guest's.
func (in *Instance) PauseAt(now time.Time) {
	if in.limits.running {
		in.pause(now.Sub(epoch))
	}
}

func (in *Instance) pause(now time.Duration) {
	ran := now - in.limits.started
	in.limits.used += ran
	in.limits.budget -= ran
	in.limits.running, in.limits.lazy = false, false
}

// CPU returns the active time of this invocation so far.
func (in *Instance) CPU() time.Duration {
	if in.limits.running {
		return in.limits.used + clock() - in.limits.started
	}
	return in.limits.used
}

// Charge counts d of work that was done for this invocation outside of the guest. If that uses the budget up the guest
// is stopped, and the instance has failed with event.ErrCPU. Not to be called from a host function.
func (in *Instance) Charge(d time.Duration) {
	l := &in.limits
	l.used += d
	l.budget -= d
	if l.stop == nil && l.budget < 0 {
		l.stop, l.stopAt = event.ErrCPU, clock()
		in.fail(event.ErrCPU)
	}
}

// Interrupt stops the guest at its next poll, at most about a millisecond away, with cause as the instance's failure; the
// first cause counts. JavaScript cannot catch it, and no finally block runs. A guest that does not run now is stopped
// as soon as it does. Safe for concurrent use; forgotten by Arm and Reset.
func (in *Instance) Interrupt(cause error) {
	in.stopped.CompareAndSwap(nil, &stopCause{cause})
}

// poll is called by the guest every few thousand loop turns and returns 1 to make JavaScript unwind. Native loops do not
// look at the result: after the grace the whole guest call is unwound.
func (in *Instance) poll() uint64 {
	now := clock()
	l := &in.limits
	in.stats.Polls++
	if !l.running {
		l.running, l.lazy = true, true
		l.started, l.last = now, now
	}
	gap := now - l.last
	in.stats.MaxPollGap = max(in.stats.MaxPollGap, gap)
	in.sample(gap)
	l.last = now
	if l.stop == nil {
		if cause := in.stopped.Load(); cause != nil {
			l.stop, l.stopAt = cause.err, now
		} else if now-l.started > l.budget {
			l.stop, l.stopAt = event.ErrCPU, now
		}
	}
	if l.stop == nil {
		if in.Yield != nil && !l.lazy && now-l.started > turn {
			in.Yield()
		}
		return 0
	}
	if now-l.stopAt > in.engine.opt.Grace {
		in.fail(l.stop)
		panic(errUnwind)
	}
	return 1
}

// turn is how long a guest runs at a stretch before it is asked to make room.
const turn = 2 * time.Millisecond

// pollSoon is how much active time may pass between two polls before a host call brings the next one forward.
const pollSoon = 500 * time.Microsecond

// afterHost is called behind every host function. The time that one takes is counted by no loop: without this a guest that
// calls heavy ones in a row would run thousands of them between two polls.
func (in *Instance) afterHost() {
	if in.limits.running && clock()-in.limits.last > pollSoon {
		in.fuel.Set(1)
		in.limits.hurried = true
	}
}

// sample counts the time since the last poll for where the guest is now. A poll that a host function brought forward
// says nothing: the time was the host's.
func (in *Instance) sample(gap time.Duration) {
	inside := in.mark.Get() != 0
	if inside {
		in.mark.Set(0)
	}
	if in.limits.hurried {
		in.limits.hurried = false
		return
	}
	in.stats.Sampled += gap
	if inside {
		in.stats.Interpreter += gap
	}
}

// Overdue reports whether the guest is about to be stopped. A host function that takes long asks between two pieces of
// its work and returns at once if so, whatever it returns.
func (in *Instance) Overdue() bool {
	l := &in.limits
	return l.stop != nil || in.stopped.Load() != nil || l.running && clock()-l.started > l.budget
}

// SetMemoryLimit bounds the JavaScript heap in bytes; 0 takes the bound away. It is part of a snapshot. The instance's
// memory as a whole stays under Options.MaxMemoryBytes in any case.
func (in *Instance) SetMemoryLimit(n int64) {
	if n <= 0 || n > maxMemoryPages*pageBytes {
		n = 0
	}
	in.op(abi.QjsSetMemoryLimit, uint64(n))
}

// HeapBytes returns what the JavaScript heap holds now.
func (in *Instance) HeapBytes() int64 {
	if in.engine.inside.heap && in.failure == nil {
		n, _ := in.u32At(abi.AllocatedSize)
		return int64(n)
	}
	return int64(in.opPtr(abi.QjsGetAllocatedSize))
}

// Stats counts what an instance did since it was made. Resets do not clear it.
type Stats struct {
	Polls       uint64        // times the guest looked whether it must stop
	MaxPollGap  time.Duration // longest active time between two polls
	Sampled     time.Duration // active time between polls that the guest's own steps brought
	Interpreter time.Duration // of it, what ended in the bytecode interpreter and not in a function of the engine or in a worker's WebAssembly
	Resets      uint64
	Scans       uint64 // resets that had to ask the kernel which pages were written
	PagesCopied uint64 // restored by copying
	BytesFreed  uint64 // restored by giving pages back to the system
	LastPages   int    // restored by the last reset, both ways
}

// LastBytes is what the last reset restored: all that was written since the one before, and pages that were written earlier and are still
// the instance's own.
func (s Stats) LastBytes() int64 { return int64(s.LastPages) * int64(pageSize) }

// Stats returns the counters.
func (in *Instance) Stats() Stats { return in.stats }
