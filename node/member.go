package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"edged/control"
	"edged/control/feed"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/life"
	"edged/internal/pki"
	"edged/node/peer"
)

// waitsForVote tells whether this node joined with the role control and the voters have not made it one of them.
func (n *Node) waitsForVote() bool {
	if n.fleet == nil || n.control == nil || !n.fleet.joined {
		return false
	}
	voters, err := n.control.Voters()
	return err == nil && !slices.Contains(voters, n.id)
}

// fresh is when this voter's plan was last known to be the newest; the zero time on a member that has no control room.
func (n *Node) fresh() time.Time {
	if n.control == nil {
		return time.Time{}
	}
	return n.control.Fresh()
}

// cutOff says since when a voter has not heard from the leader of the control room.
func (n *Node) cutOff() (since time.Time, cut bool) {
	if since = n.fresh(); since.Before(n.fleet.began) {
		since = n.fleet.began // a start is no proof, but no reason to withhold anything at once either
	}
	return since, time.Since(since) > voterSilence
}

// voterSilence is how long a voter may not hear from the leader before it counts as cut off.
const voterSilence = 15 * time.Second

// fleetParts are what a member does besides serving: its door, and telling the others where it is.
func (n *Node) fleetParts(parts *life.Stack) {
	f := n.fleet
	if f == nil {
		return
	}
	parts.Push(life.Part{Name: "peer listener", Run: n.doors.early(func(ctx context.Context) error { return f.peers.Run(ctx, n.bound["peer"]) })})
	parts.Push(life.Part{Name: "cut-off gate", Run: f.gate.Run})
	parts.Push(life.Part{Name: "membership", Run: n.tellPlace})
	parts.Push(life.Part{Name: "namespaces", Run: n.tidyNamespaces})
	if n.control != nil {
		parts.Push(life.Part{Name: "serving reports", Run: f.reports.Run})
		parts.Push(life.Part{Name: "leadership", Run: n.handOver})
	}
}

// handOver gives leadership away when the node stops, while its door is open: the others need not miss it first.
func (n *Node) handOver(ctx context.Context) error {
	<-ctx.Done()
	if !n.handing.Load() { // which has done it: now the door is closed, and clients wait
		n.yieldLead()
	}
	return nil
}

// yieldLead gives leadership to another voter if this one has it. It bounds itself.
func (n *Node) yieldLead() {
	if n.fleet == nil || n.control == nil {
		return
	}
	if err := n.control.HandOver(); err != nil && fault.CodeOf(err) != fault.Conflict { // with nobody to give it to
		n.log.Warn("this node stops as the leader", "err", err)
	}
}

// How often the fleet is told where this member is: so long after it has taken that, and first after that when it has not.
const (
	tellEvery = time.Minute
	tellFirst = time.Second
)

