package router

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"edged/sandbox/event"
)

// gate admits invocations: at most max at work and maxWait waiting. Free places cost one compare-and-swap. When there are
// none, each worker has its own queue and the queues take turns, so that one worker's rush delays its own requests and
// not everyone's; when all waiting room is taken, the longest queue gives up its newest.
type gate struct {
	max     int64
	maxWait int
	timeout time.Duration
	metrics *Metrics

	busy    atomic.Int64
	waiting atomic.Int64 // waiters in the queues; changed under mu only

	mu     sync.Mutex // guards the fields below
	queues map[string]*workerQueue
	turn   []*workerQueue // queues that are not empty; the first is next
}

type workerQueue struct {
	worker  string
	waiters []*waiter // oldest first
}

type waiter struct {
	admitted chan bool // capacity 1: true admits, false refuses
}

// enter waits for a place for the worker. It returns nil, event.ErrOverloaded, or the context's error.
func (g *gate) enter(ctx context.Context, worker string) error {
	if g.waiting.Load() == 0 && g.take() {
		return nil
	}
	return g.wait(ctx, worker)
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
func (g *gate) leave() {
	g.busy.Add(-1)
	// A waiter counts itself before it looks at busy, so either it sees the free place or we see the waiter.
	if g.waiting.Load() > 0 {
		g.mu.Lock()
		g.dispatchLocked()
		g.mu.Unlock()
	}
}

func (g *gate) wait(ctx context.Context, worker string) error {
	w := &waiter{admitted: make(chan bool, 1)}
	if !g.enqueue(worker, w) {
		return event.ErrOverloaded
	}
	timer := time.NewTimer(g.timeout)
	defer timer.Stop()
	var err error
	select {
	case ok := <-w.admitted:
		if !ok {
			return event.ErrOverloaded
		}
		return nil
	case <-timer.C:
		err = event.ErrOverloaded
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !g.forget(worker, w) && <-w.admitted {
		g.leave() // admitted while we gave up
	}
	return err
}

func (g *gate) enqueue(worker string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[worker]
	if int(g.waiting.Load()) >= g.maxWait && !g.evictLocked(q) {
		return false
	}
	if q = g.queues[worker]; q == nil {
		q = &workerQueue{worker: worker}
		if g.queues == nil {
			g.queues = make(map[string]*workerQueue)
		}
		g.queues[worker] = q
		g.turn = append(g.turn, q)
	}
	q.waiters = append(q.waiters, w)
	g.setWaitingLocked(1)
	g.dispatchLocked() // a place may have become free since take failed
	return true
}

// evictLocked makes room for one more in q by refusing the newest of the longest queue. It does so only if that queue
// stays at least as long as q becomes.
func (g *gate) evictLocked(q *workerQueue) bool {
	own := 0
	if q != nil {
		own = len(q.waiters)
	}
	var longest *workerQueue
	for _, other := range g.turn {
		if longest == nil || len(other.waiters) > len(longest.waiters) {
			longest = other
		}
	}
	if longest == nil || len(longest.waiters) <= own+1 {
		return false
	}
	last := len(longest.waiters) - 1
	longest.waiters[last].admitted <- false
	longest.waiters[last] = nil
	longest.waiters = longest.waiters[:last]
	g.setWaitingLocked(-1)
	return true
}

// dispatchLocked admits waiters while there are places: one of each queue in turn.
func (g *gate) dispatchLocked() {
	for len(g.turn) > 0 && g.take() {
		q := g.turn[0]
		g.turn = g.turn[1:]
		w := q.waiters[0]
		q.waiters[0] = nil
		q.waiters = q.waiters[1:]
		if len(q.waiters) == 0 {
			delete(g.queues, q.worker)
		} else {
			g.turn = append(g.turn, q)
		}
		g.setWaitingLocked(-1)
		w.admitted <- true
	}
}

// forget removes a waiter that gave up; false if it was already answered.
func (g *gate) forget(worker string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[worker]
	if q == nil {
		return false
	}
	for i, other := range q.waiters {
		if other != w {
			continue
		}
		q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
		if len(q.waiters) == 0 {
			delete(g.queues, worker)
			for i, t := range g.turn {
				if t == q {
					g.turn = append(g.turn[:i], g.turn[i+1:]...)
					break
				}
			}
		}
		g.setWaitingLocked(-1)
		return true
	}
	return false
}

func (g *gate) setWaitingLocked(delta int64) {
	g.metrics.waiting.Set(float64(g.waiting.Add(delta)))
}
