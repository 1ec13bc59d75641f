package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/plan"
	"edged/control/state"
	"edged/internal/disk"
	"edged/internal/fault"
)

// crashCopy is the data directory as a process that ended right now would leave it: nothing was closed or flushed.
func (n *node) crashCopy() string {
	n.t.Helper()
	dir := n.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(n.dir)); err != nil {
		n.t.Fatal(err)
	}
	return dir
}

// host-api §7.5: what was acknowledged is there after an abrupt end, and a replay is byte-identical.
func TestAcknowledgedSurvivesAbruptEnd(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	v := n.version(w, "v", "fetch")
	n.made(form.WorkerDeploymentURL, "d", weighted(w, v, 10000))
	n.made(form.WorkerEndpointURL, "e", spec{"worker": ref(w)})
	body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "last", "spec": spec{}}
	last := n.do("POST", root+"/resources", body, "Idempotency-Key", "restart-key-0001")
	last.is(t, 200, "")
	reads := map[string]answer{}
	for _, item := range n.do("GET", root+"/resources", nil).member(t, "items").([]any) {
		uid := item.(map[string]any)["uid"].(string)
		reads[uid] = n.get(uid)
	}
	before := n.lastPlan()

	m := startNode(t, n.crashCopy(), nil)
	if !samePlan(t, before, m.booted) {
		t.Error("the plan on disk differs")
	}
	if m.token != n.token {
		t.Error("the bootstrap token changed")
	}
	for uid, want := range reads {
		if got := m.get(uid); !bytes.Equal(got.body, want.body) || got.header.Get("ETag") != want.header.Get("ETag") {
			t.Errorf("%s reads %s %s after the restart, %s %s before", uid, got.header.Get("ETag"), got.body, want.header.Get("ETag"), want.body)
		}
	}
	if again := m.do("POST", root+"/resources", body, "Idempotency-Key", "restart-key-0001"); !bytes.Equal(again.body, last.body) {
		t.Errorf("replay after the restart: %s, before: %s", again.body, last.body)
	}
	m.succeeded(m.put(w, spec{})) // and it goes on
	// The first plan after a start is handed over once the state has caught up.
	if err := m.c.plans.reach(t.Context(), m.c.machine.planned.Load()); err != nil {
		t.Fatal(err)
	}
	after := m.lastPlan()
	if !samePlan(t, before, after) {
		t.Error("the plan after the restart differs")
	}
}

func samePlan(t *testing.T, a, b *plan.Plan) bool {
	t.Helper()
	x, y := *a, *b
	x.Index, y.Index = 0, 0
	p, err := json.Marshal(x)
	q, err2 := json.Marshal(y)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return bytes.Equal(p, q)
}

