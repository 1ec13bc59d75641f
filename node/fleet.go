package node

import (
	"context"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"edged/control"
	"edged/control/feed"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
	"edged/kv"
	"edged/kv/gossip"
	"edged/kv/replica"
	"edged/node/peer"
)

// Files of DATA/fleet besides the certificates, and one of DATA/control. Of a member with a control log each of the two folders says that
// there is the other: what is missing is lost then, and not yet made.
const (
	gossipKeyFile = "gossip.key"
	seedsFile     = "members.json" // whom the fleet named when this node joined; a founder has none
	hasLogFile    = "has-log"      // in DATA/fleet: this member has had a control log
	inFleetFile   = "in-fleet"     // in DATA/control: the control log is a fleet's
)

// fleet is this node's part in a fleet: its door to the other members, and who they are. A node without --peer has none.
type fleet struct {
	self    string
	dir     string // DATA/fleet
	peers   *peer.Peers
	server  *feed.Server
	reports *feed.Reporter // of a voter; a follower has its own
	gate    *feed.Gate
	began   time.Time
	joined  bool                               // others founded the fleet, or will have when a join is over
	seeds   []fleetwire.Member                 // whom they named, this node too; for until there is a plan
	told    atomic.Pointer[[]fleetwire.Member] // the same as a member said since; nil if none did, and once there is a newer plan
	members atomic.Pointer[map[string]*plan.Member]
	planned planned
}

// known returns the members by ID: of the plan, or before there is one those that the fleet named at the join. Of members of the plan only
// the addresses may be those that another member told since: who is one the plan alone says.
func (f *fleet) known() map[string]*plan.Member {
	told := f.told.Load()
	if m := f.members.Load(); m != nil {
		if told == nil {
			return *m
		}
		return moved(*m, *told, f.self)
	}
	out := map[string]*plan.Member{f.self: {ID: f.self}}
	seeds := f.seeds
	if told != nil {
		seeds = *told
	}
	for _, s := range seeds {
		out[s.ID] = &plan.Member{ID: s.ID, Control: s.Control, Peer: s.Peer, Gossip: s.Gossip}
	}
	return out
}

// has reports whether a node is a member. It is asked at every request.
func (f *fleet) has(id string) bool {
	if m := f.members.Load(); m != nil {
		return (*m)[id] != nil
	}
	return f.known()[id] != nil
}

// moved returns the members, but for this one, at the addresses that were told.
func moved(members map[string]*plan.Member, told []fleetwire.Member, self string) map[string]*plan.Member {
	out := maps.Clone(members)
	for _, at := range told {
		if m := out[at.ID]; m != nil && at.ID != self && m.Peer != at.Peer && at.Peer != "" {
			now := *m
			now.Peer = at.Peer
			out[at.ID] = &now
		}
	}
	return out
}

