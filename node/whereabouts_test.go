package node

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"edged/control/plan"
	"edged/internal/fleetwire"
	"edged/kv"
)

// Where members are may be told by others; who is a member the plan alone says, and a newer plan ends what was told.
func TestPlacesThatWereTold(t *testing.T) {
	f := &fleet{self: "n-a"}
	n := &Node{id: "n-a", fleet: f}
	members := map[string]*plan.Member{"n-a": {ID: "n-a", Peer: "a:1", Control: true}, "n-b": {ID: "n-b", Peer: "b:1", Control: true}}
	f.members.Store(&members)
	if err := n.learn([]fleetwire.Member{{ID: "n-a", Peer: "a:2"}, {ID: "n-b", Peer: "b:2"}, {ID: "n-c", Peer: "c:2", Control: true}, {ID: "B A D"}}); err != nil {
		t.Fatal(err)
	}
	known := f.known()
	if len(known) != 2 || known["n-b"].Peer != "b:2" || !known["n-b"].Control || known["n-a"].Peer != "a:1" {
		t.Errorf("known are %+v", known)
	}
	if members["n-b"].Peer != "b:1" {
		t.Error("the plan's own record was changed")
	}
	if n.learn(nil) == nil || n.learn([]fleetwire.Member{{ID: "B A D"}}) == nil {
		t.Error("a list of nobody is taken")
	}
	if err := n.lookForVoters(t.Context()); err != nil || f.told.Load() != nil {
		t.Errorf("what was told and did not help is kept: %v", err)
	}
}

// A member that no voter hears is told of once in a while, and not at once.
func TestLostContactIsSaid(t *testing.T) {
	var c contact
	at := time.Unix(1000, 0)
	for _, tt := range []struct {
		after   time.Duration
		reached bool
		say     bool
	}{
		{0, false, false}, {lostAfter - 1, false, false}, {lostAfter, false, true}, {lostAfter + time.Second, false, false},
		{lostAfter + lostAgain, false, true}, {lostAfter + lostAgain + 1, true, false}, {lostAfter + lostAgain + 2, false, false},
	} {
		if got := c.note(tt.reached, at.Add(tt.after)); got != tt.say {
			t.Errorf("after %v, reached %v: said %v", tt.after, tt.reached, got)
		}
	}
}

// Settings that are others at a voter are named with both values; what that does not tell is nothing.
func TestDifferingSettings(t *testing.T) {
	own := map[string]string{"--endpoint-domain": "a.test", "--egress": "none", "--custom-domain-zones": "*"}
	for _, tt := range []struct {
		theirs map[string]string
		want   string
	}{
		{nil, ""}, {map[string]string{"--egress": "none", "--novel": "x"}, ""},
		{map[string]string{"--endpoint-domain": "b.test", "--egress": "public"}, `--egress is "none" here and "public" there; --endpoint-domain is "a.test" here and "b.test" there`},
	} {
		if got := strings.Join(differing(own, tt.theirs), "; "); got != tt.want {
			t.Errorf("%v: %s", tt.theirs, got)
		}
	}
}

// A namespace that a plan of before had, and this one has not, is deleted after the start; those of the plan stay.
func TestLeftNamespacesAreDeleted(t *testing.T) {
	store, err := kv.Open(kv.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := &Node{id: "n-a", fleet: &fleet{self: "n-a"}, stores: stores{kv: store}, log: slog.New(slog.DiscardHandler)}
	if err := store.Create(t.Context(), "left", homeEpoch); err != nil {
		t.Fatal(err)
	}
	d := &plan.Delta{}
	d.Data.Put = []*plan.Data{{UID: "kept", Kind: "kv"}, {UID: "gone", Kind: "kv"}}
	n.applyData(d)
	gone := &plan.Delta{}
	gone.Data.Gone = []string{"gone"}
	n.applyData(gone)
	n.deleteUnplanned(t.Context(), store.Namespaces())
	if here := store.Namespaces(); len(here) != 1 || here[0] != "kept" {
		t.Errorf("here are %v", here)
	}
}

// A member that lost its certificate is told what to do, and neither founds a fleet nor joins anew with what it holds.
func TestLostCertificate(t *testing.T) {
	dir := t.TempDir()
	store, err := plan.OpenStore(dir+"/plan", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	n := &Node{id: "n-a", opt: Options{DataDir: dir, Role: "edge", Peer: "127.0.0.1:0"}, log: slog.New(slog.DiscardHandler)}
	if err := n.openFleet(); err == nil || !strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), "edged fleet remove n-a") {
		t.Errorf("got %v", err)
	}
}
