package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/plan"
	"edged/control/state"
	"edged/internal/fault"
)

// A node that was alone becomes the first of three with the log, the state and the plan that it has; then it may go.
func TestSingleNodeGrows(t *testing.T) {
	dir := t.TempDir()
	lone := startWithStores(t, dir, newFakes(), func(o *Options) { o.NodeID = "n-1" })
	before := lone.made(form.ModuleWorkerURL, "before", spec{})
	token := lone.token
	lone.stop()

	f := newFleet(t, nil)
	first := f.found(dir)
	if first.token != token {
		t.Error("the token changed")
	}
	second, third := f.grow("n-2"), f.grow("n-3")
	for _, m := range []*member{first, second, third} {
		m.get(before).is(t, 200, "")
		if m.lastPlan().Workers[before] == nil {
			t.Errorf("%s does not plan what there was", m.name)
		}
	}
	if voters, err := third.c.Voters(); err != nil || fmt.Sprint(voters) != "[n-1 n-2 n-3]" {
		t.Errorf("voters are %v, %v", voters, err)
	}
	first.stop()
	after := second.sure(form.ModuleWorkerURL, "after", spec{})
	f.poll(func() bool { return third.lastPlan().Workers[after] != nil })
	f.start(first)
	f.poll(func() bool { return first.c.Ready() && first.lastPlan().Workers[after] != nil })
	first.get(after).is(t, 200, "")
}

// A log that is shared cannot be gone on with alone: the node would wait for votes for ever, or, forced, fork the fleet.
func TestSharedLogNeedsItsFleet(t *testing.T) {
	f := startFleet(t, 2, nil)
	m := f.nodes["n-2"]
	m.stop()
	_, err := Open(Options{Dir: m.dir, NodeID: "n-2", ControlOrigin: origin})
	if fault.CodeOf(err) != fault.Conflict {
		t.Errorf("got %v, want a Conflict", err)
	}
}

// Issue 7.1: loss of a minority stops nothing and loses nothing; loss of most stops writes and reads, and says so.
func TestLossOfVoters(t *testing.T) {
	f := startFleet(t, 3, nil)
	leader := f.leader()
	others := f.others(leader)
	a := others[0].sure(form.ModuleWorkerURL, "a", spec{}) // handed on to the leader
	leader.get(a).is(t, 200, "")

	leader.stop()
	next := f.leader(others...)
	others[1].settled(func() answer { return others[1].get(a) }).is(t, 200, "")
	b := others[0].sure(form.ModuleWorkerURL, "b", spec{})

	last := f.others(next)
	for _, m := range last {
		if m.up {
			m.stop()
		}
	}
	start := next.create(form.ModuleWorkerURL, "c", spec{})
	start.is(t, 503, "temporarily_unavailable")
	if start.header.Get("Retry-After") == "" || start.text(t, "detail") == "" {
		t.Errorf("the refusal says too little: %v %s", start.header, start.body)
	}
	next.get(b).is(t, 503, "temporarily_unavailable")
	if next.lastPlan().Workers[b] == nil {
		t.Error("the plan was taken away")
	}

	for _, m := range last {
		f.start(m)
	}
	for _, m := range f.nodes {
		for _, uid := range []string{a, b} {
			m.settled(func() answer { return m.get(uid) }).is(t, 200, "")
		}
	}
}

// A leader that was cut off does not know it yet. It must not answer from what it has, and it must not accept.
func TestOldLeaderServesNothingStale(t *testing.T) {
	f := newFleet(t, nil)
	f.beat = 8 * beat // the founder notices late
	old := f.found(t.TempDir())
	f.beat = 2 * beat
	second := f.grow("n-2")
	third := f.grow("n-3")
	if f.leader() != old {
		t.Fatal("the founder has not kept the lead")
	}
	uid := old.sure(form.ModuleWorkerURL, "w", spec{})

	f.wires.cutOff("n-1")
	next := f.leader(second, third)
	next.end(next.del(uid))
	if !f.leads(old) {
		t.Fatal("the old leader has noticed: this shows nothing")
	}
	old.get(uid).is(t, 503, "temporarily_unavailable")
	old.create(form.ModuleWorkerURL, "x", spec{}).is(t, 503, "temporarily_unavailable")
	f.wires.heal()
	for _, m := range []*member{old, second, third} {
		m.settled(func() answer { return m.get(uid) }).is(t, 410, "gone")
	}
}

