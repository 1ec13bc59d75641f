package main

import "time"

// How a supervisor watches and restarts.
const (
	beatEvery     = 250 * time.Millisecond // the child's heartbeat
	looks         = 10                     // a child is frozen after so many looks without one
	frozenLeast   = time.Second            // the shortest --frozen-after
	backOffFirst  = 100 * time.Millisecond
	backOffMost   = 30 * time.Second
	steadyService = time.Minute // a child that served so long starts the back-off anew
)

// watchdog decides about the serving process: whether it is frozen, and what its end means. It is pure; the supervisor
// feeds it.
type watchdog struct {
	served  bool // some child has served: from then on an end is a crash and not a start that failed
	stop    bool // somebody wants the node to stop
	silent  int  // looks without a heartbeat
	crashes int  // in a row
}

// look is told regularly whether a heartbeat came since the last time, and says whether the child is frozen. It counts
// looks, not time: a supervisor that was itself stopped for a while, or a machine that slept, accuses nobody.
func (w *watchdog) look(beat bool) (frozen bool) {
	if beat {
		w.silent = 0
		return false
	}
	w.silent++
	return w.silent >= looks
}

// childEnd is how a serving process ended.
type childEnd struct {
	code   int           // its exit code; negative if a signal ended it
	ready  bool          // it had begun to serve
	served time.Duration // since then
}

// ended says what the end of the child means: a restart after a pause, or the end of the supervisor with a code.
func (w *watchdog) ended(e childEnd) (restart bool, pause time.Duration, code int) {
	w.silent = 0
	w.served = w.served || e.ready
	switch {
	case e.code == 0:
		return false, 0, 0
	case w.stop || !w.served && e.code > 0: // a start that fails by itself would fail again
		if e.code < 0 {
			return false, 0, exitFailed
		}
		return false, 0, e.code
	}
	if e.ready && e.served >= steadyService {
		w.crashes = 0
	}
	pause = min(backOffFirst<<min(w.crashes, 20), backOffMost)
	w.crashes++
	return true, pause, 0
}
