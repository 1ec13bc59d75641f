package node

import (
	"time"

	"edged/control/feed"
	"edged/control/plan"
)

// A member that was removed from its fleet learns it from the plan, or from a voter that it calls once it has been cut off (package peer).
// It serves nothing from then on, for what it would serve nobody can change or take back any more, and what workers wrote nobody would get.

// left is how this node knows that it was removed from the fleet, "" if it does not.
func (f *fleet) left() string {
	if f.peers == nil {
		return ""
	}
	return f.peers.Left()
}

// openGate opens what stands between the plan and this node.
func (n *Node) openGate(cutOff func() (since time.Time, cut bool)) {
	n.fleet.gate = feed.NewGate(n.opt.RevalidateAfter, cutOff, n.usePlan, n.log)
	if how := n.fleet.left(); how != "" {
		n.expelled(how)
	}
}

// expelled takes this node out of service for good. It may be called while a plan is taken into use.
func (n *Node) expelled(how string) {
	n.ready.set("fleet", outOfService(nil))
	n.log.Error("this node was removed from its fleet and serves nothing any more", "how", how,
		"do", "if it shall serve again, let its machine join with an empty data directory and a new invite; else stop it")
	n.fleet.gate.End(func() *plan.Plan { return n.versions.serving.plan })
}
