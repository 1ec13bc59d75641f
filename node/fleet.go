package node

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"edged/control"
	"edged/control/feed"
	"edged/control/plan"
	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
	"edged/kv"
	"edged/kv/gossip"
	"edged/kv/replica"
	"edged/node/peer"
)

// Files of DATA/fleet besides the certificates.
const (
	gossipKeyFile = "gossip.key"
	seedsFile     = "members.json" // whom the fleet named when this node joined; a founder has none
)

// fleet is this node's part in a fleet: its door to the other members, and who they are. A node without --peer has none.
type fleet struct {
	self    string
	dir     string // DATA/fleet
	peers   *peer.Peers
	server  *feed.Server
	metrics *feed.Metrics
	fetcher *feed.Fetcher
	gate    *feed.Gate
	began   time.Time
	joined  bool               // others founded the fleet
	seeds   []fleetwire.Member // until there is a plan
	members atomic.Pointer[map[string]*plan.Member]
}

// known returns the members by ID: of the plan, or before there is one those that the fleet named at the join.
func (f *fleet) known() map[string]*plan.Member {
	if m := f.members.Load(); m != nil {
		return *m
	}
	out := map[string]*plan.Member{f.self: {ID: f.self}}
	for _, s := range f.seeds {
		out[s.ID] = &plan.Member{ID: s.ID, Control: s.Control, Peer: s.Peer, Gossip: s.Gossip}
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

func (f *fleet) serving() []string { return f.ids(func(m *plan.Member) bool { return m.Edge }) }

// origins are the control origins of the other members.
func (f *fleet) origins() (out []string) {
	for id, m := range f.known() {
		if id != f.self && m.Origin != "" {
			out = append(out, m.Origin)
		}
	}
	return out
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
	if n.opt.Peer == "" {
		return n.refuseLeftFleet()
	}
	f := &fleet{self: n.id, dir: filepath.Join(n.opt.DataDir, "fleet"), began: time.Now()}
	switch member, err := peer.Joined(f.dir); {
	case err != nil:
		return err
	case member:
	case n.opt.Join != "":
		if err := n.join(f); err != nil {
			return err
		}
	case !n.opt.hasRole("control"):
		return fault.New(fault.Invalid, "node.fleet", "--role edge: a fleet begins with a node that has the role control; name one with --join and --invite")
	default:
		if err := n.found(f); err != nil {
			return err
		}
	}
	if err := f.readSeeds(); err != nil {
		return err
	}
	return n.openPeers(f)
}

// refuseLeftFleet keeps a member from running as a node of its own: what it then accepted no other member would know.
func (n *Node) refuseLeftFleet() error {
	member, err := peer.Joined(filepath.Join(n.opt.DataDir, "fleet"))
	if err == nil && member {
		err = fault.New(fault.Invalid, "node.fleet", "this data directory belongs to a member of a fleet: start it with --peer")
	}
	return err
}

func (n *Node) openPeers(f *fleet) (err error) {
	opt := peer.Options{Dir: f.dir, Node: n.id, Log: n.log, Voters: f.voters,
		Resolve: func(member string) (string, bool) {
			m := f.known()[member]
			return peerAddr(m), m != nil && m.Peer != ""
		},
		Allowed: func(member, _ string) bool { return f.known()[member] != nil },
	}
	if n.opt.hasRole("control") {
		opt.Join, opt.Renew = n.admit, n.renew
	}
	if f.peers, err = peer.Open(opt); err != nil {
		return err
	}
	f.metrics = feed.NewMetrics(n.registry)
	if f.server, err = feed.NewServer(feed.ServerOptions{Caller: peer.Caller, Fresh: n.fresh, Log: n.log, Metrics: f.metrics}); err != nil {
		return err
	}
	n.fleet = f
	return nil
}

func peerAddr(m *plan.Member) string {
	if m == nil {
		return ""
	}
	return m.Peer
}

// request is what this node says of itself when it joins.
func (n *Node) request() fleetwire.JoinRequest {
	return fleetwire.JoinRequest{ID: n.id, Name: n.name(), Peer: addrOf(n.bound, "peer")}
}

// name is what people call this node: its host's name, and some of its ID, for no two members share one.
func (n *Node) name() string {
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	id := strings.TrimPrefix(n.id, "n-")
	return (host + "-" + id)[:min(len(host)+7, 63)]
}

// join asks the fleet that --join names to take this node in. A node with a control state of its own is refused: two histories do not
// become one.
func (n *Node) join(f *fleet) error {
	if n.opt.Invite == "" {
		return fault.New(fault.Invalid, "node.fleet", "--join needs the invite that \"edged fleet invite\" printed, with --invite")
	}
	if _, err := os.Stat(filepath.Join(n.opt.DataDir, "control", "log")); err == nil {
		return fault.New(fault.Conflict, "node.fleet", "this data directory has a control state of its own and cannot join a fleet: start with an empty one")
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinPatience)
	defer cancel()
	opt := peer.JoinOptions{Dir: f.dir, URL: n.opt.Join, Invite: n.opt.Invite, Request: n.request(),
		Keep: func(a fleetwire.JoinAnswer) error { return n.keep(f, a, true) }}
	for {
		_, err := peer.Join(ctx, opt)
		if fault.CodeOf(err) != fault.Unavailable || ctx.Err() != nil {
			return err
		}
		n.log.Warn("the fleet does not take this node in yet; it is asked again", "err", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(joinPause):
		}
	}
}

// joinPatience is how long a start waits for the fleet that it joins: one that elects a leader takes nobody in for some seconds.
const (
	joinPatience = time.Minute
	joinPause    = time.Second
)

// keep writes what the fleet gave to its new member.
func (n *Node) keep(f *fleet, a fleetwire.JoinAnswer, joined bool) error {
	if err := disk.Prepare(f.dir); err != nil {
		return err
	}
	if joined {
		seeds, err := json.Marshal(a.Members)
		if err != nil {
			return fault.Wrap(fault.Internal, "node.fleet", err)
		}
		if err := disk.WriteFile(filepath.Join(f.dir, seedsFile), append(seeds, '\n'), 0o600); err != nil {
			return err
		}
		if err := control.KeepRing(n.opt.DataDir, a.RingFile); err != nil {
			return err
		}
	}
	return disk.WriteFile(filepath.Join(f.dir, gossipKeyFile), []byte(a.GossipKey+"\n"), 0o600)
}

func (f *fleet) readSeeds() error {
	b, err := os.ReadFile(filepath.Join(f.dir, seedsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, "node.fleet", err)
	}
	f.joined = true
	if json.Unmarshal(b, &f.seeds) != nil {
		return fault.Newf(fault.Conflict, "node.fleet", "%s is damaged: put it back from a backup, or remove the node and let it join anew with an empty directory",
			filepath.Join(f.dir, seedsFile))
	}
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
	f.members.Store(&next)
	f.peers.Recheck()
	var members []kv.Member
	for id, m := range next {
		if m.KVEpoch != 0 {
			members = append(members, kv.Member{Name: id, Epoch: replica.Origin(m.KVEpoch), URL: "https://" + pki.Host(id), Gossip: m.Gossip})
		}
	}
	slices.SortFunc(members, func(a, b kv.Member) int { return strings.Compare(a.Name, b.Name) })
	if err := n.stores.kv.SetMembers(members); err != nil {
		n.log.Error("the members of the fleet are not taken over by kv", "err", err)
	}
	if m := next[n.id]; m != nil && m.Draining {
		n.ready.set("fleet", "the fleet drains this node")
	} else {
		n.ready.set("fleet", "")
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
	return &control.FleetOptions{Joined: f.joined, Listener: votersOnly{f.peers.RaftListener(), f}, Dial: f.peers.DialRaft,
		Client: f.peers.Client(), Caller: peer.Caller, Serving: f.serving, Origins: f.origins, Served: f.server.Serving, Keys: n.takeKeys}
}
