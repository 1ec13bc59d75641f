package router

import "time"

// pace tells how long one who joins a queue would wait, from how its waiters were admitted so far. Pure: the clock is a
// parameter. Its use is that a request which would be refused in the end is refused at once, and that a queue which does
// not empty is kept short: as many are served from a short one, and each of them sooner.
type pace struct {
	since time.Time     // when the queue came to be; it has never been empty since
	last  time.Time     // when it last lost one to a place; at first since
	gap   time.Duration // between two such, smoothed; 0 before the first
}

const (
	paceWeight = 16 // of what was known before, against one more gap
	burst      = 10 // a queue is a burst for this part of the timeout; then it stands
	standing   = 20 // and who joins it must be admitted in this part
)

func newPace(now time.Time) pace { return pace{since: now, last: now} }

// admitted notes that the queue's first was given a place.
func (p *pace) admitted(now time.Time) {
	d := max(0, now.Sub(p.last))
	p.last = now
	if p.gap == 0 {
		p.gap = d
	} else {
		p.gap += (d - p.gap) / paceWeight
	}
}

// wait estimates how long one waits that has so many ahead of it. Before the first admission all that is known is how long
// that has taken.
func (p *pace) wait(now time.Time, ahead int) time.Duration {
	stalled := max(0, now.Sub(p.last)-p.gap)
	return stalled + time.Duration(ahead+1)*p.gap
}

// limit is how long one may have to wait that joins now. Bursts may take the whole timeout.
func (p *pace) limit(now time.Time, timeout time.Duration) time.Duration {
	if now.Sub(p.since) < timeout/burst {
		return timeout
	}
	return timeout / standing
}