// A call that was handed on to a leader who vanishes, connections and all, is answered when there is another: its caller can repeat it.
func TestCallsDoNotWaitForALeaderOfBefore(t *testing.T) {
	f := startFleet(t, 3, nil)
	old := f.leader()
	other := f.others(old)[0]
	other.settled(func() answer { return other.get("r-none") }).is(t, 404, "not_found") // it knows who leads
	f.wires.hold(old.name)
	other.get("r-none").is(t, 503, "temporarily_unavailable")
	other.settled(func() answer { return other.get("r-none") }).is(t, 404, "not_found")
	f.wires.heal()
}

// A voter that got no log for so long that the leader's does not reach back is given the state, and so is a new one.
func TestStateIsStreamed(t *testing.T) {
	f := newFleet(t, func(_ string, o *Options) { o.SnapshotCommands = 16 })
	first := f.found(t.TempDir())
	var uids []string
	for i := range 200 {
		uids = append(uids, first.made(form.ModuleWorkerURL, fmt.Sprint("w", i), spec{}))
	}
	if err := first.c.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	second := f.grow("n-2")
	third := f.grow("n-3")
	if n := len(second.lastPlan().Workers); n != len(uids) {
		t.Errorf("the new voter plans %d workers", n)
	}

	third.stop()
	for _, uid := range uids[:100] {
		first.end(first.del(uid))
	}
	leader := f.leader(first, second)
	if err := leader.c.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	f.start(third)
	f.poll(func() bool { return third.c.Ready() && len(third.lastPlan().Workers) == 100 })
	// From the snapshot it goes on with the log.
	uid := first.sure(form.ModuleWorkerURL, "more", spec{})
	f.poll(func() bool { return third.lastPlan().Workers[uid] != nil })
}

// A member that cannot be reached becomes no voter, and the one voter there is goes on deciding.
func TestUnreachableMemberBecomesNoVoter(t *testing.T) {
	f := newFleet(t, nil)
	first := f.found(t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := first.c.AddVoter(ctx, "nobody"); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if voters, err := first.c.servers(); err != nil || len(voters) != 1 {
		t.Errorf("the log goes to %v, %v", voters, err)
	}
	first.made(form.ModuleWorkerURL, "w", spec{})
	if err := first.c.RemoveVoter(t.Context(), "n-1"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the last voter left: %v", err)
	}
}

// A voter leaves, the leader too, but never so that those who are left could decide nothing.
func TestVotersLeave(t *testing.T) {
	f := startFleet(t, 3, nil)
	leader := f.leader()
	others := f.others(leader)
	others[0].stop()
	if err := leader.c.RemoveVoter(t.Context(), others[1].name); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the voter that is needed left: %v", err)
	}
	if err := leader.c.RemoveVoter(t.Context(), others[0].name); err != nil {
		t.Error(err)
	}
	if err := leader.c.RemoveVoter(t.Context(), leader.name); err != nil {
		t.Error(err)
	}
	f.leader(others[1])
	others[1].sure(form.ModuleWorkerURL, "w", spec{})
	if voters, err := others[1].c.Voters(); err != nil || len(voters) != 1 || voters[0] != others[1].name {
		t.Errorf("voters are %v, %v", voters, err)
	}
}

// data-plane §2: bytes are on most voters before the command that refers to them, so that whoever leads next can use them; the others
// take them later. What nobody refers to any more is let go everywhere.
func TestArtifactsAreOnMostVoters(t *testing.T) {
	f := startFleet(t, 3, nil)
	leader := f.leader()
	late := f.others(leader)[1]
	f.wires.cutOff(late.name)
	worker := leader.sure(form.ModuleWorkerURL, "w", spec{})
	bundle := leader.code("code", "fetch")
	digest, _ := artifact.ParseDigest(leader.c.state.Resource(bundle).Index.Files[0].SHA256)
	has := func(m *member) bool {
		blob, err := m.c.artifacts.Open(digest)
		if err == nil {
			blob.Close()
		}
		return err == nil
	}
	if !has(f.others(leader)[0]) {
		t.Error("only the leader has the bytes")
	}
	if has(late) {
		t.Fatal("the wire is not cut")
	}
	f.wires.heal()
	f.poll(func() bool { return has(late) })
	f.poll(func() bool { _, whole, err := late.c.artifacts.Custody(bundle); return whole && err == nil })
	leader.stop()
	next := f.others(leader)[0]
	next.sure(form.WorkerVersionURL, "v", spec{"worker": ref(worker), "bundle": ref(bundle), "handlers": []string{"fetch"}})
}

