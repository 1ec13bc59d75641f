package control

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

const fleetPath = "/operator/v1/fleet/"

// asking is what a node with the ID "n-NAME" says when it founds or joins.
func asking(t testing.TB, name string) fleetwire.JoinRequest {
	t.Helper()
	_, csr, err := pki.NewRequest("n-" + name)
	if err != nil {
		t.Fatal(err)
	}
	return fleetwire.JoinRequest{ID: "n-" + name, Name: name, Peer: name + ".test:7000", Gossip: name + ".test:7001", KVEpoch: 3, CSR: csr}
}

// startFounder starts a node n-one that has founded a fleet.
func startFounder(t testing.TB, dir string, change func(*Options)) (*node, fleetwire.JoinAnswer) {
	t.Helper()
	n := startNode(t, dir, func(o *Options) {
		o.NodeID = "n-one"
		if change != nil {
			change(o)
		}
	})
	a, err := n.c.FoundFleet(t.Context(), asking(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	return n, a
}

// invite makes an invite over the operators' door.
func (n *node) invite(roles ...string) fleetwire.Invite {
	n.t.Helper()
	body := spec{"seconds": 3600}
	for _, r := range roles {
		body[r] = true
	}
	a := n.do("POST", fleetPath+"invites", body)
	a.is(n.t, 200, "")
	i, err := fleetwire.ParseInvite(a.text(n.t, "invite"))
	if err != nil {
		n.t.Fatal(err)
	}
	return i
}

// join makes the node with a name a member.
func (n *node) join(name string, roles ...string) (fleetwire.JoinRequest, fleetwire.JoinAnswer) {
	n.t.Helper()
	i, in := n.invite(roles...), asking(n.t, name)
	in.InviteID, in.Secret = i.ID, i.Secret
	a, err := n.c.Join(n.t.Context(), in)
	if err != nil {
		n.t.Fatal(err)
	}
	return in, a
}

// certifies fails the test unless the answer's leaf is that of a member, by the answer's root.
func certifies(t testing.TB, a fleetwire.JoinAnswer, node string) *x509.Certificate {
	t.Helper()
	root, err := pki.ParseCertificate(a.CAPEM)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.ParseCertificate(a.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Error(err)
	}
	if id, err := pki.NodeOf(leaf); err != nil || id != node {
		t.Errorf("the certificate is that of %q (%v), want %s", id, err, node)
	}
	return leaf
}

// A node joins with an invite of the door: it gets a certificate of the fleet that the invite names, the keys, and all members. The
// same request gives it a fresh certificate and no second member; anybody else's is refused. All of it outlives a restart.
func TestJoiningAFleet(t *testing.T) {
	dir := t.TempDir()
	n, founded := startFounder(t, dir, nil)
	certifies(t, founded, "n-one")
	i, in := n.invite("edge"), asking(t, "two")
	in.InviteID, in.Secret = i.ID, i.Secret
	a, err := n.c.Join(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	leaf := certifies(t, a, "n-two")
	if root := must(pki.ParseCertificate(a.CAPEM)); pki.Fingerprint(root) != i.CA || !bytes.Equal(a.CAPEM, founded.CAPEM) {
		t.Error("the invite names another authority")
	}
	if file := must(os.ReadFile(filepath.Join(dir, keyFile))); !bytes.Equal(a.RingFile, file) {
		t.Error("the ring is not the node key file")
	}
	if raw, err := base64.StdEncoding.DecodeString(a.GossipKey); err != nil || len(raw) != 32 || a.GossipKey != founded.GossipKey {
		t.Errorf("the gossip key is that of another, or none: %v", err)
	}
	want := []fleetwire.Member{{ID: "n-one", Control: true, Edge: true, Peer: "one.test:7000", Gossip: "one.test:7001"}, {ID: "n-two", Edge: true, Peer: "two.test:7000", Gossip: "two.test:7001"}}
	if !slices.Equal(a.Members, want) {
		t.Errorf("members are %v, want %v", a.Members, want)
	}
	if m := n.lastPlan().Members["n-two"]; m == nil || !m.Edge || m.Control || m.KVEpoch != 3 || m.Serial != pki.SerialOf(leaf) {
		t.Errorf("when the join is answered the plan has %+v", m)
	}
	other := asking(t, "three")
	other.InviteID, other.Secret = i.ID, i.Secret
	if _, err := n.c.Join(t.Context(), other); fault.CodeOf(err) != fault.Denied || !strings.Contains(fault.Detail(err), "FL-3.3") {
		t.Errorf("a second node joins with the invite: %v", err)
	}
	n.stop()

	n = startNode(t, dir, func(o *Options) { o.NodeID = "n-one" })
	again, err := n.c.Join(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if fresh := certifies(t, again, "n-two"); pki.SerialOf(fresh) == pki.SerialOf(leaf) || n.c.state.Member("n-two").Serial != pki.SerialOf(fresh) || len(again.Members) != 2 {
		t.Errorf("joining again gives %+v", again.Members)
	}
	back, err := n.c.FoundFleet(t.Context(), asking(t, "one")) // the founder lost its certificate
	if err != nil {
		t.Fatal(err)
	}
	certifies(t, back, "n-one")
	if !bytes.Equal(back.CAPEM, founded.CAPEM) || back.GossipKey != founded.GossipKey {
		t.Error("the founder founded another fleet")
	}
	if _, err := n.c.FoundFleet(t.Context(), asking(t, "nine")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a stranger founds on the fleet's control state: %v", err)
	}
}

// What a node says is judged before anything else is looked at, and an invite's secret before anything is signed.
func TestUnfitJoins(t *testing.T) {
	n, _ := startFounder(t, t.TempDir(), nil)
	i := n.invite("edge")
	for name, row := range map[string]struct {
		say  func(*fleetwire.JoinRequest)
		code fault.Code
	}{
		"no ID":            {func(r *fleetwire.JoinRequest) { r.ID = "" }, fault.Invalid},
		"an odd ID":        {func(r *fleetwire.JoinRequest) { r.ID = "n-A" }, fault.Invalid},
		"no name":          {func(r *fleetwire.JoinRequest) { r.Name = "" }, fault.Invalid},
		"a long name":      {func(r *fleetwire.JoinRequest) { r.Name = strings.Repeat("x", 64) }, fault.Invalid},
		"no peer":          {func(r *fleetwire.JoinRequest) { r.Peer = "" }, fault.Invalid},
		"no port":          {func(r *fleetwire.JoinRequest) { r.Peer = "host" }, fault.Invalid},
		"no host":          {func(r *fleetwire.JoinRequest) { r.Peer = ":7000" }, fault.Invalid},
		"an odd port":      {func(r *fleetwire.JoinRequest) { r.Peer = "host:http" }, fault.Invalid},
		"a line in a host": {func(r *fleetwire.JoinRequest) { r.Peer = "ho\nst:1" }, fault.Invalid},
		"a long host":      {func(r *fleetwire.JoinRequest) { r.Peer = strings.Repeat("x", 255) + ":1" }, fault.Invalid},
		"odd gossip":       {func(r *fleetwire.JoinRequest) { r.Gossip = "x" }, fault.Invalid},
		"many labels": {func(r *fleetwire.JoinRequest) {
			r.Labels = map[string]string{"a": "", "b": "", "c": "", "d": "", "e": "", "f": "", "g": "", "h": "", "i": ""}
		}, fault.Invalid},
		"a long label":    {func(r *fleetwire.JoinRequest) { r.Labels = map[string]string{"a": strings.Repeat("x", 65)} }, fault.Invalid},
		"an odd label":    {func(r *fleetwire.JoinRequest) { r.Labels = map[string]string{"a b": "c"} }, fault.Invalid},
		"no request":      {func(r *fleetwire.JoinRequest) { r.CSR = nil }, fault.Invalid},
		"another's":       {func(r *fleetwire.JoinRequest) { r.CSR = asking(t, "three").CSR }, fault.Invalid},
		"a wrong secret":  {func(r *fleetwire.JoinRequest) { r.Secret += "x" }, fault.Denied},
		"a wrong invite":  {func(r *fleetwire.JoinRequest) { r.InviteID += "x" }, fault.Denied},
		"no secret":       {func(r *fleetwire.JoinRequest) { r.Secret = "" }, fault.Denied},
		"a secret and no": {func(r *fleetwire.JoinRequest) { r.Secret, r.CSR = "x", nil }, fault.Denied},
		"a name in use":   {func(r *fleetwire.JoinRequest) { r.Name = "one" }, fault.Conflict},
	} {
		in := asking(t, "two")
		in.InviteID, in.Secret = i.ID, i.Secret
		row.say(&in)
		a, err := n.c.Join(t.Context(), in)
		if fault.CodeOf(err) != row.code || a.CertPEM != nil || a.RingFile != nil || a.GossipKey != "" || a.Members != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
		if err != nil && strings.Contains(err.Error(), i.Secret) {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
	if len(n.c.state.Fleet().Members) != 1 {
		t.Error("somebody joined")
	}
	in := asking(t, "two") // none of it used the invite up
	in.InviteID, in.Secret = i.ID, i.Secret
	if _, err := n.c.Join(t.Context(), in); err != nil {
		t.Error(err)
	}
}

// Two nodes that join with one invite at the same moment: one gets in.
func TestJoinRace(t *testing.T) {
	n, _ := startFounder(t, t.TempDir(), nil)
	i := n.invite("edge")
	var all sync.WaitGroup
	errs := make([]error, 8)
	for k := range errs {
		in := asking(t, "x"+string(rune('a'+k)))
		in.InviteID, in.Secret = i.ID, i.Secret
		all.Go(func() { _, errs[k] = n.c.Join(t.Context(), in) })
	}
	all.Wait()
	in := 0
	for _, err := range errs {
		switch {
		case err == nil:
			in++
		case fault.CodeOf(err) != fault.Denied:
			t.Error(err)
		}
	}
	if in != 1 || len(n.c.state.Fleet().Members) != 2 {
		t.Errorf("%d joins were answered, members are %v", in, n.c.state.Fleet().Members)
	}
}

// A member gets another certificate as long as it is one; a removed one gets nothing, by any way, and cannot come back.
func TestRenewAndRemove(t *testing.T) {
	n, _ := startFounder(t, t.TempDir(), nil)
	in, a := n.join("two", "edge")
	_, csr, err := pki.NewRequest("n-two")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := n.c.Renew(t.Context(), "n-two", csr)
	if err != nil {
		t.Fatal(err)
	}
	fresh := certifies(t, fleetwire.JoinAnswer{CAPEM: a.CAPEM, CertPEM: leaf}, "n-two")
	if got := n.lastPlan().Members["n-two"].Serial; got != pki.SerialOf(fresh) {
		t.Errorf("the plan has the serial %s, want %s", got, pki.SerialOf(fresh))
	}
	if _, err := n.c.Renew(t.Context(), "n-two", asking(t, "one").CSR); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a request for another node: %v", err)
	}
	n.do("DELETE", fleetPath+"nodes/two", nil).is(t, 200, "")
	if n.lastPlan().Members["n-two"] != nil {
		t.Error("when the removal is answered the plan still has the member")
	}
	if _, err := n.c.Renew(t.Context(), "n-two", csr); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a removed node renews: %v", err)
	}
	if err := n.c.Report(t.Context(), "n-two", MemberReport{Peer: "a:1"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a removed node reports: %v", err)
	}
	if _, err := n.c.Join(t.Context(), in); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a removed node joins with its old invite: %v", err)
	}
	i := n.invite("edge")
	in.InviteID, in.Secret = i.ID, i.Secret
	if _, err := n.c.Join(t.Context(), in); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Detail(err), "empty data directory") {
		t.Errorf("a removed node joins: %v", err)
	}
}

// No secret of a fleet is in the state, its log, the plan, the audit, a list or a log line: not the invites', not the authority's and
// gossip's keys, not the ring.
func TestFleetShowsNoSecret(t *testing.T) {
	var lines lockedBuffer
	dir := t.TempDir()
	n, a := startFounder(t, dir, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	open, used := n.invite("edge"), fleetwire.JoinRequest{}
	used, _ = n.join("two", "edge")
	bad := asking(t, "three")
	bad.InviteID, bad.Secret = open.ID, "guessed-"+open.Secret
	_, err := n.c.Join(t.Context(), bad)
	key, kerr := n.c.secrets.ring.Open(n.c.state.Fleet().Authority.Key, authorityContext...)
	if kerr != nil {
		t.Fatal(kerr)
	}
	gossip, _ := base64.StdEncoding.DecodeString(a.GossipKey)
	secrets := map[string][]byte{
		"open invite": []byte(open.Secret), "used invite": []byte(used.Secret), "CA key": bytes.Fields(key)[5],
		"gossip key": gossip, "gossip key as text": []byte(a.GossipKey), "ring": bytes.Fields(a.RingFile)[5],
	}
	var frozen bytes.Buffer
	if err := n.c.state.Freeze().Write(&frozen); err != nil {
		t.Fatal(err)
	}
	plan := must(json.Marshal(n.lastPlan()))
	shown := map[string][]byte{
		"state": frozen.Bytes(), "plan": plan, "nodes": n.do("GET", fleetPath+"nodes", nil).body,
		"audit": n.do("GET", "/operator/v1/control/audit", nil).body, "error": []byte(err.Error()), "backup": n.do("GET", "/operator/v1/control/backup", nil).body,
	}
	n.stop()
	shown["log"] = lines.bytes()
	if err := filepath.WalkDir(filepath.Join(dir, "control"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			shown[path] = must(os.ReadFile(path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for where, text := range shown {
		for what, secret := range secrets {
			if len(secret) < 16 || bytes.Contains(text, secret) {
				t.Errorf("%s shows the %s", where, what)
			}
		}
	}
}

// A rotation of the node key seals the authority anew and forgets the old key, and the fleet goes on; a member takes the new ring and
// keeps what its own state still needs.
func TestRotationOfAFleet(t *testing.T) {
	n, a := startFounder(t, t.TempDir(), nil)
	n.do("POST", "/operator/v1/control/rotate-key", nil).is(t, 200, "")
	if ids := n.c.secrets.ring.IDs(); len(ids) != 1 {
		t.Errorf("the ring keeps %v", ids)
	}
	_, joined := n.join("two", "edge")
	certifies(t, joined, "n-two")
	if joined.GossipKey != a.GossipKey || bytes.Equal(joined.RingFile, a.RingFile) {
		t.Error("the gossip key moved, or the ring did not")
	}
	m := startNode(t, t.TempDir(), nil)
	own := m.c.secrets.ring.Current()
	if err := m.c.TakeRing(joined.RingFile); err != nil {
		t.Fatal(err)
	}
	if got := m.c.secrets.ring.IDs(); len(got) != 2 || got[0] != n.c.secrets.ring.Current() || got[1] != own {
		t.Errorf("after it took the ring it has %v", got)
	}
}

// The home of a store is the node that accepted its create, in the plan too.
func TestHomeIsTheAcceptingNode(t *testing.T) {
	n, _ := startFounder(t, t.TempDir(), func(o *Options) {
		o.Stores = map[string]Store{form.StoreQueue: newFakeStore(), form.StoreKV: newFakeStore()}
	})
	q := n.made(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	kv := n.made(form.KVNamespaceURL, "kv", spec{})
	if err := n.c.plans.reach(t.Context(), n.c.machine.planned.Load()); err != nil {
		t.Fatal(err)
	}
	if p := n.lastPlan(); p.Data[q].Home != "n-one" || p.Data[kv].Home != "" {
		t.Errorf("the homes are %q and %q", p.Data[q].Home, p.Data[kv].Home)
	}
	if home := n.c.state.Resource(q).Home; home != "n-one" { // on record, whoever founded
		t.Errorf("the record has the home %q", home)
	}
	n.join("two", "control")
	n.do("DELETE", fleetPath+"nodes/one", nil).is(t, 409, "conflict")
}

// A control state that is restored has no peers: no members, no authority, no invites. The nodes it knew never join the fleet that it
// may found, and it is home of everything.
func TestRestoredNodeIsAlone(t *testing.T) {
	store := newFakeStore()
	stores := func(o *Options) { o.Stores = map[string]Store{form.StoreQueue: store} }
	n, _ := startFounder(t, t.TempDir(), stores)
	in, _ := n.join("two", "edge")
	q := n.made(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	open := n.invite("edge")
	archive := n.do("GET", "/operator/v1/control/backup", nil)
	archive.is(t, 200, "")
	dir := t.TempDir()
	_, err := Restore(t.Context(), RestoreOptions{Dir: dir, NodeID: "n-new", NodeKey: n.c.secrets.ring.File()}, bytes.NewReader(archive.body))
	if err != nil {
		t.Fatal(err)
	}
	m := startNode(t, dir, func(o *Options) { stores(o); o.NodeID = "n-new" })
	m.token = n.token
	if f := m.c.state.Fleet(); f.Authority != nil || f.Founder != "" || len(f.Members)+len(f.Invites) != 0 {
		t.Errorf("the restored node is in the fleet %+v", f)
	}
	if p := m.lastPlan(); len(p.Members) != 0 || p.Data[q] == nil || p.Data[q].Home != "" {
		t.Errorf("its plan has the members %v and the queue %+v", p.Members, p.Data[q])
	}
	if _, err := m.c.FoundFleet(t.Context(), asking(t, "new")); err != nil {
		t.Fatal(err)
	}
	if home := m.lastPlan().Data[q].Home; home != "n-new" {
		t.Errorf("the queue is at home at %q", home)
	}
	in.InviteID, in.Secret = open.ID, open.Secret
	if _, err := m.c.Join(t.Context(), in); fault.CodeOf(err) != fault.Denied {
		t.Errorf("an invite of the old fleet: %v", err)
	}
	i := m.invite("edge")
	in.InviteID, in.Secret = i.ID, i.Secret
	if _, err := m.c.Join(t.Context(), in); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Detail(err), "FL-4.1") {
		t.Errorf("a node of the old fleet: %v", err)
	}
}

// An invite that has run out is denied; the clock is that of who accepts.
func TestExpiredInvite(t *testing.T) {
	n, _ := startFounder(t, t.TempDir(), nil)
	i, in := n.invite("edge"), asking(t, "two")
	in.InviteID, in.Secret = i.ID, i.Secret
	later := time.Now().Add(2 * time.Hour).UnixMilli()
	if _, err := n.c.submit(&state.Command{Kind: state.Sweep, At: later}); err != nil { // the state's time never goes back
		t.Fatal(err)
	}
	if _, err := n.c.Join(t.Context(), in); fault.CodeOf(err) != fault.Denied || !strings.Contains(fault.Detail(err), "FL-3.2") {
		t.Errorf("an expired invite: %v", err)
	}
}
