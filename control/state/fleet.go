package state

import (
	"github.com/tidwall/btree"

	"edged/control/form"
)

// Bounds of a fleet: what everybody is told of it fits into one document of the peer protocol.
const (
	MaxMembers = 500  // members at a time
	MaxInvites = 1000 // invites that have not expired, used ones included
)

// Member is one node of the fleet. It is immutable once stored.
type Member struct {
	ID       string            `json:"id"`   // node.id of its data directory
	Name     string            `json:"name"` // for people; no two members share one
	Control  bool              `json:"control,omitempty"`
	Edge     bool              `json:"edge,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`  // what it says of itself, overruled by Granted
	Granted  map[string]string `json:"granted,omitempty"` // the labels of its invite; the member cannot change them
	Peer     string            `json:"peer"`              // host:port of its node-to-node listener
	Gossip   string            `json:"gossip,omitempty"`  // host:port, "" if it takes no part
	Origin   string            `json:"origin,omitempty"`  // of its control listener, like https://host:port; "" until it told
	KVEpoch  uint64            `json:"kvEpoch,omitempty"` // of its KV store; another one is another disk
	Serial   string            `json:"serial"`            // of its newest certificate; older ones are good too, as long as it is a member
	JoinedAt int64             `json:"joinedAt"`          // Unix ms
	Draining bool              `json:"draining,omitempty"`
}

// Invite lets one node join, once. Its secret is not kept. It is immutable once stored.
type Invite struct {
	ID      string            `json:"id"`
	Hash    []byte            `json:"hash"` // TokenHash of the secret
	Control bool              `json:"control,omitempty"`
	Edge    bool              `json:"edge,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Expires int64             `json:"expires"`          // Unix ms; forgotten some time after
	UsedBy  string            `json:"usedBy,omitempty"` // ID of the member that joined with it, "" while it is good
	Proof   []byte            `json:"proof,omitempty"`  // digest of that member's public key: only its owner is answered again
}

// Authority is what a fleet's certificates are signed with, and what its gossip is encrypted with.
type Authority struct {
	Cert   string `json:"cert"`   // PEM; public
	Key    []byte `json:"key"`    // PEM of its private key, sealed
	Gossip []byte `json:"gossip"` // sealed
}

// FleetChange is what a command says of the fleet.
type FleetChange struct {
	Authority *Authority `json:"authority,omitempty"` // of FoundFleet; of Reseal: the same under another key
	// Member is who is spoken of. DrainMember and RemoveMember read its ID alone, the former Draining too; ReportMember its
	// Serial, or, where that is "", its addresses, KV epoch and labels.
	Member   *Member `json:"member,omitempty"`
	Invite   *Invite `json:"invite,omitempty"`   // of InviteMember; of JoinFleet the ID alone
	Hash     []byte  `json:"hash,omitempty"`     // of JoinFleet: of the secret that was shown
	Proof    []byte  `json:"proof,omitempty"`    // of JoinFleet: digest of the public key that the certificate is for
	LoseData bool    `json:"loseData,omitempty"` // of RemoveMember: it may be the home of data
}

// fleet is the part of the tables that speaks of the fleet.
type fleet struct {
	founder   string // ID of the node that founded it, "" before: the home of what has none on record
	authority *Authority
	members   *btree.Map[string, *Member] // ID
	removed   *btree.Map[string, int64]   // IDs that never join again, and since when, Unix ms
	invites   *btree.Map[string, *Invite] // ID
}

func newFleet() fleet {
	return fleet{members: new(btree.Map[string, *Member]), removed: new(btree.Map[string, int64]), invites: new(btree.Map[string, *Invite])}
}

func (f fleet) copy() fleet {
	f.members, f.removed, f.invites = f.members.Copy(), f.removed.Copy(), f.invites.Copy()
	return f
}

// fleetRow, removedRow: lines of a snapshot.
type fleetRow struct {
	Founder   string     `json:"founder"`
	Authority *Authority `json:"authority"`
}

type removedRow struct {
	ID string `json:"id"`
	At int64  `json:"at"`
}

// write puts the lines of the fleet into a snapshot; none before a node was ever told of a fleet.
func (f *fleet) write(put func(entry) bool) {
	if f.authority != nil {
		put(entry{Fleet: &fleetRow{f.founder, f.authority}})
	}
	f.members.Scan(func(_ string, m *Member) bool { return put(entry{Member: m}) })
	f.removed.Scan(func(id string, at int64) bool { return put(entry{Removed: &removedRow{id, at}}) })
	f.invites.Scan(func(_ string, i *Invite) bool { return put(entry{Invite: i}) })
}

// load takes a line that write made.
func (f *fleet) load(e *entry) {
	switch {
	case e.Fleet != nil:
		f.founder, f.authority = e.Fleet.Founder, e.Fleet.Authority
	case e.Member != nil:
		f.members.Load(e.Member.ID, e.Member)
	case e.Removed != nil:
		f.removed.Load(e.Removed.ID, e.Removed.At)
	case e.Invite != nil:
		f.invites.Load(e.Invite.ID, e.Invite)
	}
}

// format is the format of a snapshot that has these lines.
func (f *fleet) format() int {
	if f.authority == nil && f.removed.Len() == 0 {
		return 1
	}
	return snapshotFormat
}

// Homed reports whether a store of the kind is at one node, its home. The others are at every node.
func Homed(store string) bool {
	return store == form.StoreSQL || store == form.StoreObjects || store == form.StoreQueue
}

// homeOf returns the node that has r's store, "" for what has no home and while nobody founded a fleet.
func (s *State) homeOf(r *Resource) string {
	if r.Home != "" || !Homed(r.driver.Store) {
		return r.Home
	}
	return s.fleet.founder
}

// Home returns the ID of the node that has the store of a data Resource. It is the founding node for a record of before there were
// homes, "" for what every node has, for nil, and on a node alone for such a record.
func (v View) Home(r *Resource) string {
	if r == nil {
		return ""
	}
	return v.s.homeOf(r)
}

// Member returns a member by ID, nil if there is none.
func (v View) Member(id string) *Member {
	m, _ := v.s.fleet.members.Get(id)
	return m
}

// EachMember calls fn for every member in ascending order of ID.
func (v View) EachMember(fn func(*Member)) {
	v.s.fleet.members.Scan(func(_ string, m *Member) bool { fn(m); return true })
}

// FleetRevision moves with every change of a member. It counts from the start of the program.
func (v View) FleetRevision() uint64 { return v.s.fleetRevision }

// Fleet is what the state knows of its fleet at one instant. The records are shared and immutable.
type Fleet struct {
	Founder   string     // ID of the node that founded it, "" if there is none
	Authority *Authority // nil if there is no fleet
	Members   []*Member  // ascending by ID
	Removed   map[string]int64
	Invites   []*Invite // ascending by ID, expired ones may be among them
}

// Fleet returns the fleet as it is now.
func (s *State) Fleet() Fleet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f := Fleet{Founder: s.fleet.founder, Authority: s.fleet.authority, Members: s.fleet.members.Values(),
		Removed: make(map[string]int64, s.fleet.removed.Len()), Invites: s.fleet.invites.Values()}
	s.fleet.removed.Scan(func(id string, at int64) bool { f.Removed[id] = at; return true })
	return f
}

// Removed reports whether a node was a member and was removed: that is for ever.
func (s *State) Removed(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, gone := s.fleet.removed.Get(id)
	return gone
}

// Member returns a member by ID, nil if there is none.
func (s *State) Member(id string) *Member {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, _ := s.fleet.members.Get(id)
	return m
}
