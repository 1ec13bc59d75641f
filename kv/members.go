package kv

import (
	"errors"
	"fmt"
	"slices"

	"edged/internal/fault"
	"edged/kv/replica"
)

// Member is one node of a fleet as the control plane lists it.
type Member struct {
	Name  string         // unique among members
	Epoch replica.Origin // of its store; a store with another epoch is not this member
	URL   string         // of its peer listener, like https://host:port

	Gossip string // host:port of its doorbell, "" when it has none
}

// SetMembers replaces the list of the fleet's members; this node itself may be in it. Feeds are read from and served to exactly
// these names with exactly these epochs: an epoch that left the list is refused until its disk is wiped. It may be called at any
// time. Until it was called (with an empty list, on a node that runs alone) tombstones are kept for ever, unless the store never
// had a record from anywhere else. Conflict: this store was restored from a backup that is too old to join others; wipe its directory and start it empty.
func (s *Store) SetMembers(members []Member) error {
	others := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Epoch == s.ledger.epoch })
	names := map[string]bool{}
	epochs := make([]replica.Origin, len(others))
	for i, m := range others {
		if m.Name == "" || m.Epoch == 0 || names[m.Name] {
			return fault.Newf(fault.Invalid, "kv.SetMembers", "member %q is named twice, or without name or epoch", m.Name)
		}
		names[m.Name] = true
		epochs[i] = m.Epoch
	}
	if len(others) > 0 {
		if err := s.joinable(); err != nil {
			return fault.New(fault.Conflict, "kv.SetMembers", err.Error())
		}
	}
	s.coverMu.Lock()
	s.coverage.SetMembers(epochs)
	s.coverMu.Unlock()
	s.members.Store(&others)
	s.kick()
	return nil
}

// Members returns the other members as they were last set. Do not change the slice.
func (s *Store) Members() []Member {
	if m := s.members.Load(); m != nil {
		return *m
	}
	return nil
}

// member returns the member with an epoch.
func (s *Store) member(epoch replica.Origin) (Member, bool) {
	for _, m := range s.Members() {
		if m.Epoch == epoch {
			return m, true
		}
	}
	return Member{Epoch: epoch}, s.opt.rules.ServeAnyone
}

// errStranger refuses a peer that is not a member under the epoch it names.
var errStranger = errors.New("not a member under this epoch (one that has just joined is soon; else it was removed, or its KV store is another)")

// mayTalk reports whether records may be taken from or given to a peer now.
func (s *Store) mayTalk(peer replica.Origin) error {
	if _, ok := s.member(peer); !ok {
		return errStranger
	}
	return s.joinable()
}

// advertised notes a member's durable vector that came outside a session.
func (s *Store) advertised(member replica.Origin, v replica.Vector) {
	s.coverMu.Lock()
	defer s.coverMu.Unlock()
	s.coverage.Advertised(member, v)
}

var errTooOld = errors.New("this store was restored from a backup that is too old to join others: what it holds may have been deleted and forgotten since")

// joinMargin is how much before the end of the grace a restored backup must be level with a member: twice the skew that clocks
// may have.
const joinMargin = 2 * replica.MaxSkew

// joinable returns an error when this store came from a backup so old that others may have forgotten tombstones it needs.
func (s *Store) joinable() error {
	at := s.restoredMs.Load()
	if at == 0 || s.opt.rules.JoinOld {
		return nil
	}
	if age := s.opt.clock() - at; age > (s.opt.Grace - joinMargin).Milliseconds() {
		return fmt.Errorf("%w (its members were last read %d s before)", errTooOld, age/1000)
	}
	return nil
}

// caughtUpMs returns the time at which this store last had all that its members had: now, when there are none.
func (s *Store) caughtUpMs(now int64) (int64, error) {
	at := now
	if r := s.restoredMs.Load(); r != 0 {
		at = r
	}
	for _, m := range s.Members() {
		read, err := s.ledger.readOf(m.Epoch)
		if err != nil {
			return 0, err
		}
		at = min(at, read.liveMs)
	}
	return at, nil
}