// data-plane §2: a voter uses no plan before it has the bytes of what the plan deploys. When nobody gives them it uses the plan without, and
// once more when they have come.
func TestPlanWaitsForItsBytes(t *testing.T) {
	var refused atomic.Bool
	var used atomic.Int64
	var whole sync.Map // of each bundle, when the plan with it was used
	var f *fleet
	f = newFleet(t, func(name string, o *Options) {
		if name != "n-3" {
			return
		}
		client, onPlan := *o.Fleet.Client, o.OnPlan
		client.Transport = refusing{client.Transport.(plainly), "/blob/v1/", &refused}
		o.Fleet.Client = &client
		o.OnPlan = func(d *plan.Delta) {
			for _, b := range d.Bundles.Put {
				_, has, err := f.nodes["n-3"].c.artifacts.Custody(b.Resource)
				whole.Store(b.Resource, has && err == nil)
			}
			onPlan(d)
			used.Add(1)
		}
	})
	f.found(t.TempDir())
	f.grow("n-2")
	late := f.grow("n-3")
	missed := func(name string) (hadBytes bool) {
		late.stop()
		uid := f.leader(f.nodes["n-1"], f.nodes["n-2"]).code(name, "fetch")
		f.start(late)
		f.poll(func() bool { _, used := whole.Load(uid); return used })
		has, _ := whole.Load(uid)
		return has.(bool)
	}
	if !missed("one") {
		t.Error("a plan was used before its bytes were here")
	}
	refused.Store(true)
	if missed("two") {
		t.Error("bytes that nobody gave are here")
	}
	was := used.Load()
	refused.Store(false)
	f.poll(func() bool { return used.Load() > was })
}

// refusing is a transport over which no path below a prefix is reached while it is told so.
type refusing struct {
	plainly
	prefix  string
	refused *atomic.Bool
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.refused.Load() && strings.HasPrefix(req.URL.Path, r.prefix) {
		return nil, errors.New("refused")
	}
	return r.plainly.RoundTrip(req)
}

// node-surface §4: an upload that was answered is held by the fleet. With most voters away it is not answered, and after a change of
// leaders it is found.
func TestUploadsSurviveTheLeader(t *testing.T) {
	f := startFleet(t, 3, nil)
	old := f.leader()
	others := f.others(old)
	f.wires.cutOff(others[1].name)
	sum, _ := old.upload("exports fetch")
	f.wires.heal()
	old.stop()
	for _, m := range others {
		m.settled(func() answer { return m.do("GET", "/artifacts/sha256/"+sum, nil) }).is(t, 200, "")
		m.settled(func() answer { return m.do("GET", "/artifacts/sha256/"+sum[1:]+"0", nil) }).is(t, 404, "not_found")
	}
	next := f.leader(others...)
	f.start(old)
	f.wires.hold(old.name) // it is asked and says nothing: the other is enough
	begin := time.Now()
	next.settled(func() answer { return next.do("GET", "/artifacts/sha256/"+sum[2:]+"00", nil) }).is(t, 404, "not_found")
	if took := time.Since(begin); took > askTimeout/2 {
		t.Errorf("one silent voter of three cost %v", took)
	}
	f.wires.heal()
	old.stop()
	f.wires.cutOff(next.name)
	if a := next.do("PUT", "/artifacts/sha256/"+sum, "exports fetch"); a.status != 503 {
		t.Errorf("an upload that only one voter has was answered %d %s", a.status, a.body)
	}
}