// ids returns the members that fit, in ascending order.
func (f *fleet) ids(fit func(*plan.Member) bool) (out []string) {
	for id, m := range f.known() {
		if fit(m) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (f *fleet) voters() []string { return f.ids(func(m *plan.Member) bool { return m.Control }) }

// running are the members that may run workers: all, for consumers run where their queue is at home, and crons with the leader.
func (f *fleet) running() []string { return f.ids(func(*plan.Member) bool { return true }) }

// origins are the control origins of the other members.
func (f *fleet) origins() (out []string) {
	for id, m := range f.known() {
		if id != f.self && m.Origin != "" {
			out = append(out, m.Origin)
		}
	}
	return out
}

// program is what this member announces of the program that it runs.
func (n *Node) program() feed.Program {
	return feed.Program{Version: n.opt.Version, Level: control.Level}
}

func (f *fleet) upstreams() (out []feed.Upstream) {
	for id, m := range f.known() {
		if id != f.self {
			out = append(out, feed.Upstream{Member: id, URL: "https://" + pki.Host(id), Voter: m.Control})
		}
	}
	return out
}

// openFleet makes this node a member, or finds that it is one, and opens its door to the others. Without --peer it does nothing.
func (n *Node) openFleet() error {
	const op = "node.fleet"
	f := &fleet{self: n.id, dir: filepath.Join(n.opt.DataDir, "fleet"), began: time.Now()}
	member, err := peer.Joined(f.dir)
	if err == nil {
		err = f.readSeeds()
	}
	switch {
	case err != nil:
		return err
	case member && n.opt.Peer == "":
		// What it accepted as a node of its own no other member would know.
		return fault.New(fault.Invalid, op, "this data directory belongs to a member of a fleet: start it with --peer")
	case member:
	case n.followed() || n.hadLogOfFleet() && n.opt.Join != "":
		return fault.Newf(fault.Conflict, op, "this data directory was that of member %s of a fleet, and its certificate in %s is gone: %s", n.id, f.dir, anew(n.id))
	case n.hadLogOfFleet() && n.opt.Peer == "":
		return fault.Newf(fault.Conflict, op, "the control log in this data directory is that of a fleet, and the certificate of this member in %s is gone. If it is the only voter of its fleet, "+
			"start it with --peer: it gives itself another. Else %s", f.dir, anew(n.id))
	case n.opt.Join != "":
		err = n.join(f)
	case f.joined:
		return fault.New(fault.Invalid, op, "this node stopped while it joined a fleet: start it again with the same --peer, --join and --invite")
	case n.opt.Peer == "":
		return nil
	default:
		err = n.found(f)
	}
	if err == nil {
		err = n.checkRoles(f)
	}
	if err != nil {
		return err
	}
	return n.openPeers(f)
}

func (n *Node) openPeers(f *fleet) (err error) {
	opt := peer.Options{Dir: f.dir, Node: n.id, Log: n.log, Voters: f.voters,
		Resolve: func(member string) (string, bool) {
			if m := f.known()[member]; m != nil {
				return m.Peer, m.Peer != ""
			}
			return "", false
		},
		Allowed:   func(member, _ string) bool { return f.has(member) },
		OnRemoved: n.expelled,
	}
	if n.opt.hasRole("control") {
		opt.Join = func(ctx context.Context, in fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
			return n.control.Admit(ctx, in)
		}
		opt.Removed = func(member string) bool { return n.control.Removed(member) }
		opt.Renew = func(ctx context.Context, member string, csr []byte) ([]byte, error) {
			return n.control.Renew(ctx, member, csr)
		}
	}
	if f.peers, err = peer.Open(opt); err != nil {
		return err
	}
	if end := f.peers.NotAfter(); time.Now().After(end) && f.peers.Left() == "" {
		n.log.Error("this member's certificate has expired", "err", expired(end, n.id), "do", "put the folder fleet back from a copy, or let the machine join anew: docs/fleet.md")
	}
	if f.server, err = feed.NewServer(feed.ServerOptions{Caller: peer.Caller, Fresh: n.fresh, Log: n.log, Metrics: n.feeds}); err != nil {
		return err
	}
	n.fleet = f
	return nil
}

// useMembers takes the members of a plan into use.
func (n *Node) useMembers(d *plan.Delta) {
	f := n.fleet
	if f == nil || len(d.Members.Put)+len(d.Members.Gone) == 0 {
		return
	}
	next := map[string]*plan.Member{}
	if m := f.members.Load(); m != nil {
		next = maps.Clone(*m)
	}
	for _, m := range d.Members.Put {
		next[m.ID] = m
	}
	for _, id := range d.Members.Gone {
		delete(next, id)
	}
	was := f.members.Swap(&next)
	f.told.Store(nil)
	f.peers.Recheck()
	var members []kv.Member
	for id, m := range next {
		if m.KVEpoch != 0 {
			members = append(members, kv.Member{Name: id, Epoch: replica.Origin(m.KVEpoch), URL: "https://" + pki.Host(id), Gossip: m.Gossip})
		}
	}
	slices.SortFunc(members, func(a, b kv.Member) int { return strings.Compare(a.Name, b.Name) })
	if err := n.stores.kv.SetMembers(members); err != nil {
		n.log.Error("the members of the fleet are not taken over by kv", "err", err, "do", fault.ReportBug)
	}
	if was != nil && (*was)[n.id] != nil && next[n.id] == nil {
		f.peers.Leave("the plan of the fleet says so")
	}
	if f.left() == "" { // else that stays
		n.ready.set("fleet", outOfService(next[n.id]))
	}
}

// outOfService is why the fleet wants no traffic for this node, "" if it does. self is nil once it was removed.
func outOfService(self *plan.Member) string {
	switch {
	case self == nil:
		return "this node was removed from the fleet; its machine can come back with an empty data directory and a new invite"
	case self.Draining:
		return "the fleet drains this node"
	}
	return ""
}

// certificateProblem adds why a member is answered by nobody.
func (n *Node) certificateProblem(reasons map[string]string) {
	if n.fleet == nil {
		return
	}
	if end := n.fleet.peers.NotAfter(); time.Now().After(end) && n.fleet.left() == "" {
		reasons["certificate"] = expired(end, n.id)
	}
}

// fleetProblems adds why a member should get no traffic now.
func (n *Node) fleetProblems(reasons map[string]string) {
	f := n.fleet
	if f == nil {
		return
	}
	switch {
	case f.left() != "":
	case f.gate.Closed():
		reasons["plan"] = "cut off for longer than --revalidate-after: custom domains and versions with secrets are withheld"
	case f.members.Load() != nil:
	case n.waitsForVote():
		reasons["plan"] = "this node gets no plan before it has a vote: edged fleet add-control " + n.id
	default:
		reasons["plan"] = "no plan of the fleet came yet"
	}
}

// kvPeers are the kv room's ways to the other members; nil on a node that runs alone.
func (n *Node) kvPeers() *kv.PeerOptions {
	if n.fleet == nil {
		return nil
	}
	p := &kv.PeerOptions{Client: n.fleet.peers.Client(), Name: func(r *http.Request) (string, error) {
		if id := peer.Caller(r); id != "" {
			return id, nil
		}
		return "", fault.New(fault.Denied, "node.fleet", "no member's certificate was shown")
	}}
	if n.opt.Gossip != "" {
		p.Gossip = &gossip.Options{Bind: n.opt.Gossip, KeyFile: filepath.Join(n.fleet.dir, gossipKeyFile)}
	}
	return p
}

// votersOnly passes on the streams of members that may vote.
type votersOnly struct {
	*peer.RaftListener
	f *fleet
}

// Accept is net.Listener's.
func (l votersOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.RaftListener.Accept()
		if err != nil {
			return nil, err
		}
		if rc, ok := c.(*peer.RaftConn); ok {
			if m := l.f.known()[rc.Member]; m != nil && m.Control {
				return c, nil
			}
		}
		c.Close()
	}
}

// fleetOptions connects the control room with the other voters; nil on a node that runs alone.
func (n *Node) fleetOptions() *control.FleetOptions {
	f := n.fleet
	if f == nil {
		return nil
	}
	return &control.FleetOptions{Joined: f.joined, HadLog: !f.joined || exists(filepath.Join(f.dir, hasLogFile)), Listener: votersOnly{f.peers.RaftListener(), f}, Dial: f.peers.DialRaft,
		Client: f.peers.Client(), Caller: peer.Caller, Serving: f.running, Origins: f.origins, Served: f.server.Serving, Announced: f.server.Announced, Program: n.program(), Keys: n.gatherKeys, Settings: n.settings}
}
