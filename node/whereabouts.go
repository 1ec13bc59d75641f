package node

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"edged/control"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
	"edged/node/peer"
)

// Addresses of members come with the plan. A member that was away while voters moved has a plan that names places where nobody is: it asks
// the others that it knows, and whoever is at --join.

// A voter that finds itself at another place tells all members.

// pathPlaces is where a voter tells a member who is where: POST []fleetwire.Member.
const pathPlaces = "/fleet/v1/places"

const (
	mostAsked = 8                // members that are asked in one round
	mostTold  = 16               // that are told at the same time
	tellTime  = 10 * time.Second // for one of them
)

// places are the members of this fleet as one of it answers control.PathKnown: as far as it knows them, without secrets.
func (f *fleet) places() (out []fleetwire.Member) {
	for id, m := range f.known() {
		out = append(out, fleetwire.Member{ID: id, Control: m.Control, Edge: m.Edge, Peer: m.Peer, Gossip: m.Gossip})
	}
	return out
}

func (f *fleet) servePlaces(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	_ = fleetwire.WriteJSON(w, f.places()) // a member that left asks again
}

// takePlaces takes over where a voter says that the members are.
func (n *Node) takePlaces(w http.ResponseWriter, r *http.Request) {
	f := n.fleet
	err := func() error {
		if m := f.known()[peer.Caller(r)]; m == nil || !m.Control {
			return fault.New(fault.Denied, "node.places", "only a voter says where members are")
		}
		var at []fleetwire.Member
		if err := fleetwire.ReadJSON(r.Body, fleetwire.MaxJoinAnswer, &at); err != nil {
			return err
		}
		return n.learn(at)
	}()
	if err != nil {
		fleetwire.WriteError(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (n *Node) learn(at []fleetwire.Member) error {
	at = slices.DeleteFunc(at, func(m fleetwire.Member) bool { return !pki.ValidNode(m.ID) })
	if len(at) == 0 {
		return fault.New(fault.Unavailable, "node.places", "a member names no members")
	}
	n.fleet.told.Store(&at)
	return nil
}

// hasMoved reports whether the plan has this member at another place.
func (n *Node) hasMoved() bool {
	m := n.fleet.members.Load()
	if m == nil {
		return false
	}
	self := (*m)[n.id]
	return self != nil && self.Peer != "" && self.Peer != addrOf(n.bound, "peer")
}

// tellPlaces tells all other members where this voter is now: those that follow it would look for it where it was. Who is not reached learns
// it from another.
func (n *Node) tellPlaces(ctx context.Context) {
	at := n.fleet.places()
	for i := range at {
		if at[i].ID == n.id {
			at[i].Peer = addrOf(n.bound, "peer")
		}
	}
	body, err := json.Marshal(at)
	if err != nil {
		n.log.Error("the places of members are not encoded", "err", err, "do", fault.ReportBug)
		return
	}
	var telling sync.WaitGroup
	defer telling.Wait()
	slots := make(chan struct{}, mostTold)
	for _, m := range at {
		if m.ID == n.id {
			continue
		}
		slots <- struct{}{} // freed within tellTime
		telling.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, tellTime)
			defer cancel()
			if _, err := n.askVoter(ctx, http.MethodPost, "https://"+pki.Host(m.ID)+pathPlaces, body); err != nil {
				n.log.Debug("a member was not told where this voter is", "node", m.ID, "err", err)
			}
		})
	}
}

// lookForVoters is called when no voter has taken this member's report, once for each time. It learns where the members are from another
// one, or goes back to what the plan says if it did so the last time and that was no better.
func (n *Node) lookForVoters(ctx context.Context) error {
	if n.fleet.members.Load() != nil && n.fleet.told.Swap(nil) != nil {
		return nil
	}
	var errs []error
	if n.opt.Join != "" {
		c, err := n.fleet.peers.ClientAt(n.opt.Join)
		if err == nil {
			err = n.takeKnownOf(ctx, c, "https://"+pki.Host("any")+control.PathKnown)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	others := n.fleet.ids(func(m *plan.Member) bool { return m.ID != n.id })
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, id := range others[:min(len(others), mostAsked)] {
		err := n.takeKnownOf(ctx, n.fleet.peers.Client(), "https://"+pki.Host(id)+control.PathKnown)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// takeKnownOf asks one member who is in the fleet and where.
func (n *Node) takeKnownOf(ctx context.Context, c *http.Client, url string) error {
	raw, err := n.askMember(ctx, c, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	var known []fleetwire.Member
	if json.Unmarshal(raw, &known) != nil {
		return fault.New(fault.Unavailable, "node.takeKnown", "a member's list of members is malformed")
	}
	return n.learn(known)
}

// lostAfter is how long no voter has to be reached before the log says what can be done, and lostAgain how often it says so then.
const (
	lostAfter = time.Minute
	lostAgain = 10 * time.Minute
)

// contact is since when no voter takes this member's reports. It is one goroutine's.
type contact struct{ lost, said time.Time }

// note says whether the log should have a line now.
func (c *contact) note(reached bool, now time.Time) bool {
	switch {
	case reached:
		*c = contact{}
		return false
	case c.lost.IsZero():
		c.lost = now
	}
	if now.Sub(c.lost) < lostAfter || !c.said.IsZero() && now.Sub(c.said) < lostAgain {
		return false
	}
	c.said = now
	return true
}