// Issue 7.7: the store of a database, bucket or queue stays where it was made. Another leader has its home do what there is to do, waits
// for it, and makes nothing in its place.
func TestStoresStayAtHome(t *testing.T) {
	f := startFleet(t, 3, nil)
	home := f.leader()
	q := home.made(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	kept := home.made(form.QueueURL, "kept", spec{"messageRetentionSeconds": 60})
	if home.fakes["queue"].get(q) == nil {
		t.Fatal("it was not made where it was accepted")
	}
	others := f.others(home)
	f.poll(func() bool {
		if err := home.c.raft.Load().LeadershipTransfer().Error(); err != nil {
			t.Log(err)
		}
		return !f.leads(home)
	})
	next := f.leader(others...)
	next.end(next.settled(func() answer { return next.del(q) }))
	if home.fakes["queue"].get(q) != nil || home.fakes["queue"].removed[q] != 1 {
		t.Error("the home was not asked to remove it")
	}

	f.wires.cutOff(home.name)
	next = f.leader(others...)
	a := next.settled(func() answer {
		return next.do("PUT", root+"/resources/"+kept, spec{"spec": spec{"messageRetentionSeconds": 90}}, "Idempotency-Key", "update-while-away-1",
			"Takoform-Expected-Generation", "1")
	})
	var op answer
	f.poll(func() bool {
		op = next.do("GET", root+"/operations/"+a.text(t, "id"), nil)
		return op.status == 200 && op.text(t, "status") == "reconciling"
	})
	f.wires.heal()
	next.end(a)
	if got := home.fakes["queue"].get(kept); got == nil || got.Queue.RetentionSeconds != 90 {
		t.Errorf("the home has %+v", got)
	}
	for _, m := range others {
		if m.fakes["queue"].calls != 0 {
			t.Errorf("%s did something with a queue that lives elsewhere", m.name)
		}
	}
}

// One runner at a time performs an Operation: the leader's. After a change of leaders the next one performs it again, not beside the first,
// and the store came to be once.
func TestOneRunnerAtATime(t *testing.T) {
	f := startFleet(t, 3, nil)
	release := make(chan struct{})
	var now, most, all atomic.Int32
	for _, m := range f.nodes {
		m.fakes["queue"].before = func(ctx context.Context, what string) error {
			all.Add(1)
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	old := f.leader()
	a := old.create(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	id := a.text(t, "id")
	f.poll(func() bool {
		begun := all.Load() > 0
		for _, m := range f.nodes {
			op := m.c.state.Operation(id)
			begun = begun && op != nil && op.Status == state.Running
		}
		return begun
	})
	f.poll(func() bool { _ = old.c.raft.Load().LeadershipTransfer().Error(); return !f.leads(old) })
	next := f.leader(f.others(old)...)
	f.poll(func() bool { return all.Load() == 2 })
	close(release)
	uid := next.end(a)
	if most.Load() != 1 || old.fakes["queue"].made[uid] != 1 || next.fakes["queue"].made[uid] != 0 {
		t.Errorf("%d at once; made %d times at home, %d elsewhere", most.Load(), old.fakes["queue"].made[uid], next.fakes["queue"].made[uid])
	}
}

// worker-deployment §4: a deployment is gone once no member runs any context of it; one that does not answer has confirmed nothing. The
// same holds for a version that is to be deleted.
func TestRetirementIsConfirmedEverywhere(t *testing.T) {
	var retired [3]atomic.Int32
	var busy atomic.Bool
	busy.Store(true)
	f := startFleet(t, 3, func(name string, o *Options) {
		o.Retire = func(context.Context, []string) error { retired[name[2]-'1'].Add(1); return nil }
		o.InUse = func(string) bool { return name == "n-3" && busy.Load() }
	})
	leader := f.leader()
	worker := leader.made(form.ModuleWorkerURL, "w", spec{})
	version := leader.version(worker, "v", "fetch")
	deployment := leader.made(form.WorkerDeploymentURL, "d", weighted(worker, version, 10000))

	away := f.others(leader)[1]
	f.wires.cutOff(away.name)
	a := leader.settled(func() answer { return leader.del(deployment) })
	f.poll(func() bool {
		return leader.do("GET", root+"/operations/"+a.text(t, "id"), nil).text(t, "status") == "reconciling"
	})
	f.wires.heal()
	leader.end(a)
	for i := range retired {
		if retired[i].Load() == 0 {
			t.Errorf("n-%d was not asked", i+1)
		}
	}
	if a := leader.del(version); a.status != http.StatusConflict {
		t.Errorf("a version that n-3 still runs: %d %s", a.status, a.body)
	}
	busy.Store(false)
	leader.end(leader.del(version))
}

// However many leaders there were, the hands of a home do one thing at a time for a store, and nothing for a leader that another followed.
func TestHandsRefuseTheLeaderOfBefore(t *testing.T) {
	store := newFakeStore()
	h := NewHands(HandsOptions{Stores: map[string]Store{"queue": store}})
	held, enter := make(chan struct{}), make(chan struct{})
	store.before = func(_ context.Context, what string) error {
		if what == "create" {
			close(enter)
			<-held
		}
		return nil
	}
	errand := func(term uint64, do string) error {
		_, err := h.store(t.Context(), &storeErrand{term, do, "queue", StoreRequest{UID: "q"}})
		return err
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- errand(5, "create") }() // both end with held
	<-enter
	go func() { second <- errand(6, "delete") }()
	select {
	case err := <-second:
		t.Errorf("both at once: %v", err)
	default:
	}
	close(held)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
	if err := errand(5, "create"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("what came late: %v", err)
	}
	if store.get("q") != nil || len(h.stores) != 0 {
		t.Errorf("left over: %v, %d turns", store.get("q"), len(h.stores))
	}
}