// A snapshot cuts the log; the state restored from it and the entries after it is the same.
func TestSnapshotAndLog(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.SnapshotCommands = 5 })
	var uids []string
	for i := range 12 {
		uids = append(uids, n.made(form.ModuleWorkerURL, fmt.Sprint("w", i), spec{}))
		if i == 7 {
			if err := n.c.raft.Load().Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if first, err := n.c.log.FirstIndex(); err != nil || first < 2 {
		t.Errorf("the log begins at %d (%v): nothing was cut", first, err)
	}
	want := n.get(uids[3])
	n.stop()
	m := startNode(t, n.dir, nil)
	for _, uid := range uids {
		m.get(uid).is(t, 200, "")
	}
	if got := m.get(uids[3]); !bytes.Equal(got.body, want.body) {
		t.Errorf("reads %s, want %s", got.body, want.body)
	}
}

// host-api §7.5, mid-delete: the same Operation goes on after a restart, through reconciling, and ends once. A deployment
// ends only when its contexts have, and is closed for new work before (worker-deployment §4).
func TestDeploymentDeleteGoesOnAfterRestart(t *testing.T) {
	var asked atomic.Int32
	var n *node
	entered := make(chan []string, 1)
	n = startNode(t, t.TempDir(), func(o *Options) {
		o.Retire = func(ctx context.Context, versions []string) error {
			asked.Add(1)
			select {
			case entered <- versions:
			default:
			}
			<-ctx.Done()
			return ctx.Err()
		}
	})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	old, v := n.version(w, "old", "fetch"), n.version(w, "v", "fetch")
	n.version(n.made(form.ModuleWorkerURL, "stranger", spec{}), "strange", "fetch")
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, old, 10000))
	n.succeeded(n.put(d, weighted(w, v, 10000))) // contexts of the old one may still drain
	all := []string{old, v}
	slices.Sort(all)
	del := n.del(d)
	if del.status != 202 || del.header.Get("Retry-After") == "" {
		t.Fatalf("delete answers %d %s", del.status, del.body)
	}
	id := del.text(t, "id")
	if got := <-entered; !slices.Equal(got, all) {
		t.Errorf("retires %v, want every version of the worker, %v", got, all)
	}
	if p := n.lastPlan(); p.Workers[w].Deployment != "" {
		t.Error("contexts are retired before the plan closed selection")
	}
	if op := n.do("GET", root+"/operations/"+id, nil); op.text(t, "status") != "running" || op.text(t, "effect") != "unknown" {
		t.Errorf("operation reads %s", op.body)
	}
	n.del(d).is(t, 409, "resource_busy")
	n.del(v).is(t, 409, "dependency_conflict")
	if o := n.get(w).member(t, "observed").(map[string]any); o["ready"] != false || o["activeDeploymentUid"] != nil {
		t.Errorf("the worker still observes %v", o)
	}
	m := startNode(t, n.crashCopy(), nil)
	op := m.ended(del)
	if op.text(t, "id") != id || op.text(t, "status") != "succeeded" || op.text(t, "effect") != "complete" {
		t.Errorf("operation ended %s", op.body)
	}
	m.get(d).is(t, 410, "gone")
	m.succeeded(m.del(v))
}

// What a crash interrupted is in doubt before a restarted node answers anybody: nothing is seen running that nobody runs.
func TestInterruptedIsInDoubtBeforeAnyAnswer(t *testing.T) {
	held := func(o *Options) {
		o.Retire = func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	n := startNode(t, t.TempDir(), held)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	del := n.del(n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch"), 10000)))
	id := del.text(t, "id")
	if got := n.c.state.Operation(id).Status; got != state.Running {
		t.Fatalf("it is %s", got)
	}
	m := openNode(t, n.crashCopy(), form.Builtin(), held)
	var seen state.Status
	ready := m.c.readyOnce
	m.c.readyOnce = func() { // until here every answer is a 503
		seen = m.c.state.Operation(id).Status
		ready()
	}
	m.run()
	if seen != state.Reconciling {
		t.Errorf("the node answers while it is %s", seen)
	}
}

// An effect that cannot be done now is tried again until it can.
func TestEffectIsRetried(t *testing.T) {
	var calls atomic.Int32
	n := startNode(t, t.TempDir(), func(o *Options) {
		o.Retire = func(context.Context, []string) error {
			if calls.Add(1) < 3 {
				return fault.New(fault.Unavailable, "test", "not yet")
			}
			return nil
		}
	})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch"), 10000))
	n.succeeded(n.del(d))
	if calls.Load() != 3 {
		t.Errorf("tried %d times", calls.Load())
	}
}

// worker-version §7: a version that invocations still use is not deleted.
func TestVersionInUse(t *testing.T) {
	var inUse atomic.Bool
	n := startNode(t, t.TempDir(), func(o *Options) { o.InUse = func(string) bool { return inUse.Load() } })
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	v := n.version(w, "v", "fetch")
	inUse.Store(true)
	n.del(v).is(t, 409, "dependency_conflict")
	inUse.Store(false)
	n.succeeded(n.del(v))
}

// Retention ends over the API as well: Operation, key and tombstone go after the window.
func TestSweepEndsRetention(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.ReplayWindow, o.SweepEvery = time.Second, 20*time.Millisecond })
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	del := n.del(w)
	n.ended(del)
	n.get(w).is(t, 410, "gone")
	n.poll(func() bool { return n.get(w).status == 404 })
	n.do("GET", root+"/operations/"+del.text(t, "id"), nil).is(t, 404, "not_found")
}

