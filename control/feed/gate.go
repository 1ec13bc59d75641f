package feed

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"edged/control/plan"
)

// gateEvery is how often a Gate looks whether the node is cut off.
const gateEvery = time.Second

// Closed returns d as a node takes it that no longer honours grants that can be revoked (node-surface §2, --revalidate-after): names of
// custom domains are not routed, and versions with secrets are not ready, so that nothing new runs on them. All else is the same. Grants
// of Spaces are asked for at the Host API alone, which a node that is cut off does not answer: no part of a plan stands for them.
func Closed(d *plan.Delta) *plan.Delta {
	out := *d
	out.Hosts = plan.Changes[plan.Host]{Gone: append([]string(nil), d.Hosts.Gone...)}
	for _, h := range d.Hosts.Put {
		if revocableHost(h) {
			out.Hosts.Gone = append(out.Hosts.Gone, h.Name)
		} else {
			out.Hosts.Put = append(out.Hosts.Put, h)
		}
	}
	out.Versions = plan.Changes[plan.Version]{Gone: d.Versions.Gone}
	for _, v := range d.Versions.Put {
		if revocableVersion(v) {
			closed := *v
			closed.Ready = false
			v = &closed
		}
		out.Versions.Put = append(out.Versions.Put, v)
	}
	return &out
}

// Ended returns d as a node takes it that was removed from its fleet: no version is ready, so that nothing new runs, and nothing begins by
// itself. Names stay routed, for their answer is to be that nothing is served here, and not that they are unknown.
func Ended(d *plan.Delta) *plan.Delta {
	out := *d
	out.Versions = plan.Changes[plan.Version]{Gone: d.Versions.Gone}
	for _, v := range d.Versions.Put {
		if v.Ready {
			stopped := *v
			stopped.Ready = false
			v = &stopped
		}
		out.Versions.Put = append(out.Versions.Put, v)
	}
	out.Crons = plan.Changes[plan.Cron]{Gone: append([]string(nil), d.Crons.Gone...)}
	for _, c := range d.Crons.Put {
		out.Crons.Gone = append(out.Crons.Gone, c.UID)
	}
	out.Consumers = plan.Changes[plan.Consumer]{Gone: append([]string(nil), d.Consumers.Gone...)}
	for _, c := range d.Consumers.Put {
		out.Consumers.Gone = append(out.Consumers.Gone, c.UID)
	}
	return &out
}

func revocableHost(h *plan.Host) bool       { return !h.Endpoint }
func revocableVersion(v *plan.Version) bool { return len(v.Secrets) > 0 }

// Gate stands between the plan and a node: it withholds what can be revoked once the node was cut off for too long, and gives it back
// when it is not. Once the node was removed from its fleet it withholds all, for good. All methods are safe for concurrent use.
type Gate struct {
	after  time.Duration
	cutOff func() (since time.Time, cut bool)
	use    func(*plan.Delta)
	log    *slog.Logger

	closed atomic.Bool                       // moves with mu held
	inUse  atomic.Pointer[func() *plan.Plan] // nil until End

	mu     sync.Mutex // also serialises use
	ended  bool       // what was in use at End is in use no more
	grants *plan.Plan // the parts that can be revoked, as they are in the plan
}

// NewGate makes a gate that closes when cutOff (such as Follower.CutOff) has said for longer than after that the node is cut off. use is
// called with one delta at a time, each of which belongs behind the one before.
func NewGate(after time.Duration, cutOff func() (since time.Time, cut bool), use func(*plan.Delta), log *slog.Logger) *Gate {
	g := &Gate{after: after, cutOff: cutOff, use: use, log: log, grants: plan.New()}
	g.closed.Store(g.over()) // also for the last plan of before a restart
	return g
}

func (g *Gate) over() bool {
	since, cut := g.cutOff()
	return cut && time.Since(since) > g.after
}

// Closed reports whether what can be revoked is withheld.
func (g *Gate) Closed() bool { return g.closed.Load() }

// Use gives what changes in the plan to the node.
func (g *Gate) Use(d *plan.Delta) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note(d)
	switch {
	case g.inUse.Load() != nil:
		d = Ended(d)
	case g.closed.Load():
		d = Closed(d)
	}
	g.use(d)
}

// End says that this node was removed from its fleet. Run then takes all out of use, within a second; inUse is asked with nothing else going
// on. It may be called from within use.
func (g *Gate) End(inUse func() *plan.Plan) { g.inUse.Store(&inUse) }

func (g *Gate) note(d *plan.Delta) {
	kept := &plan.Delta{Index: d.Index}
	kept.Hosts.Gone, kept.Versions.Gone = append(kept.Hosts.Gone, d.Hosts.Gone...), append(kept.Versions.Gone, d.Versions.Gone...)
	for _, h := range d.Hosts.Put {
		if revocableHost(h) {
			kept.Hosts.Put = append(kept.Hosts.Put, h)
		} else {
			kept.Hosts.Gone = append(kept.Hosts.Gone, h.Name)
		}
	}
	for _, v := range d.Versions.Put {
		if revocableVersion(v) {
			kept.Versions.Put = append(kept.Versions.Put, v)
		} else {
			kept.Versions.Gone = append(kept.Versions.Gone, v.UID)
		}
	}
	g.grants.Apply(kept)
}

// Run closes and opens the gate until ctx is done.
func (g *Gate) Run(ctx context.Context) error {
	tick := time.NewTicker(gateEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			g.look()
		}
	}
}

func (g *Gate) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if inUse := g.inUse.Load(); inUse != nil {
		if !g.ended {
			g.ended = true
			g.use(Ended((*inUse)().Delta()))
		}
		return
	}
	over := g.over()
	if over == g.closed.Load() {
		return
	}
	g.closed.Store(over)
	all := g.grants.Delta()
	if over {
		g.log.Warn("cut off for too long: custom domains and versions with secrets are withheld", "after", g.after)
		all = Closed(all)
	} else {
		g.log.Info("not cut off any more: what was withheld is served again")
	}
	g.use(all)
}
