package node

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// memberStatus is what a member can say of itself without the control room (GET /status on the admin listener, for this machine alone).
type memberStatus struct {
	Node     string   `json:"node"`
	Name     string   `json:"name"`
	Roles    []string `json:"roles"`
	Program  string   `json:"program"`
	Level    int      `json:"level"`
	Members  int      `json:"members"`           // of the fleet, as far as it knows; 0 on a node alone
	Voters   []string `json:"voters"`            // control origins, of which it knows
	Removed  string   `json:"removed,omitempty"` // how it knows that it was removed from the fleet
	Upstream string   `json:"upstream,omitempty"`
	Follows  bool     `json:"follows"` // a feed from the upstream is open

	Index            uint64 `json:"index"`            // of the plan that it serves
	ConfirmedSeconds *int64 `json:"confirmedSeconds"` // since that was known to be the newest; null if it never was
	CutOff           bool   `json:"cutOff"`
	Withheld         bool   `json:"withheld"` // what can be revoked, for it is cut off too long

	Workers int `json:"workers"` // that it serves
	Broken  int `json:"broken"`  // versions that it cannot run

	KV          *kvStanding `json:"kv,omitempty"`          // absent on a node alone
	Certificate string      `json:"certificate,omitempty"` // when it ends, RFC 3339
}

// kvStanding is how the KV store stands among the others'.
type kvStanding struct {
	Peers        int    `json:"peers"`
	Records      uint64 `json:"records"`      // known to be written elsewhere and not here
	BehindMillis int64  `json:"behindMillis"` // the most that it is behind one of them
}

func (n *Node) status() memberStatus {
	s := memberStatus{Node: n.id, Name: n.name(), Program: n.opt.Version, Level: n.program().Level, Voters: []string{}}
	for _, role := range []string{"control", "edge"} {
		if n.opt.hasRole(role) {
			s.Roles = append(s.Roles, role)
		}
	}
	s.Workers, s.Broken = n.versions.counts()
	f := n.fleet
	if f == nil {
		return s
	}
	known := f.known()
	s.Members = len(known)
	for _, m := range known {
		if m.Control && m.Origin != "" {
			s.Voters = append(s.Voters, m.Origin)
		}
	}
	slices.Sort(s.Voters)
	s.Removed = f.left()
	since, cut := n.cutOff()
	s.Index = f.server.Index()
	if n.follower != nil {
		since, cut = n.follower.feed.CutOff()
		s.Upstream, s.Follows = n.follower.feed.Following()
	}
	if s.CutOff, s.Withheld = cut, f.gate.Closed(); !since.IsZero() {
		seconds := int64(time.Since(since) / time.Second)
		s.ConfirmedSeconds = &seconds
	}
	lag := n.stores.kv.Lag()
	s.KV = &kvStanding{Peers: len(lag.Peers)}
	for _, p := range lag.Peers {
		s.KV.Records += p.Records
		s.KV.BehindMillis = max(s.KV.BehindMillis, p.Behind.Milliseconds())
	}
	s.Certificate = f.peers.NotAfter().UTC().Format(time.RFC3339)
	return s
}

// counts returns how many workers are served and how many versions cannot be run.
func (v *versions) counts() (workers, broken int) {
	v.byUID.Range(func(any, any) bool { workers++; return true })
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, lv := range v.loaded {
		if lv.err != nil {
			broken++
		}
	}
	return workers, broken
}

func (n *Node) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(n.status()) // a client that left asks again
}

// thisMachineOnly answers 404 to peers on other machines: the admin listener may be on an address that those reach, too.
func thisMachineOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if err != nil || !from.Addr().Unmap().IsLoopback() && (at == nil || !sameHost(from.Addr(), at)) {
			http.NotFound(w, r)
			return
		}
		next(w, r)
	}
}

func sameHost(from netip.Addr, at net.Addr) bool {
	to, err := netip.ParseAddrPort(at.String())
	return err == nil && to.Addr().Unmap() == from.Unmap()
}
