package state

import (
	"bytes"
	"crypto/subtle"
	"maps"

	"edged/control/form"
	"edged/control/rules"
)

// JudgeFleet judges a command about the fleet without carrying it out: nil means that Apply would accept it now.
func (s *State) JudgeFleet(c *Command) *rules.Verdict {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.judgeFleet(c)
}

func (s *State) judgeFleet(c *Command) *rules.Verdict {
	founded := s.fleet.authority != nil
	switch {
	case c.Kind == FoundFleet && founded:
		return rules.Refuse(rules.DependencyInUse, "FL-2", "", nil, "this control state is that of a fleet already, which %s founded", s.fleet.founder)
	case c.Kind == FoundFleet || c.Kind == Disband:
		return nil
	case !founded:
		return NoFleet()
	case c.Kind == InviteMember:
		if s.invitesAt(c.At) >= MaxInvites {
			return rules.Refuse(rules.DependencyInUse, "FL-3.4", "", nil, "there are %d invites already: wait until some expire", MaxInvites)
		}
		return nil
	case c.Kind == JoinFleet:
		return s.judgeJoin(c)
	}
	m, _ := s.fleet.members.Get(c.Fleet.Member.ID)
	if m == nil {
		return rules.Refuse(rules.ResourceNotFound, "FL-5.1", "", nil, "no member of the fleet has this ID")
	}
	if c.Kind == RemoveMember {
		return s.judgeRemoval(m, c.Fleet.LoseData)
	}
	return nil
}

// NoFleet is what a node that serves alone answers about a fleet.
func NoFleet() *rules.Verdict {
	return rules.Refuse(rules.DependencyInUse, "FL-1", "", nil, "this node is in no fleet: start it with --peer")
}

// invitesAt counts the invites that have not expired.
func (s *State) invitesAt(now int64) (n int) {
	s.fleet.invites.Scan(func(_ string, i *Invite) bool {
		if now < i.Expires {
			n++
		}
		return true
	})
	return n
}

// judgeJoin judges the invite first: whoever has no good one learns nothing of the fleet.
func (s *State) judgeJoin(c *Command) *rules.Verdict {
	denied := func(rule, why string) *rules.Verdict {
		return rules.Refuse(rules.PermissionDenied, rule, "", nil, "%s: make another with `edged fleet invite`", why)
	}
	i, _ := s.fleet.invites.Get(c.Fleet.Invite.ID)
	switch {
	case i == nil || subtle.ConstantTimeCompare(i.Hash, c.Fleet.Hash) != 1:
		return denied("FL-3.1", "the invite is unknown here")
	case c.At >= i.Expires:
		return denied("FL-3.2", "the invite has expired")
	case i.UsedBy != "" && !s.again(i, c):
		return denied("FL-3.3", "the invite was used")
	case i.UsedBy != "":
		return nil
	}
	m := c.Fleet.Member
	if _, gone := s.fleet.removed.Get(m.ID); gone {
		return rules.Refuse(rules.Gone, "FL-4.1", "", nil, "node %s was removed from this fleet and never joins it again: start with an empty data directory", m.ID)
	}
	if _, known := s.fleet.members.Get(m.ID); known {
		return rules.Refuse(rules.NameConflict, "FL-4.2", "", nil, "node %s is a member already: remove it, or start with an empty data directory", m.ID)
	}
	if other := s.named(m.Name); other != nil {
		return rules.Refuse(rules.NameConflict, "FL-4.3", "", nil, "the name %s is that of member %s: choose another", m.Name, other.ID)
	}
	if s.fleet.members.Len() >= MaxMembers {
		return rules.Refuse(rules.DependencyInUse, "FL-4.4", "", nil, "the fleet has %d members and may not have more", MaxMembers)
	}
	return nil
}

// again reports whether a join is one that succeeded and whose answer may have been lost: the same node, still a member, for the
// same key.
func (s *State) again(i *Invite, c *Command) bool {
	_, member := s.fleet.members.Get(i.UsedBy)
	return member && i.UsedBy == c.Fleet.Member.ID && bytes.Equal(i.Proof, c.Fleet.Proof)
}

func (s *State) named(name string) (found *Member) {
	s.fleet.members.Scan(func(_ string, m *Member) bool {
		if m.Name == name {
			found = m
		}
		return found == nil
	})
	return found
}

func (s *State) judgeRemoval(m *Member, loseData bool) *rules.Verdict {
	voters := 0
	s.fleet.members.Scan(func(_ string, other *Member) bool {
		if other.Control {
			voters++
		}
		return true
	})
	if m.Control && voters == 1 {
		return rules.Refuse(rules.DependencyInUse, "FL-5.2", "", nil, "member %s is the last with the role control: without it the fleet has no control state", m.ID)
	}
	if loseData {
		return nil
	}
	n, first := 0, ""
	s.resources.Scan(func(uid string, r *Resource) bool {
		if r.driver.Role == rules.Data && s.homeOf(r) == m.ID {
			if n++; n == 1 {
				first = uid
			}
		}
		return true
	})
	if n > 0 {
		return rules.Refuse(rules.DependencyInUse, "FL-5.3", "", nil,
			"member %s is the home of %d databases, buckets and queues, %s among them, which would be lost: delete them, or say that they may be lost", m.ID, n, first)
	}
	return nil
}

