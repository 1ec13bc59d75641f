package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"edged/control/feed"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
	"edged/node/peer"
)

// node-surface §2, --role: a member without the role edge serves nobody, and lets nobody claim every name because of that.
func TestControlAloneHasNoPublicListener(t *testing.T) {
	o := good()
	o.Role, o.Peer = "control", "127.0.0.1:0"
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range o.listeners() {
		if public := strings.HasPrefix(l.name, "http"); public != (l.addr == "") {
			t.Errorf("--%s is %q", l.name, l.addr)
		}
	}
	if z := o.zones(); z != nil {
		t.Errorf("zones are %v", z)
	}
}

// A member's name is one that the control room takes, whatever the host is called.
func TestNodeName(t *testing.T) {
	for _, tt := range []struct{ host, id, want string }{
		{"web1.example.test", "n-abcdefghij", "web1-abcdef"},
		{"", "n-abcdefghij", "node-abcdef"},
		{"-x y", "n-abcdefghij", "node-abcdef"},
		{strings.Repeat("a", 63), "n-abcdefghij", strings.Repeat("a", 50) + "-abcdef"},
		{"web1", "n-ab", "web1-ab"},
	} {
		if got := nodeName(tt.host, tt.id); got != tt.want {
			t.Errorf("%q, %s: %q, want %q", tt.host, tt.id, got, tt.want)
		}
	}
}

// A join that was interrupted after the fleet's answer is not forgotten: the node neither founds a fleet of its own nor serves alone.
func TestAnInterruptedJoinGoesOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "fleet"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fleet", seedsFile), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"", "127.0.0.1:1"} {
		n := &Node{id: "n-one", opt: Options{DataDir: dir, Role: "control,edge", Peer: addr}}
		if err := n.openFleet(); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "--join") {
			t.Errorf("with --peer %q: %v", addr, err)
		}
	}
}

// Roles come from the invite: a node that is started in others says which it has.
func TestRolesAreTheInvites(t *testing.T) {
	n := &Node{id: "n-one"}
	for _, tt := range []struct {
		seeds      []fleetwire.Member
		role, want string // "" is no error
	}{
		{nil, "control,edge", ""},
		{nil, "edge", "--role control,edge"},
		{[]fleetwire.Member{{ID: "n-one", Edge: true}, {ID: "n-two", Control: true}}, "control,edge", "--role edge"},
		{[]fleetwire.Member{{ID: "n-one", Edge: true}}, "edge", ""},
		{[]fleetwire.Member{{ID: "n-one", Control: true}}, "edge", "--role control"},
		{[]fleetwire.Member{{ID: "n-one", Control: true}}, "control", ""},
	} {
		n.opt.Role = tt.role
		err := n.checkRoles(&fleet{self: n.id, seeds: tt.seeds})
		if (err != nil) != (tt.want != "") || err != nil && !strings.HasSuffix(fault.Detail(err), "start it with "+tt.want) {
			t.Errorf("%s as %v: %v", tt.role, tt.seeds, err)
		}
	}
}

// --invite @FILE keeps the secret out of the process's arguments.
func TestInviteFromAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "invite")
	if err := os.WriteFile(name, []byte("edged_invite_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &Node{opt: Options{Invite: "@" + name}}
	if got, err := n.invite(); got != "edged_invite_x\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	n.opt.Invite = "@" + name + ".gone"
	if _, err := n.invite(); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "--invite") {
		t.Errorf("a file that is gone: %v", err)
	}
	n.opt.Invite = "edged_invite_y"
	if got, err := n.invite(); got != "edged_invite_y" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// node-surface §5: /readyz says why a member should get no traffic: it has no plan, withholds what can be revoked, is drained or removed.
func TestReadinessOfAMember(t *testing.T) {
	cut := false
	open := func() *feed.Gate {
		return feed.NewGate(time.Minute, func() (time.Time, bool) { return time.Now().Add(-time.Hour), cut }, nil, slog.New(slog.DiscardHandler))
	}
	n := &Node{id: "n-one", fleet: &fleet{gate: open()}}
	problem := func() string {
		out := map[string]string{}
		n.fleetProblems(out)
		return out["plan"]
	}
	if got := problem(); !strings.Contains(got, "no plan") {
		t.Errorf("without a plan: %q", got)
	}
	n.fleet.members.Store(&map[string]*plan.Member{})
	if got := problem(); got != "" {
		t.Errorf("with one: %q", got)
	}
	cut = true
	n.fleet.gate = open()
	if got := problem(); !strings.Contains(got, "withheld") {
		t.Errorf("cut off: %q", got)
	}
	if outOfService(&plan.Member{}) != "" || !strings.Contains(outOfService(&plan.Member{Draining: true}), "drains") || !strings.Contains(outOfService(nil), "removed") {
		t.Error("what the fleet wants of this node is not told")
	}
}

// Before there is a plan a member knows whom the fleet named when it joined, and from then on whom a voter named last.
func TestWhoIsKnownBeforeAPlan(t *testing.T) {
	f := &fleet{self: "n-one", seeds: []fleetwire.Member{{ID: "n-two", Control: true}}}
	if got := f.voters(); !slices.Equal(got, []string{"n-two"}) {
		t.Errorf("after the join: %v", got)
	}
	f.told.Store(&[]fleetwire.Member{{ID: "n-two", Control: true}, {ID: "n-three", Control: true, Peer: "three.test:1"}})
	if got := f.voters(); !slices.Equal(got, []string{"n-three", "n-two"}) || f.known()["n-three"].Peer != "three.test:1" {
		t.Errorf("after a voter told: %v", got)
	}
	f.members.Store(&map[string]*plan.Member{"n-four": {ID: "n-four", Control: true}})
	if got := f.voters(); !slices.Equal(got, []string{"n-four"}) {
		t.Errorf("with a plan: %v", got)
	}
}

// docs/fleet.md, Certificates: a member whose certificate has expired while it was off starts, serves on what it has, and says in the log,
// in /readyz and to `edged status` since when, and what to do.
func TestACertificateThatExpiredWhileOff(t *testing.T) {
	ca, err := pki.New(time.Now().Add(-2 * pki.LeafLife))
	if err != nil {
		t.Fatal(err)
	}
	dir, ended := t.TempDir(), time.Now().Add(-pki.LeafLife/2)
	key, csr, err := pki.NewRequest("n-one")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Sign(csr, "n-one", ended.Add(-pki.LeafLife))
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Found(filepath.Join(dir, "fleet"), "n-one", ca.CertPEM(), leaf.PEM, key); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	n := &Node{id: "n-one", opt: Options{DataDir: dir, Role: "control,edge", Peer: "127.0.0.1:1"}, log: slog.New(slog.NewTextHandler(&log, nil)), ready: newReadiness()}
	if err := n.openFleet(); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	n.certificateProblem(reasons)
	for _, want := range []string{"expired on " + ended.UTC().Format(time.DateOnly), "this machine's clock", "edged fleet remove n-one", "a new invite"} {
		if !strings.Contains(reasons["certificate"], want) {
			t.Errorf("/readyz does not say %q: %q", want, reasons["certificate"])
		}
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
}