// A plan reaches the node only when it differs, and a mutation answers when its plan is in use.
func TestPlansAreHandedOverOnce(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	v := n.version(w, "v", "fetch")
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, v, 10000))
	if p := n.lastPlan(); p.Workers[w].Deployment != d {
		t.Fatal("the create answered before its plan was in use")
	}
	count := func() int { n.mu.Lock(); defer n.mu.Unlock(); return n.handed }
	before := count()
	n.succeeded(n.put(d, weighted(w, v, 10000)))
	n.succeeded(n.put(w, spec{}))
	if got := count(); got != before {
		t.Errorf("%d plans for changes that alter none", got-before)
	}
	v2 := n.version(w, "v2", "fetch")
	n.succeeded(n.put(d, weighted(w, v, 1, v2, 9999)))
	if p := n.lastPlan(); fmt.Sprint(p.Workers[w].Weights) != fmt.Sprint([]plan.Weight{{Version: v, Weight: 1}, {Version: v2, Weight: 9999}}) {
		t.Errorf("weights are %v", p.Workers[w].Weights)
	}
}

// Open reports every fault of its options, and refuses what it cannot read.
func TestOpenRefuses(t *testing.T) {
	_, err := Open(Options{ControlOrigin: "http://x/y", MaxPageSize: -1, ReplayWindow: time.Millisecond})
	if fault.CodeOf(err) != fault.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, word := range []string{"data directory", "origin", "MaxPageSize", "whole number of seconds"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not speak of %s", err, word)
		}
	}
	n := startNode(t, t.TempDir(), nil)
	n.stop()
	format := filepath.Join(n.dir, "control", "format")
	if err := os.WriteFile(format, []byte("control 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: n.dir, ControlOrigin: origin}); err == nil {
		t.Error("a newer format is opened")
	}
	if err := os.WriteFile(format, []byte("control 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "control", "plan", "format"), []byte("plan 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: n.dir, ControlOrigin: origin}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a newer plan gives %v", err)
	}
}

// The token file is for the node's own user, is made once, and a damaged one is named.
func TestBootstrapToken(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	path := filepath.Join(n.dir, tokenFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("token file: %v %v", info.Mode(), err)
	}
	n.stop()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	m := startNode(t, n.dir, nil)
	if m.token == n.token {
		t.Error("the removed token came back")
	}
	m.do("GET", root+"/resources", nil).is(t, 200, "")
	m.stop()
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Options{Dir: n.dir, ControlOrigin: origin})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Run(t.Context()); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tokenFile) {
		t.Errorf("a damaged token file gives %v", err)
	}
}