// applyFleet carries out a command about the fleet.
func (s *State) applyFleet(c *Command) Outcome {
	if v := s.judgeFleet(c); v != nil {
		return Outcome{Refusal: v}
	}
	switch c.Kind {
	case FoundFleet:
		s.found(c)
	case InviteMember:
		s.invite(c)
		return Outcome{}
	case JoinFleet:
		again := s.join(c)
		s.fleetRevision++
		return Outcome{Plan: true, Replayed: again}
	case ReportMember:
		if !s.report(c.Fleet.Member) {
			return Outcome{}
		}
	case DrainMember:
		m, _ := s.fleet.members.Get(c.Fleet.Member.ID)
		if m.Draining == c.Fleet.Member.Draining {
			return Outcome{}
		}
		next := *m
		next.Draining = c.Fleet.Member.Draining
		s.fleet.members.Set(next.ID, &next)
	case RemoveMember:
		s.fleet.members.Delete(c.Fleet.Member.ID)
		s.fleet.removed.Set(c.Fleet.Member.ID, c.At)
	case Disband:
		s.disband(c)
	}
	s.fleetRevision++
	return Outcome{Plan: true}
}

// found makes this state that of a fleet of one member. What has no home on record is at home there from now on.
func (s *State) found(c *Command) {
	m := *c.Fleet.Member
	m.JoinedAt = c.At
	s.fleet.founder, s.fleet.authority = m.ID, c.Fleet.Authority
	s.fleet.members.Set(m.ID, &m)
	s.resources.Scan(func(uid string, r *Resource) bool { // their places in a plan change, their records do not
		if r.driver.Role == rules.Data && Homed(r.driver.Store) && r.Home == "" {
			s.note(uid, r)
			for _, consumer := range s.sources(uid, rules.Attachment, form.UseQueue) {
				s.note(consumer, s.get(consumer))
			}
		}
		return true
	})
}

// invite stores an invite and forgets those that have expired.
func (s *State) invite(c *Command) {
	var expired []string
	s.fleet.invites.Scan(func(id string, i *Invite) bool {
		if c.At >= i.Expires {
			expired = append(expired, id)
		}
		return true
	})
	for _, id := range expired {
		s.fleet.invites.Delete(id)
	}
	s.fleet.invites.Set(c.Fleet.Invite.ID, c.Fleet.Invite)
}

// join makes a member and uses its invite up. One that joins again for the same key gets another certificate.
func (s *State) join(c *Command) (again bool) {
	i, _ := s.fleet.invites.Get(c.Fleet.Invite.ID)
	if i.UsedBy != "" {
		s.report(&Member{ID: i.UsedBy, Serial: c.Fleet.Member.Serial})
		return true
	}
	used := *i
	used.UsedBy, used.Proof = c.Fleet.Member.ID, c.Fleet.Proof
	s.fleet.invites.Set(used.ID, &used)
	m := *c.Fleet.Member
	m.Control, m.Edge, m.JoinedAt, m.Draining, m.Granted = i.Control, i.Edge, c.At, false, i.Labels
	m.Labels = overruled(m.Labels, i.Labels)
	s.fleet.members.Set(m.ID, &m)
	return false
}

// report takes over what a member says of itself, or its new certificate; false if that changes nothing.
func (s *State) report(now *Member) bool {
	m, _ := s.fleet.members.Get(now.ID)
	next := m.saying(now)
	if next == nil {
		return false
	}
	s.fleet.members.Set(next.ID, next)
	return true
}

// saying returns the member with what a report says of it; nil if that is what it has.
func (m *Member) saying(now *Member) *Member {
	next := *m
	if now.Serial != "" {
		next.Serial = now.Serial
		return &next
	}
	next.Peer, next.Gossip, next.Origin, next.KVEpoch, next.Labels = now.Peer, now.Gossip, now.Origin, now.KVEpoch, overruled(now.Labels, m.Granted)
	if next.Peer == m.Peer && next.Gossip == m.Gossip && next.Origin == m.Origin && next.KVEpoch == m.KVEpoch && maps.Equal(next.Labels, m.Labels) {
		return nil
	}
	return &next
}

// overruled returns own labels with granted ones put over them.
func overruled(own, granted map[string]string) map[string]string {
	if len(own)+len(granted) == 0 {
		return nil
	}
	out := maps.Clone(granted)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range own {
		if _, fixed := granted[k]; !fixed {
			out[k] = v
		}
	}
	return out
}

// disband makes the state that of a node alone, with an ID of its own: it is home of everything, and none of the other nodes that
// the state knew may ever join it, since what they hold is of another history.
func (s *State) disband(c *Command) {
	self := c.Fleet.Member.ID
	members := s.fleet.members
	removed := s.fleet.removed
	s.fleet = newFleet()
	s.fleet.removed = removed
	members.Scan(func(id string, _ *Member) bool { s.fleet.removed.Set(id, c.At); return true })
	s.fleet.removed.Delete(self)
	var homed []*Resource
	s.resources.Scan(func(_ string, r *Resource) bool {
		if r.Home != "" {
			homed = append(homed, r)
		}
		return true
	})
	for _, r := range homed {
		next := *r
		next.Home = ""
		s.store(&next)
	}
}

// resealAuthority stores what the authority keeps secret under another key.
func (s *State) resealAuthority(next *Authority) {
	if was := s.fleet.authority; was != nil && was.Cert == next.Cert {
		s.fleet.authority = next
	}
}

// Says reports whether a member's addresses, KV epoch and labels are what m says already.
func (s *State) Says(m *Member) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known, _ := s.fleet.members.Get(m.ID)
	return known != nil && known.saying(m) == nil
}
