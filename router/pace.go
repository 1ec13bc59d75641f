package router

import "time"

// pace tells how long one who joins a queue would wait, from how its waiters were admitted so far. Pure: the clock is a
// parameter. Its use is that a request which would be refused in the end is refused at once, and that a queue which does
// not empty is kept short: as many are served from a short one, and each of them sooner.
type pace struct {
	since time.Time     // when the queue came to be; it has never been empty since
	last  time.Time     // when it last lost one to a place; at first since
	took  time.Duration // what the admissions of about paceMemory took,
	count int           // and how many those were
}

const (
	paceMemory = 2 * time.Second // places come free in bursts: a few gaps tell nothing
	paceKnown  = 8               // admissions after which a guess is worth something
	burst      = 10              // a queue is a burst for this part of the timeout; then it stands
	standing   = 20              // and who joins it must be admitted in this part
)

func newPace(now time.Time) pace { return pace{since: now, last: now} }

// admitted notes that the queue's first was given a place.
func (p *pace) admitted(now time.Time) {
	p.took += max(0, now.Sub(p.last))
	p.count++
	p.last = now
	if p.took > paceMemory && p.count > 2*paceKnown {
		p.took, p.count = p.took/2, p.count/2
	}
}

// wait estimates how long one waits that has so many ahead of it. Before enough were admitted all that is known is how long
// the queue has been there.
func (p *pace) wait(now time.Time, ahead int) time.Duration {
	if p.count < paceKnown {
		return max(0, now.Sub(p.since))
	}
	since := max(0, now.Sub(p.last))
	gap := max(p.took/time.Duration(p.count), (p.took+since)/time.Duration(p.count+1))
	return time.Duration(ahead+1) * gap
}

// limit is how long one may have to wait that joins now. Bursts may take the whole timeout.
func (p *pace) limit(now time.Time, timeout time.Duration) time.Duration {
	if now.Sub(p.since) < timeout/burst {
		return timeout
	}
	return timeout / standing
}