// tellPlace tells the fleet where this member is reached, and brings its keys up to date, at the start, when what it says is not what the
// fleet knows, and once in a while.
func (n *Node) tellPlace(ctx context.Context) error {
	if !n.awaitGossip(ctx) {
		return nil
	}
	var last time.Time
	var voters contact
	compared := false
	for wait := tellFirst; ; {
		if n.fleet.left() != "" { // there is nobody to tell
			<-ctx.Done()
			return nil
		}
		if time.Since(last) > tellEvery || !n.placeIsKnown() {
			moved := n.control != nil && n.hasMoved()
			err := n.report(ctx)
			if moved {
				n.tellPlaces(ctx)
			}
			if voters.note(err == nil, time.Now()) && ctx.Err() == nil {
				n.log.Warn("no voter has taken this member's report for some time", "err", err,
					"do", "if the voters have other addresses now, start this node with --join and the peer address of a member that can be reached")
			}
			if err != nil {
				err = errors.Join(err, n.lookForVoters(ctx))
			} else {
				err = n.takeKeys(ctx)
			}
			if err == nil && !compared {
				compared = n.compareSettings(ctx) == nil
			}
			if n.fleet.members.Load() == nil {
				err = errors.Join(err, n.takeKnown(ctx))
			}
			if err == nil {
				last = time.Now()
			} else if ctx.Err() == nil {
				n.log.Debug("the fleet does not take this member's report", "err", err)
			}
			wait = min(2*wait, tellEvery) // also until the plan shows what was told
		} else {
			wait = tellFirst
		}
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// awaitGossip returns when this member gossips, if it is to: what it told before would take its address from the others. false if ctx is done.
func (n *Node) awaitGossip(ctx context.Context) bool {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for n.opt.Gossip != "" && n.stores.kv.GossipAddr() == "" { // one that cannot be had ends the node
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
	return true
}

// place is what this member says of itself.
func (n *Node) place() control.MemberReport {
	epoch, _ := n.stores.kv.Position()
	return control.MemberReport{Peer: addrOf(n.bound, "peer"), Gossip: n.stores.kv.GossipAddr(), Origin: n.opt.ControlOrigin, KVEpoch: uint64(epoch)}
}

func (n *Node) placeIsKnown() bool {
	m, p := n.fleet.known()[n.id], n.place()
	return m != nil && m.Peer == p.Peer && m.Gossip == p.Gossip && m.Origin == p.Origin && m.KVEpoch == p.KVEpoch
}

// report asks the voters to take over this member's place, until one does.
func (n *Node) report(ctx context.Context) error {
	p := n.place()
	if m := n.fleet.known()[n.id]; m != nil {
		p.Labels = m.Labels
	}
	if n.control != nil && n.control.Leader() == n.id {
		return n.control.Report(ctx, n.id, p)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fault.Wrap(fault.Internal, "node.report", err)
	}
	_, err = n.askVoters(ctx, http.MethodPost, control.PathReport, body)
	return err
}

// lacks reports whether the plan has secrets that this member's keys do not open.
func (n *Node) lacks(d *plan.Delta) bool {
	if n.control != nil {
		return n.control.Lacks(d)
	}
	return n.follower.keys.Lacks(d)
}

// gatherKeys is control.FleetOptions.Keys. A leader that lacks keys takes what any other voter keeps, for who led before may have been the
// last with the newest.
func (n *Node) gatherKeys(ctx context.Context) error {
	if n.control.Leader() != n.id {
		return n.takeKeys(ctx)
	}
	var errs []error
	for _, id := range n.fleet.voters() {
		if id == n.id {
			continue
		}
		raw, err := n.askVoter(ctx, http.MethodGet, "https://"+pki.Host(id)+control.PathKept, nil)
		if err == nil {
			err = n.control.TakeRing(raw)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// takeKeys gets the keys of secrets from the leader, which has them.
func (n *Node) takeKeys(ctx context.Context) error {
	if n.control != nil && n.control.Leader() == n.id {
		return nil
	}
	raw, err := n.askVoters(ctx, http.MethodGet, control.PathRing, nil)
	switch {
	case err != nil:
		return err
	case n.control != nil:
		return n.control.TakeRing(raw)
	}
	return n.follower.keys.Take(raw)
}

// takeKnown asks a voter who is in the fleet. A member that waits long for its first plan, as one without its vote does, would else not
// know who joined since, and refuse the voter that leads.
func (n *Node) takeKnown(ctx context.Context) error {
	var errs []error
	for _, id := range n.fleet.voters() {
		if id == n.id {
			continue
		}
		err := n.takeKnownOf(ctx, n.fleet.peers.Client(), "https://"+pki.Host(id)+control.PathKnown)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// maxVoterAnswer bounds what a voter may send, in bytes.
const maxVoterAnswer = fleetwire.MaxJoinAnswer

// askVoters asks one voter after the other until one answers with success.
func (n *Node) askVoters(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	var errs []error
	for _, id := range n.fleet.voters() {
		if id == n.id {
			continue
		}
		raw, err := n.askVoter(ctx, method, "https://"+pki.Host(id)+path, body)
		if err == nil {
			return raw, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil, fault.New(fault.Unavailable, "node.fleet", "no other voter is known")
	}
	return nil, errors.Join(errs...)
}

func (n *Node) askVoter(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	return n.askMember(ctx, n.fleet.peers.Client(), method, url, body)
}

func (n *Node) askMember(ctx context.Context, c *http.Client, method, url string, body []byte) ([]byte, error) {
	const op = "node.askVoter"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, op, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, op, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, fleetwire.ReadError(op, resp.StatusCode, resp.Body)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxVoterAnswer+1))
	if err == nil && len(raw) > maxVoterAnswer {
		err = errors.New("the answer is too long")
	}
	return raw, fault.Wrap(fault.Unavailable, op, err)
}

// mountPeers registers what the other members may ask of this one.
func (n *Node) mountPeers() {
	f := n.fleet
	if f == nil {
		return
	}
	f.peers.Handle("/plan/v1/", f.server.Handler())
	f.peers.Handle("/blob/v1/", feed.Blobs(n.artifacts))
	f.peers.Handle("/kv/v1/", n.stores.kv.Handler())
	f.peers.Handle("POST "+pathPlaces, http.HandlerFunc(n.takePlaces))
	if n.control != nil {
		f.peers.Handle("/control/v1/", n.control.PeerHandler())
		f.peers.Handle("/fleet/v1/", n.control.FleetHandler(peer.Caller))
	} else {
		f.peers.Handle("/control/v1/hands/", n.follower.hands)
		f.peers.Handle("GET "+control.PathKnown, http.HandlerFunc(f.servePlaces))
	}
}
