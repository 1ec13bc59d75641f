package control

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"edged/control/form"
	"edged/control/plan"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

// A term that ends while it begins leaves nothing behind: a node that leads no more must not take its plan for the newest, nor run crons.
func TestATermThatEndsAtOnce(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	<-n.c.Started()
	n.c.begin(t.Context(), make(chan error, 1))()
	if leads, _ := n.c.Leads(); leads || n.c.leading.Load() != 0 {
		t.Errorf("it leads: %v, in term %d", leads, n.c.leading.Load())
	}
}

// Issue 7: the leader cannot write that it is no member any more once it has lost its vote, so another removes it.
func TestTheLeaderIsRemovedByAnother(t *testing.T) {
	f := startFleet(t, 3, nil)
	leader := f.leader()
	request := func(m *member) fleetwire.JoinRequest {
		_, csr, err := pki.NewRequest(m.name)
		if err != nil {
			t.Fatal(err)
		}
		return fleetwire.JoinRequest{ID: m.name, Name: m.name, Peer: m.name + ".test:7000", CSR: csr}
	}
	if _, err := leader.c.FoundFleet(t.Context(), request(leader)); err != nil {
		t.Fatal(err)
	}
	others := f.others(leader)
	for _, m := range others {
		in := request(m)
		invite, _, err := leader.c.Invite(t.Context(), state.Actor{}, InviteOptions{Control: true, Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		in.InviteID, in.Secret = invite.ID, invite.Secret
		if _, err := leader.c.Join(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	f.poll(func() bool { return others[0].c.state.Member(others[1].name) != nil })
	for path, want := range map[string]int{PathRing: http.StatusServiceUnavailable, PathKept: http.StatusOK} { // two that do not lead must not take each other's
		w := httptest.NewRecorder()
		others[0].c.FleetHandler(func(*http.Request) string { return others[1].name }).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("a voter that does not lead answers %s with %d", path, w.Code)
		}
	}
	if err := leader.c.Remove(t.Context(), state.Actor{}, leader.name, true); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "repeat") {
		t.Fatalf("got %v", err)
	}
	next := f.leader(others...)
	if err := next.c.Remove(t.Context(), state.Actor{}, leader.name, true); err != nil {
		t.Fatal(err)
	}
	if voters, err := next.c.Voters(); err != nil || len(voters) != 2 || next.c.state.Member(leader.name) != nil {
		t.Errorf("voters are %v, %v", voters, err)
	}
}

// Raft leaves some of what is asked while it shuts down unanswered for ever: a caller, and with it a request, would wait as long. So it shuts
// down only once what was asked before is answered, and is asked nothing after that.
func TestNobodyWaitsForARaftThatIsGone(t *testing.T) {
	f := startFleet(t, 2, nil)
	leader := f.leader().c
	r := leader.raft.Load()
	asked, answer := make(chan struct{}), make(chan struct{})
	early, stopped := make(chan error, 1), make(chan error, 1)
	go func() {
		early <- leader.questions.ask(func() raft.Future {
			close(asked)
			<-answer
			return r.VerifyLeader()
		})
	}()
	<-asked
	go func() { stopped <- leader.questions.stop(r) }()
	f.poll(func() bool { // until stop waits
		free := leader.questions.asking.TryRLock()
		if free {
			leader.questions.asking.RUnlock()
		}
		return !free
	})
	close(answer)
	if err := <-early; err != nil {
		t.Errorf("what was asked before the end: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for range 8 { // each would have an even chance to be answered
		if err := leader.verifyLeader(); !errors.Is(err, raft.ErrRaftShutdown) {
			t.Errorf("asked after the end: %v", err)
		}
		if err := leader.passLeadership(); !errors.Is(err, raft.ErrRaftShutdown) {
			t.Errorf("asked after the end: %v", err)
		}
	}
}

// A member without a control room knows which keys its plan needs, and takes them.
func TestKeysOfAFollower(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	<-n.c.Started()
	box, err := n.c.secrets.ring.Seal([]byte("value"), inputContext("default", "v", "KEY")...)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v := &plan.Version{UID: "v", Tenant: "default", Secrets: map[string][]byte{"KEY": box}}
	d := &plan.Delta{Versions: plan.Changes[plan.Version]{Put: []*plan.Version{v}}}
	keys.Note(d)
	if _, err := keys.Secrets(v); err == nil || !keys.Lacks(d) {
		t.Errorf("a key that is not here: %v, lacks %v", err, keys.Lacks(d))
	}
	if err := keys.Take(n.c.secrets.ring.File()); err != nil {
		t.Fatal(err)
	}
	if got, err := keys.Secrets(v); err != nil || got["KEY"] != "value" || keys.Lacks(d) {
		t.Errorf("with the key it is %q, %v, lacks %v", got["KEY"], err, keys.Lacks(d))
	}
}

// A rotated key is on most voters before anything is sealed with it, and is given out by the leader alone: voters that took each other's
// would not get it.
func TestRotationSpreadsTheKey(t *testing.T) {
	var f *fleet
	f = newFleet(t, func(name string, o *Options) {
		o.Fleet.Keys = func(context.Context) error {
			return f.nodes[name].c.TakeRing(f.nodes[f.nodes[name].c.leader()].c.secrets.ring.File())
		}
	})
	f.found(t.TempDir())
	f.grow("n-2")
	f.grow("n-3")
	leader := f.leader()
	others := f.others(leader)
	if _, err := leader.c.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range others {
		if !slices.Contains(m.c.secrets.ring.IDs(), leader.c.secrets.ring.Current()) {
			t.Errorf("%s has not the key", m.name)
		}
		f.wires.cutOff(m.name)
	}
	if _, err := leader.c.RotateKey(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without the others: %v", err)
	}
}

// A member that waits for its vote has no plan and runs nothing: ends are confirmed without it.
func TestAMemberWithoutVoteHoldsUpNothing(t *testing.T) {
	f := newFleet(t, nil)
	first := f.found(t.TempDir())
	f.join("n-2")
	worker := first.made(form.ModuleWorkerURL, "w", spec{})
	version := first.version(worker, "v", "fetch")
	deployment := first.made(form.WorkerDeploymentURL, "d", weighted(worker, version, 10000))
	first.end(first.del(deployment))
}
