package kv

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/kv/replica"
)

// The simulated world: real stores on crashable disks, real sessions, and between them a network that delays, loses, repeats
// and reorders. One goroutine, one generator: a seed is a history.

const (
	simGrace  = 3_600_000 * 2 // ms
	simMember = 600_000       // ms within which every node that runs learns of a change of the members
)

type simNode struct {
	name    string
	fs      *vfs.MemFS
	store   *Store
	skew    int64 // ms its clock is ahead
	skewed  bool  // it once was far ahead, and its disk remembers
	up      bool
	epoch   replica.Origin
	saved   *vfs.MemFS // its last backup
	members int        // version of the member list that it has
	dead    int        // how many of the deleted namespaces it was told of
	list    []Member
	pending []*simWrite // visible, not yet acknowledged
}

// simWrite is one write that a client made.
type simWrite struct {
	version  replica.Version
	uid, key string
	value    string // "" for a delete
	expires  int64
	acked    bool
}

// simSession is one session: what its server put on the wire and its client has not read yet.
type simSession struct {
	client, server *simNode
	in             *intake
	feeder         *replica.Feeder // nil until the request arrived
	wire           [][]byte
	hangs          int64 // nothing moves before this time
}

type world struct {
	rng      *rand.Rand
	rules    replica.Rules
	cache    *pebble.Cache
	now      int64
	nodes    []*simNode
	sessions []*simSession
	cut      map[[2]int]bool // pairs that cannot talk
	writes   map[replica.Origin]map[uint64]*simWrite
	current  []Member // the control plane's list
	version  int      // of that list
	changed  int64    // when it changed last
	deadUIDs []string
	origins  uint64
	late     []simPush
	ads      []simAd
	trace    []string
	err      error
}

// simPush is a record that was pushed outside a session, under the rule that forbids it being off.
type simPush struct {
	to     *simNode
	change replica.Change
}

// simAd is a member's vector on its way outside of any session.
type simAd struct {
	to     *simNode
	from   replica.Origin
	vector replica.Vector
}

var simUIDs = []string{"n1", "n2", "n3"}

func newWorld(seed uint64, rules replica.Rules, push bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), rules: rules, cache: pebble.NewCache(1 << 20), now: 1_700_000_000_000,
		cut: map[[2]int]bool{}, writes: map[replica.Origin]map[uint64]*simWrite{}}
	if push {
		w.late = []simPush{}
	}
	for i := range 3 + w.rng.IntN(2) {
		n := &simNode{name: fmt.Sprint("node", i), fs: vfs.NewCrashableMem(), skew: w.rng.Int64N(120_000) - 60_000}
		w.nodes = append(w.nodes, n)
		w.start(n)
		w.current = append(w.current, Member{Name: n.name, Epoch: n.epoch})
	}
	for _, n := range w.nodes {
		w.tell(n)
	}
	return w
}

func (w *world) close() {
	for _, n := range w.nodes {
		w.stop(n)
	}
	w.cache.Unref()
}

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8d ", w.now-1_700_000_000_000)+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		w.log("FAILED %v", w.err)
	}
}

// start opens a node's store.
func (w *world) start(n *simNode) {
	s, err := Open(Options{Dir: "/kv", FS: n.fs, Cache: w.cache, MemSize: 64 << 10, Grace: simGrace * 1e6, BlobGrace: 1, rules: w.rules,
		Node: n.name, Peers: &PeerOptions{Client: &http.Client{}, Name: func(*http.Request) (string, error) { return "", nil }}, unsynced: true,
		clock: func() int64 { return w.now + n.skew },
		draw: func() replica.Origin {
			if w.rules.KeepEpoch && n.epoch != 0 {
				return n.epoch
			}
			w.origins++
			return replica.Origin(w.origins<<32 | uint64(w.rng.Uint32()))
		}})
	if err != nil {
		w.fail("open %s: %v", n.name, err)
		return
	}
	n.store, n.up, n.epoch = s, true, s.Epoch()
	for _, uid := range simUIDs {
		if sp := s.ledger.space(uid); sp == nil || !sp.dead() {
			if err := s.Create(bg, uid, 1); err != nil {
				w.fail("create: %v", err)
			}
		}
	}
	n.dead = 0
	s.commits.sync()
	if w.writes[n.epoch] == nil {
		w.writes[n.epoch] = map[uint64]*simWrite{}
	}
	for seq := range w.writes[n.epoch] {
		if _, own := s.ledger.covers(); seq > own {
			delete(w.writes[n.epoch], seq) // never durable, never shown to anybody
		}
	}
	n.pending = nil
	if n.list != nil {
		s.SetMembers(n.list)
	}
}

