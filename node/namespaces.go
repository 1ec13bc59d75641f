package node

import (
	"context"
	"sync"
	"time"

	"edged/control/plan"
	"edged/internal/fault"
)

// planned are the KV namespaces of the plan in use here.
type planned struct {
	mu   sync.Mutex // held while namespaces are made and deleted
	uids map[string]bool
}

// applyData makes the namespaces of the plan's KV Resources on this member, and deletes those that are gone: each member has all of them.
// What has one home is made there by the leader of the control room.
func (n *Node) applyData(d *plan.Delta) {
	if n.fleet == nil {
		return
	}
	p := &n.fleet.planned
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.uids == nil {
		p.uids = map[string]bool{}
	}
	ctx := context.Background() // a durable write each
	for _, x := range d.Data.Put {
		if x.Kind == "kv" {
			p.uids[x.UID] = true
			if err := n.stores.kv.Create(ctx, x.UID, homeEpoch); err != nil {
				n.log.Error("a namespace was not made here", "uid", x.UID, "err", err, "do", fault.CheckDisk)
			}
		}
	}
	for _, uid := range d.Data.Gone {
		delete(p.uids, uid)
		if n.stores.kv.Exists(uid) {
			if err := n.stores.kv.Delete(ctx, uid); err != nil {
				n.log.Error("a namespace was not deleted here", "uid", uid, "err", err, "do", fault.CheckDisk)
			}
		}
	}
}

// tidyEvery is how often it is looked whether the plan is current by now.
const tidyEvery = time.Second

// tidyNamespaces deletes, once after a start, what was left by a process that died between saving a plan and using it: the plan's next
// change says nothing of a namespace that was gone before. It waits for a plan that is known to be the newest since the start; a namespace
// once deleted never comes back, so a plan that could not be saved or read must not decide.
func (n *Node) tidyNamespaces(ctx context.Context) error {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for n.planOfBefore() {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	n.deleteUnplanned(ctx, n.stores.kv.Namespaces())
	<-ctx.Done()
	return nil
}

// planOfBefore reports whether the plan in use may be older than what the fleet had when this process started.
func (n *Node) planOfBefore() bool {
	select {
	case <-n.planned:
	default:
		return true
	}
	if n.control != nil {
		return !n.control.Ready()
	}
	since, cut := n.follower.feed.CutOff()
	return cut || since.Before(n.fleet.began)
}

// deleteUnplanned deletes those of the namespaces that are neither in the plan nor, on a voter, in the state: there they are made before
// the plan has them.
func (n *Node) deleteUnplanned(ctx context.Context, here []string) {
	p := &n.fleet.planned
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uid := range here {
		if p.uids[uid] || n.control != nil && n.control.Knows(uid) {
			continue
		}
		if err := n.stores.kv.Delete(ctx, uid); err != nil {
			n.log.Error("a namespace that the plan does not have is left here", "uid", uid, "err", err, "do", fault.CheckDisk)
			continue
		}
		n.log.Info("deleted a namespace that was gone from the plan before this node started", "uid", uid)
	}
}
