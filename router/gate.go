package router

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"edged/router/table"
	"edged/sandbox/event"
)

// gate admits invocations: at most max at work and maxWait waiting. Free places cost one compare-and-swap and the counts of
// worker and tenant. When there are none, each worker has its own queue (gate_queue.go): tenants take turns, and the
// workers of a tenant do, so that one worker's rush delays its own requests and not everyone's; when all waiting room is
// taken, the longest queue gives up its newest. A queue that stands takes only as many as it will soon admit (pace.go).
// The oldest of a queue is first: ten times what fits, in virtual time, were served within 0.24 s (p50) and 0.44 s (p99), and
// of those that were refused 4 % had waited. The newest first serves at once (p50 0.5 ms) and just as many, but its oldest
// wait out the whole timeout: p99 was 2.8 s a little over what fits.
//
// The caps of workers and tenants keep places for the others, because a place that is held cannot be taken back. They are
// looked at before a place is taken, so that requests of the same instant may exceed them by as many as there are threads.
type gate struct {
	gateLimits
	metrics *Metrics

	busy    atomic.Int64
	streams atomic.Int64
	waiting atomic.Int64 // waiters in the queues; changed under mu only
	shut    atomic.Int64 // Unix nanoseconds since when nothing is admitted, 0: it is open

	mu    sync.Mutex // guards what follows
	lines lines
}

// gateLimits are constant.
type gateLimits struct {
	max, perWorker, perTenant                    int64 // places
	maxWait, waitWorker, waitTenant              int   // waiters
	maxStreams, streamsOfWorker, streamsOfTenant int64
	timeout                                      time.Duration // how long anybody waits
}

// gateLimits fills in what the options leave to the gate: a worker's and a tenant's share of the waiting room and of the
// streams is what it is of the places.
func (o *Options) gateLimits() gateLimits {
	l := gateLimits{max: int64(o.MaxInflight), perWorker: int64(o.MaxWorkerInflight), perTenant: int64(o.MaxTenantInflight),
		maxWait: o.MaxQueue, maxStreams: int64(o.MaxStreams), timeout: o.QueueTimeout}
	share := func(of, part int64) int64 { return max(1, (of*part+l.max-1)/l.max) }
	l.waitWorker = int(share(int64(l.maxWait), l.perWorker))
	l.waitTenant = int(share(int64(l.maxWait), l.perTenant))
	l.streamsOfWorker, l.streamsOfTenant = share(l.maxStreams, l.perWorker), share(l.maxStreams, l.perTenant)
	return l
}

// enter waits for a place for the worker. It returns nil, event.ErrOverloaded, or the context's error.
func (g *gate) enter(ctx context.Context, p *table.Party) error {
	if g.waiting.Load() == 0 && g.shut.Load() == 0 && g.hasRoom(p) && g.take() {
		hold(p, 1)
		return nil
	}
	return g.wait(ctx, p)
}

// hasRoom reports whether the caps of the worker and its tenant allow another place.
func (g *gate) hasRoom(p *table.Party) bool {
	return p.Held.Load() < g.perWorker && (p.Tenant == nil || p.Tenant.Held.Load() < g.perTenant)
}

func hold(p *table.Party, n int64) {
	p.Held.Add(n)
	if p.Tenant != nil {
		p.Tenant.Held.Add(n)
	}
}

