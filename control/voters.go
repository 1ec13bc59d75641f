package control

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"edged/internal/fault"
)

// maxVoters bounds how many nodes vote: each one more makes every command wait for more disks.
const maxVoters = 5

// changeTimeout bounds the wait for a place in raft's queue for a change of the voters; its commit is waited for.
const changeTimeout = 10 * time.Second

// Voters returns the members that vote about the control log, in ascending order, as far as this one knows. Unavailable before Run.
func (c *Control) Voters() ([]string, error) { return c.voters() }

// Leader returns the member that leads the control room, as far as this one knows; "" if it knows of none.
func (c *Control) Leader() string { return c.leader() }

func (c *Control) voters() ([]string, error) {
	servers, err := c.servers()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	slices.Sort(out)
	return out, nil
}

// servers returns everybody who gets the log.
func (c *Control) servers() ([]raft.Server, error) {
	r := c.raft.Load()
	if r == nil {
		return nil, fault.New(fault.Unavailable, "control.Voters", "the control room is starting")
	}
	future := r.GetConfiguration()
	if err := future.Error(); err != nil {
		return nil, raftFault("control.Voters", err)
	}
	return future.Configuration().Servers, nil
}

// AddVoter makes a member a voter of the control log and returns when it is one. It votes only once it has the whole state, so that a
// member that cannot be reached stops nothing. It is called on the leader and may be repeated. Errors: Unavailable if this node does not
// lead, or the member did not come up within ctx, which leaves the voters as they were; Conflict if there are five already.
func (c *Control) AddVoter(ctx context.Context, member string) error {
	const op = "control.AddVoter"
	if c.opt.Fleet == nil {
		return fault.New(fault.Conflict, op, "this node has no way to other nodes: start it with --peer")
	}
	if err := c.confirm(ctx); err != nil {
		return err
	}
	voters, err := c.voters()
	switch {
	case err != nil:
		return err
	case slices.Contains(voters, member):
		return nil
	case len(voters) >= maxVoters:
		return fault.Newf(fault.Conflict, op, "there are %d voters already; remove one first", len(voters))
	}
	r := c.raft.Load()
	if err := r.AddNonvoter(raft.ServerID(member), raft.ServerAddress(member), 0, changeTimeout).Error(); err != nil {
		return raftFault(op, err)
	}
	if err := c.awaitReached(ctx, member, c.machine.applied.at()); err != nil {
		if gone := r.RemoveServer(raft.ServerID(member), 0, changeTimeout).Error(); gone != nil {
			c.opt.Log.Warn("a member that did not become a voter still gets the log", "node", member, "err", gone)
		}
		return because(fault.Newf(fault.Unavailable, op, "node %s did not get the control state in time, so it is no voter; is it running with the role control?", member), err)
	}
	if err := r.AddVoter(raft.ServerID(member), raft.ServerAddress(member), 0, changeTimeout).Error(); err != nil {
		return raftFault(op, err)
	}
	c.opt.Log.Info("a node votes about the control log", "node", member)
	return nil
}

// awaitReached waits until a member's state holds the command with this index.
func (c *Control) awaitReached(ctx context.Context, member string, index uint64) error {
	for wait := firstRetry; ; wait = min(2*wait, time.Second) {
		err := c.hasReached(ctx, member, index)
		if err == nil {
			return nil
		}
		if !pause(ctx, wait) {
			return because(ctx.Err(), err)
		}
	}
}

func (c *Control) hasReached(ctx context.Context, member string, index uint64) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return c.opt.Fleet.ask(ctx, member, "reached", position{index}, &position{})
}

// HandOver gives leadership to another voter and returns when that one leads, so that nobody has to find out first that this node went
// away. On a node that does not lead it does nothing. Errors: Conflict for the only voter, Unavailable if no other took over.
func (c *Control) HandOver() error {
	const op = "control.HandOver"
	if c.opt.Fleet == nil || c.leading.Load() == 0 {
		return nil
	}
	switch voters, err := c.voters(); {
	case err != nil:
		return err
	case len(voters) < 2:
		return fault.New(fault.Conflict, op, "this node is the only voter; add another one first")
	}
	if err := c.passLeadership(); err != nil {
		return because(fault.New(fault.Unavailable, op, "no other voter took over from this node; retry"), err)
	}
	return nil
}

// RemoveVoter takes a member's vote, and its copy of the log, away and returns when that is decided. It is called on the leader, also to
// remove the leader itself, and may be repeated. Errors: Unavailable if this node does not lead; Conflict for the last voter, and while so
// few of those that would be left can be reached that they could decide nothing.
func (c *Control) RemoveVoter(ctx context.Context, member string) error {
	const op = "control.RemoveVoter"
	if err := c.confirm(ctx); err != nil {
		return err
	}
	voters, err := c.voters()
	if err != nil {
		return err
	}
	if slices.Contains(voters, member) {
		left := slices.DeleteFunc(voters, func(id string) bool { return id == member })
		if len(left) == 0 {
			return fault.Newf(fault.Conflict, op, "node %s is the only voter; add another one first", member)
		}
		up := 0
		for _, id := range left {
			if id == c.opt.NodeID || c.hasReached(ctx, id, 0) == nil {
				up++
			}
		}
		if up < len(left)/2+1 {
			return fault.Newf(fault.Conflict, op, "only %d of the %d voters that would be left can be reached: they could not decide anything", up, len(left))
		}
	}
	if err := c.raft.Load().RemoveServer(raft.ServerID(member), 0, changeTimeout).Error(); err != nil {
		return raftFault(op, err)
	}
	c.opt.Log.Info("a node votes about the control log no more", "node", member)
	return nil
}