// stop closes a node's store without making anything durable that is not.
func (w *world) stop(n *simNode) {
	if !n.up {
		return
	}
	n.up = false
	w.endSessions(func(s *simSession) bool { return s.client == n || s.server == n })
	n.store.Close()
}

func (w *world) endSessions(which func(*simSession) bool) {
	w.sessions = slices.DeleteFunc(w.sessions, func(s *simSession) bool {
		if which(s) {
			s.in.close()
			return true
		}
		return false
	})
}

// crash stops a node and loses what was not synced.
func (w *world) crash(n *simNode) {
	after := n.fs.CrashClone(vfs.CrashCloneCfg{})
	w.stop(n)
	n.fs = after
}

// tell brings a node the member list and the deleted namespaces as they are now.
func (w *world) tell(n *simNode) {
	if !n.up {
		return
	}
	n.members, n.list = w.version, slices.Clone(w.current)
	if err := n.store.SetMembers(n.list); err != nil {
		w.log("%s may not join: %v", n.name, err)
		w.wipe(n)
		return
	}
	w.endSessions(func(s *simSession) bool {
		if s.client != n {
			return false
		}
		_, ok := n.store.member(s.in.peer)
		return !ok
	})
	if n.dead < len(w.deadUIDs) {
		n.dead = len(w.deadUIDs)
		if err := n.store.SetNamespaces(bg, nil, w.deadUIDs); err != nil {
			w.fail("set namespaces: %v", err)
		}
		n.store.commits.sync()
	}
}

// replace puts a node's new epoch into the control plane's list in place of its old one, or removes it.
func (w *world) replace(n *simNode, listed bool) {
	w.current = slices.DeleteFunc(w.current, func(m Member) bool { return m.Name == n.name })
	if listed {
		w.current = append(w.current, Member{Name: n.name, Epoch: n.epoch})
	}
	w.version++
	w.changed = w.now
}

// wipe gives a node an empty disk.
func (w *world) wipe(n *simNode) {
	w.lose(n)
	w.stop(n)
	n.fs = vfs.NewCrashableMem()
	n.saved, n.skewed = nil, n.skew > 60_000
	w.log("%s wiped", n.name)
	w.start(n)
	w.replace(n, true)
	w.tell(n)
}

func (w *world) linked(a, b *simNode) bool {
	i, j := slices.Index(w.nodes, a), slices.Index(w.nodes, b)
	return a.up && b.up && !w.cut[[2]int{min(i, j), max(i, j)}]
}

func (w *world) nodeOf(epoch replica.Origin) *simNode {
	for _, n := range w.nodes {
		if n.epoch == epoch {
			return n
		}
	}
	return nil
}

// connect makes a client ask a peer for its feed; the request is on its way.
func (w *world) connect(client *simNode, peer Member) *simSession {
	server := w.nodeOf(peer.Epoch)
	if server == nil || server == client || !w.linked(client, server) || client.store.mayTalk(peer.Epoch) != nil {
		return nil
	}
	in, err := client.store.newIntake(peer.Epoch)
	if err != nil {
		w.fail("intake: %v", err)
		return nil
	}
	s := &simSession{client: client, server: server, in: in}
	w.sessions = append(w.sessions, s)
	return s
}

// serve makes a server put its next unit on the wire; live says that it was at the end of the feed.
func (w *world) serve(s *simSession, most int) (live, ok bool) {
	st := s.server.store
	if s.feeder == nil {
		if st.Epoch() != s.in.peer || st.mayTalk(s.client.epoch) != nil {
			return false, false
		}
		s.feeder = replica.NewFeeder(s.client.epoch, s.in.from, s.in.vector)
	}
	if st.mayTalk(s.client.epoch) != nil {
		return false, false
	}
	v := st.ledger.view()
	defer v.snap.Close()
	if !w.rules.ServeUnsynced && st.ledger.durable.Load() < v.staged {
		return false, true // what is shown waits for the disk
	}
	s.feeder.Learn(st.coverage.Has(s.client.epoch))
	b, _, live, err := st.ledger.feedUnit(v, s.feeder, nil, most)
	if err != nil {
		w.fail("feed: %v", err)
	}
	s.wire = append(s.wire, b)
	return live, true
}

// deliver makes a client read one unit; false ends the session.
func (w *world) deliver(s *simSession, b []byte) bool {
	in := bufio.NewReader(bytes.NewReader(b))
	for {
		kind, body, err := replica.ReadFrame(in)
		if err != nil {
			return true
		}
		if _, _, err := s.in.frame(kind, body); err != nil {
			w.log("%s <- %s: %v", s.client.name, s.server.name, err)
			return false
		}
	}
}
