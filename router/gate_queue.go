package router

import (
	"slices"
	"time"

	"edged/router/table"
)

// lines are the queues of those who wait for a place: one for each worker, those of a tenant's workers taking turns among
// themselves, and the tenants among each other. A queue whose worker or tenant may hold no more stands aside until wake.
// Not safe for concurrent use.
type lines struct {
	workers map[*table.Party]*workerQueue // not empty ones
	tenants map[*table.Party]*tenantQueue // those that have any; nil is the tenant of workers that name none
	turn    []*tenantQueue                // those in line; the first is next
}

type tenantQueue struct {
	party   *table.Party
	queues  []*workerQueue // all of them
	turn    []*workerQueue // those in line; the first is next
	waiting int            // of all
	inLine  bool           // it stands in lines.turn; then turn is not empty
}

type workerQueue struct {
	party   *table.Party
	tenant  *tenantQueue
	waiters []*waiter // oldest first
	pace    pace
	inLine  bool // it stands in tenant.turn
}

// idle reports whether nobody waits who could be admitted.
func (l *lines) idle() bool { return len(l.turn) == 0 }

func (l *lines) has(p *table.Party) bool { return l.workers[p] != nil }

// lengths returns how many of the worker wait, and of its tenant; workers that name no tenant have no count in common.
func (l *lines) lengths(p *table.Party) (worker, tenant int) {
	if q := l.workers[p]; q != nil {
		worker = len(q.waiters)
	}
	if t := l.tenants[p.Tenant]; t != nil && p.Tenant != nil {
		tenant = t.waiting
	}
	return worker, tenant
}

// push puts a waiter at the end of its worker's queue.
func (l *lines) push(p *table.Party, w *waiter, now time.Time) {
	if l.workers == nil {
		l.workers, l.tenants = map[*table.Party]*workerQueue{}, map[*table.Party]*tenantQueue{}
	}
	t := l.tenants[p.Tenant]
	if t == nil {
		t = &tenantQueue{party: p.Tenant}
		l.tenants[p.Tenant] = t
	}
	q := l.workers[p]
	if q == nil {
		q = &workerQueue{party: p, tenant: t, pace: newPace(now)}
		l.workers[p] = q
		t.queues = append(t.queues, q)
		l.line(q)
	}
	q.waiters = append(q.waiters, w)
	t.waiting++
}

// line puts a queue, and its tenant, in line.
func (l *lines) line(q *workerQueue) {
	t := q.tenant
	if !q.inLine {
		q.inLine = true
		t.turn = append(t.turn, q)
	}
	l.lineTenant(t)
}

func (l *lines) lineTenant(t *tenantQueue) {
	if !t.inLine && len(t.turn) > 0 {
		t.inLine = true
		l.turn = append(l.turn, t)
	}
}

// wake puts what stood aside back in line, because the worker and its tenant have given a place back.
func (l *lines) wake(p *table.Party) {
	if q := l.workers[p]; q != nil {
		l.line(q)
	}
	if t := l.tenants[p.Tenant]; t != nil {
		l.lineTenant(t)
	}
}

// next returns the queue whose turn it is, nil if none in line may have a place. Those that may not are put aside.
func (l *lines) next(hasRoom func(*table.Party) (worker, tenant bool)) *workerQueue {
	for len(l.turn) > 0 {
		t := l.turn[0]
		q := t.turn[0]
		worker, tenant := hasRoom(q.party)
		switch {
		case !tenant:
			l.turn, t.inLine = l.turn[1:], false
		case !worker:
			t.turn, q.inLine = t.turn[1:], false
			if len(t.turn) == 0 {
				l.turn, t.inLine = l.turn[1:], false
			}
		default:
			return q
		}
	}
	return nil
}

// pop takes the oldest of the queue that next has returned; queue and tenant go to the end of their lines.
func (l *lines) pop(q *workerQueue, now time.Time) *waiter {
	t := q.tenant
	w := q.waiters[0]
	q.waiters[0] = nil
	q.waiters = q.waiters[1:]
	q.pace.admitted(now)
	t.waiting--
	l.turn, t.turn = l.turn[1:], t.turn[1:]
	t.inLine, q.inLine = false, false
	if len(q.waiters) > 0 {
		l.line(q)
	} else {
		l.drop(q)
	}
	return w
}

// drop forgets an empty queue that is not in line; its tenant is not either.
func (l *lines) drop(q *workerQueue) {
	t := q.tenant
	delete(l.workers, q.party)
	i := slices.Index(t.queues, q)
	t.queues = slices.Delete(t.queues, i, i+1)
	if len(t.queues) == 0 {
		delete(l.tenants, t.party)
		return
	}
	l.lineTenant(t)
}

// remove takes a waiter out wherever it stands; false if it is in no queue.
func (l *lines) remove(p *table.Party, w *waiter) bool {
	q := l.workers[p]
	if q == nil {
		return false
	}
	i := slices.Index(q.waiters, w)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	t := q.tenant
	t.waiting--
	if len(q.waiters) > 0 {
		return true
	}
	if i := slices.Index(t.turn, q); i >= 0 {
		t.turn, q.inLine = slices.Delete(t.turn, i, i+1), false
	}
	if i := slices.Index(l.turn, t); i >= 0 && len(t.turn) == 0 {
		l.turn, t.inLine = slices.Delete(l.turn, i, i+1), false
	}
	l.drop(q)
	return true
}

// longest returns the queue that should give up its newest for one more of p: the longest of the tenant with most waiters,
// nil if that is not longer afterwards than p's would be.
func (l *lines) longest(p *table.Party) *workerQueue {
	own, of := 0, 0
	if q := l.workers[p]; q != nil {
		own = len(q.waiters)
	}
	mine := l.tenants[p.Tenant]
	if mine != nil {
		of = mine.waiting
	}
	most := mine
	for _, t := range l.tenants {
		if t != mine && t.waiting > of+1 && (most == nil || most == mine || t.waiting > most.waiting) {
			most = t
		}
	}
	if most == nil {
		return nil
	}
	var longest *workerQueue
	for _, q := range most.queues {
		if longest == nil || len(q.waiters) > len(longest.waiters) {
			longest = q
		}
	}
	if most == mine && len(longest.waiters) <= own+1 {
		return nil
	}
	return longest
}

// giveUpNewest refuses the newest of a queue.
func (l *lines) giveUpNewest(q *workerQueue) {
	w := q.waiters[len(q.waiters)-1]
	w.admitted <- false
	l.remove(q.party, w)
}