func (g *gate) take() bool {
	for {
		n := g.busy.Load()
		if n >= g.max {
			return false
		}
		if g.busy.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave gives a place back.
func (g *gate) leave(p *table.Party) {
	hold(p, -1)
	g.busy.Add(-1)
	// A waiter counts itself before it looks at what is free, so either it sees the free place or we see the waiter.
	if g.waiting.Load() > 0 {
		g.mu.Lock()
		g.lines.wake(p)
		g.dispatchLocked(time.Now())
		g.mu.Unlock()
	}
}

// waiter is one request in a queue.
type waiter struct {
	admitted chan bool // capacity 1: true admits, false refuses
}

func (g *gate) wait(ctx context.Context, p *table.Party) error {
	w, why := g.enqueue(p)
	if why != admits {
		g.metrics.refused[why].Inc()
		return event.ErrOverloaded
	}
	if w == nil {
		return nil
	}
	timer := time.NewTimer(g.timeout)
	defer timer.Stop()
	err := error(event.ErrOverloaded)
	select {
	case ok := <-w.admitted:
		if !ok {
			g.metrics.refused[refusedGivenUp].Inc()
			return err
		}
		return nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !g.forget(p, w) && <-w.admitted {
		g.leave(p) // admitted while we gave up
	}
	if ctx.Err() == nil {
		g.metrics.refused[refusedTimeout].Inc()
	}
	return err
}

// Why a request was refused; labels of a metric.
const (
	admits         = ""
	refusedFull    = "full"     // no room to wait
	refusedShare   = "share"    // the worker's or the tenant's share of that room is taken
	refusedSlow    = "slow"     // it would have waited too long
	refusedGivenUp = "given_up" // it waited, and others had a better right to the room
	refusedTimeout = "timeout"  // it waited too long
	refusedMemory  = "memory"   // the node is short of memory
)

// enqueue finds a place for the request, or one to wait in: w is nil for the former.
func (g *gate) enqueue(p *table.Party) (w *waiter, why string) {
	if g.shut.Load() != 0 {
		return nil, refusedMemory
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lines.idle() && !g.lines.has(p) && g.hasRoom(p) && g.take() { // others wait, but none that could have it
		hold(p, 1)
		return nil, admits
	}
	now := time.Now()
	own, tenant := g.lines.lengths(p)
	if own >= g.waitWorker || tenant >= g.waitTenant {
		return nil, refusedShare
	}
	if q := g.lines.workers[p]; q != nil && q.pace.wait(now, own) > q.pace.limit(now, g.timeout) {
		g.shortenLocked(q, now)
		return nil, refusedSlow
	}
	if int(g.waiting.Load()) >= g.maxWait && !g.evictLocked(p) {
		return nil, refusedFull
	}
	w = &waiter{admitted: make(chan bool, 1)}
	g.lines.push(p, w, now)
	g.setWaitingLocked(1)
	g.dispatchLocked(now) // a place may have become free since take failed
	return w, admits
}

// shortenLocked refuses the newest of a queue that has begun to stand while it was long.
func (g *gate) shortenLocked(q *workerQueue, now time.Time) {
	most := q.pace.limit(now, g.timeout)
	for n := len(q.waiters); n > 1 && q.pace.wait(now, n-1) > most; n-- {
		g.lines.giveUpNewest(q)
		g.setWaitingLocked(-1)
	}
}

// evictLocked makes room for one more of p by refusing the newest of the longest queue, if anybody is better off.
func (g *gate) evictLocked(p *table.Party) bool {
	q := g.lines.longest(p)
	if q == nil {
		return false
	}
	g.lines.giveUpNewest(q)
	g.setWaitingLocked(-1)
	return true
}

// dispatchLocked admits waiters while there are places.
func (g *gate) dispatchLocked(now time.Time) {
	for {
		q := g.lines.next(g.hasRoomLocked)
		if q == nil || !g.take() {
			return
		}
		hold(q.party, 1)
		w := g.lines.pop(q, now)
		g.setWaitingLocked(-1)
		w.admitted <- true
	}
}

// hasRoomLocked is hasRoom for those that say which of the two it is.
func (g *gate) hasRoomLocked(p *table.Party) (worker, tenant bool) {
	return p.Held.Load() < g.perWorker, p.Tenant == nil || p.Tenant.Held.Load() < g.perTenant
}

// forget removes a waiter that gave up; false if it was already answered.
func (g *gate) forget(p *table.Party, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.lines.remove(p, w) {
		return false
	}
	g.setWaitingLocked(-1)
	return true
}

func (g *gate) setWaitingLocked(delta int64) {
	g.metrics.waiting.Set(float64(g.waiting.Add(delta)))
}

// setShut closes the gate for everybody new, or opens it. Waiters go on: what runs has to end for memory to come back.
func (g *gate) setShut(shut bool) {
	switch {
	case !shut:
		g.shut.Store(0)
	case g.shut.Load() == 0:
		g.shut.Store(time.Now().UnixNano())
	}
}

// detach gives a place back for a stream that lasts, and counts it among the streams instead; false if those are too many.
// endStream ends it.
func (g *gate) detach(p *table.Party) bool {
	if p.Streams.Load() >= g.streamsOfWorker || p.Tenant != nil && p.Tenant.Streams.Load() >= g.streamsOfTenant {
		return false
	}
	if g.streams.Add(1) > g.maxStreams {
		g.streams.Add(-1)
		return false
	}
	g.countStream(p, 1)
	g.leave(p)
	return true
}

func (g *gate) endStream(p *table.Party) {
	g.streams.Add(-1)
	g.countStream(p, -1)
}

func (g *gate) countStream(p *table.Party, n int64) {
	g.metrics.streams.Add(float64(n))
	if p.Streams.Add(n); p.Tenant != nil {
		p.Tenant.Streams.Add(n)
	}
}

// longestRetry bounds what a client is told to wait, in seconds, before half of it again at random.
const longestRetry = 10

// retryAfter is how many seconds a refused client should stay away: the longer the worker's queue has stood, the longer,
// and not all of them the same, so that they do not come back together.
func (g *gate) retryAfter(p *table.Party) int {
	var since time.Time
	if shut := g.shut.Load(); shut != 0 {
		since = time.Unix(0, shut)
	} else {
		g.mu.Lock()
		if q := g.lines.workers[p]; q != nil {
			since = q.pace.since
		}
		g.mu.Unlock()
	}
	base := 1
	if !since.IsZero() {
		base = min(max(1, int(time.Since(since)/(2*time.Second))), longestRetry)
	}
	return base + rand.IntN(base+1)
}