// Until the state has caught up, nothing that needs it is answered, and nobody is turned away for good.
func TestNotReady(t *testing.T) {
	c, err := Open(Options{Dir: t.TempDir(), ControlOrigin: origin})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := &node{t: t, c: c, token: "whatever"}
	a := n.do("GET", root+"/resources", nil)
	a.is(t, 503, "temporarily_unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	n.do("GET", "/.well-known/takoform/v2", nil).is(t, 200, "")
}

// An inspection that cannot be had now is no verdict: 503, nothing stored, the key stays free.
func TestInspectionUnavailable(t *testing.T) {
	var broken atomic.Bool
	n := startNode(t, t.TempDir(), func(o *Options) {
		o.Inspect = func(ctx context.Context, in Inspection) ([]string, error) {
			if broken.Load() {
				return nil, fault.New(fault.Unavailable, "test", "no sandbox now")
			}
			return exportsByText(ctx, in)
		}
	})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	body := spec{"form": form.WorkerVersionURL, "space": "default", "name": "v",
		"spec": spec{"worker": ref(w), "bundle": ref(n.code("c", "fetch")), "handlers": []string{"fetch"}}}
	broken.Store(true)
	n.do("POST", root+"/resources", body, "Idempotency-Key", "inspect-key-0001").is(t, 503, "temporarily_unavailable")
	broken.Store(false)
	n.succeeded(n.do("POST", root+"/resources", body, "Idempotency-Key", "inspect-key-0001"))
}

// A nearly full disk refuses what grows and lets deletes through; it recovers without a restart.
func TestFullDisk(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	space := disk.NewSpace(disk.SpaceOptions{Dir: t.TempDir(), Every: time.Millisecond, Free: func(string) (uint64, error) { return free.Load(), nil }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- space.Run(ctx) }() // ends with ctx; waited for below
	defer func() { cancel(); <-done }()
	n := startNode(t, t.TempDir(), func(o *Options) { o.Space = space })
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	free.Store(0)
	n.poll(func() bool { return space.Check() != nil })
	n.create(form.ModuleWorkerURL, "x", spec{}).is(t, 503, "temporarily_unavailable")
	n.get(w).is(t, 200, "")
	n.succeeded(n.del(w))
	free.Store(1 << 40)
	n.poll(func() bool { return space.Check() == nil })
	n.made(form.ModuleWorkerURL, "x", spec{})
}

// What an inspection's error means: the modules' fault is a verdict, the node's is none.
func TestIsVerdict(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{fault.Name(fault.Invalid, "module_syntax_error", 999).New("x", "y"), true},
		{fault.New(fault.Invalid, "x", "y"), true},
		{fault.Name(fault.Internal, "worker_error", 999).New("x", "threw"), true},
		{fault.Name(fault.Timeout, "cpu_exceeded", 999).New("x", "y"), true},
		{fault.Name(fault.Limited, "overloaded", 999).New("x", "y"), false},
		{fault.New(fault.Unavailable, "x", "y"), false},
		{fault.New(fault.Internal, "x", "y"), false},
		{context.Canceled, false},
	} {
		if got := isVerdict(tt.err); got != tt.want {
			t.Errorf("%v: %t, want %t", tt.err, got, tt.want)
		}
	}
}

// worker-deployment §4, delete: selection is closed, on the node as well, before contexts are retired.
func TestSelectionIsClosedBeforeRetirement(t *testing.T) {
	var closed, early atomic.Bool
	n := startNode(t, t.TempDir(), func(o *Options) {
		o.OnPlan = func(d *plan.Delta) {
			if w := d.Workers.Put; len(w) > 0 && w[0].Deployment == "" {
				pause(context.Background(), 20*time.Millisecond) // a node takes its time to take a plan into use
				closed.Store(true)
			} else {
				closed.Store(false)
			}
		}
		o.Retire = func(context.Context, []string) error {
			early.Store(!closed.Load())
			return nil
		}
	})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch"), 10000))
	n.succeeded(n.del(d))
	if early.Load() {
		t.Error("contexts were retired while the node still chose the deployment")
	}
}

// A retirement that waits, and sources of one tenant that do not answer, hold up nobody else's Operations.
func TestRunnerIsFair(t *testing.T) {
	c := &Control{opt: Options{MaxOperations: 4}, working: map[string]work{}, state: state.New(form.Builtin())}
	made := 0
	op := func(tenant, formURL string) *state.Operation {
		made++
		uid := fmt.Sprint("r", made)
		spec := `{"artifact":{"url":"https://a.test/","sha256":"` + strings.Repeat("a", 64) + `"}}`
		if formURL == form.ModuleWorkerURL {
			spec = `{}`
		}
		out := c.state.Apply(&state.Command{Kind: state.CreateResource, Actor: state.Actor{Tenant: tenant, Role: state.Editor}, Key: uid, UID: uid,
			Operation: "op" + uid, Form: formURL, Space: "s", Name: uid, Spec: json.RawMessage(spec)})
		if out.Refusal != nil {
			t.Fatal(out.Refusal)
		}
		return out.Operation
	}
	for i, row := range []struct {
		tenant, form string
		want         bool
	}{
		{"slow", form.WorkerBundleURL, true}, {"slow", form.WorkerBundleURL, true}, {"slow", form.WorkerBundleURL, false}, // half of the places
		{"other", form.WorkerBundleURL, true}, {"third", form.WorkerBundleURL, true}, {"fourth", form.WorkerBundleURL, false}, // all of them
		{"slow", form.ModuleWorkerURL, true}, // another kind of work
	} {
		o := op(row.tenant, row.form)
		if got := c.take(o); got != row.want {
			t.Errorf("row %d: taken is %t", i, got)
		}
		if row.want && c.take(o) {
			t.Errorf("row %d: taken twice", i)
		}
	}
}

// A log of another node is refused by name; waiting for its election would never end.
func TestLogOfAnotherNode(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.NodeID = "a" })
	n.stop()
	_, err := Open(Options{Dir: n.dir, ControlOrigin: origin, NodeID: "b"})
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Detail(err), "another node") {
		t.Errorf("got %v", err)
	}
	startNode(t, n.dir, func(o *Options) { o.NodeID = "a" }) // nothing was damaged, and nothing is still held
}
