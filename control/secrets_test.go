package control

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
)

// secretSpec is a version that asks for private inputs.
func (n *node) secretSpec(worker, name string, names ...string) spec {
	n.t.Helper()
	if names == nil {
		names = []string{}
	}
	return spec{"worker": ref(worker), "bundle": ref(n.code(name+".code", "fetch")), "handlers": []string{"fetch"}, "requiredSensitiveVars": names}
}

func (n *node) createWith(formURL, name string, s, private any, headers ...string) answer {
	n.t.Helper()
	headers = append([]string{"Idempotency-Key", freshKey()}, headers...)
	return n.do("POST", root+"/resources", spec{"form": formURL, "space": "default", "name": name, "spec": s, "privateInputs": private}, headers...)
}

func (n *node) putWith(uid string, s, private any) answer {
	n.t.Helper()
	return n.do("PUT", root+"/resources/"+uid, spec{"spec": s, "privateInputs": private},
		"Idempotency-Key", freshKey(), "Takoform-Expected-Generation", n.generation(uid))
}

// unseal returns the values of a version as its sandbox would get them.
func (n *node) unseal(uid string) map[string]string {
	n.t.Helper()
	for _, v := range n.lastPlan().Versions {
		if v.UID == uid {
			values, err := n.c.Secrets(v)
			if err != nil {
				n.t.Fatal(err)
			}
			return values
		}
	}
	n.t.Fatalf("%s is not in the plan", uid)
	return nil
}

// worker-version §5, row by row, and host-api §8: names, values, create and PUT.
func TestPrivateInputs(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	d := n.do("GET", "/.well-known/takoform/v2", nil)
	if d.member(t, "capabilities").(map[string]any)["privateInputs"] != true {
		t.Errorf("discovery says %s", d.body)
	}
	for url := range form.Builtin() {
		if got := n.do("GET", root+"/support?form="+url, nil).member(t, "privateInputs"); got != (url == form.WorkerVersionURL) {
			t.Errorf("support of %s says privateInputs: %v (D-31)", url, got)
		}
	}
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	s := n.secretSpec(w, "v", "B_KEY", "A_KEY")
	good := spec{"A_KEY": "alpha-value", "B_KEY": "beta-value"}
	for _, row := range []struct {
		name    string
		private any
		status  int
		code    string
	}{
		{"missing all", spec{}, 422, "invalid_spec"},
		{"missing one", spec{"A_KEY": "x"}, 422, "invalid_spec"},
		{"extra", spec{"A_KEY": "x", "B_KEY": "y", "C_KEY": "z"}, 422, "invalid_spec"},
		{"empty", spec{"A_KEY": "x", "B_KEY": ""}, 422, "invalid_spec"},
		{"number", spec{"A_KEY": "x", "B_KEY": 1}, 400, "invalid_request"},
		{"null", spec{"A_KEY": "x", "B_KEY": nil}, 400, "invalid_request"},
		{"array", []string{"x"}, 400, "invalid_request"},
		{"null for all", nil, 400, "invalid_request"},
	} {
		a := n.createWith(form.WorkerVersionURL, "v", s, row.private)
		if a.status != row.status || a.text(t, "code") != row.code {
			t.Errorf("%s: %d %s", row.name, a.status, a.body)
		}
	}
	n.create(form.WorkerVersionURL, "v", s).is(t, 422, "invalid_spec") // absent
	v := n.succeeded(n.createWith(form.WorkerVersionURL, "v", s, good))
	if got := n.unseal(v); !maps.Equal(got, map[string]string{"A_KEY": "alpha-value", "B_KEY": "beta-value"}) {
		t.Errorf("unsealed %v", got)
	}
	n.createWith(form.ModuleWorkerURL, "x", spec{}, spec{}).is(t, 422, "capability_required")
	n.createWith(form.WorkerVersionURL, "x", n.secretSpec(w, "x"), spec{"A": "x"}).is(t, 422, "invalid_spec")
	plain := n.succeeded(n.createWith(form.WorkerVersionURL, "x", n.secretSpec(w, "x2"), spec{}))

	before := n.generation(v)
	for name, private := range map[string]spec{
		"other value": {"A_KEY": "alpha-value", "B_KEY": "beta-valuf"}, "partial": {"A_KEY": "alpha-value"},
		"extra": {"A_KEY": "alpha-value", "B_KEY": "beta-value", "C": "x"}, "swapped": {"A_KEY": "beta-value", "B_KEY": "alpha-value"}, "none": {},
	} {
		if a := n.putWith(v, s, private); a.status != 422 || a.text(t, "code") != "invalid_spec" {
			t.Errorf("PUT with %s: %d %s", name, a.status, a.body)
		}
	}
	if got := n.generation(v); got != before || n.unseal(v)["B_KEY"] != "beta-value" {
		t.Error("a refused PUT changed something")
	}
	n.succeeded(n.put(v, s))
	n.succeeded(n.putWith(v, s, good))
	n.succeeded(n.putWith(plain, n.get(plain).member(t, "spec"), spec{}))
	if n.unseal(v)["A_KEY"] != "alpha-value" {
		t.Error("PUT lost a value")
	}
	n.putWith(w, spec{}, spec{}).is(t, 422, "capability_required")
}

// host-api §7.4: private inputs participate in the equality of requests, in any order of members, without a trace of them
// in the stored fingerprint.
func TestPrivateInputsInReplay(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	raw, _ := json.Marshal(n.secretSpec(w, "v", "A", "B"))
	key := freshKey()
	ask := func(private string) answer {
		if private != "" {
			private = `,"privateInputs":` + private
		}
		return n.do("POST", root+"/resources", `{"form":"`+form.WorkerVersionURL+`","space":"default","name":"v","spec":`+string(raw)+private+`}`, "Idempotency-Key", key)
	}
	first := ask(`{"A":"one","B":"two"}`)
	n.succeeded(first)
	for _, same := range []string{`{"B":"two","A":"one"}`, `{ "A" : "on\u0065","B":"two"}`} {
		if a := ask(same); a.text(t, "id") != first.text(t, "id") || !bytes.Equal(a.body, first.body) {
			t.Errorf("%s: replay gives %s", same, a.body)
		}
	}
	for _, other := range []string{`{"A":"one","B":"too"}`, `{"A":"one"}`, `{"A":"two","B":"one"}`, `{}`, ""} {
		if a := ask(other); a.status != 409 || a.text(t, "code") != "idempotency_conflict" {
			t.Errorf("%q: %d %s", other, a.status, a.body)
		}
	}
}

// host-api §8: values and digests of values appear in no answer, no log and no file of the data directory.
func TestPrivateInputsLeaveNoTrace(t *testing.T) {
	dir, log := t.TempDir(), new(lockedBuffer)
	opts := func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.SnapshotCommands = 4
	}
	n := startNode(t, dir, opts)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	const value = "correct horse battery staple"
	key := freshKey()
	s := n.secretSpec(w, "v", "KEY")
	var seen []byte
	note := func(a answer) answer { seen = append(seen, a.body...); return a }
	v := n.succeeded(note(n.createWith(form.WorkerVersionURL, "v", s, spec{"KEY": value}, "Idempotency-Key", key)))
	note(n.createWith(form.WorkerVersionURL, "v2", s, spec{"KEY": value, "OTHER": value, value: "x"}))
	note(n.putWith(v, s, spec{"KEY": value + "!"}))
	note(n.do("POST", root+"/previews", spec{"action": "update", "uid": v, "expectedGeneration": 1, "input": spec{"spec": s, "privateInputs": spec{"KEY": value + "!"}}}))
	note(n.do("POST", root+"/resources", spec{"form": form.WorkerVersionURL, "privateInputs": spec{"KEY": value}}, "Idempotency-Key", freshKey()))
	note(n.get(v))
	note(n.do("GET", root+"/resources", nil))
	if err := n.c.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	n.stop()
	traces := []string{value, base64.StdEncoding.EncodeToString([]byte(value)), "horse"}
	check := func(where string, b []byte) {
		for _, trace := range traces {
			if bytes.Contains(b, []byte(trace)) {
				t.Errorf("%s shows the value", where)
			}
		}
	}
	check("an answer", seen)
	check("the log", log.bytes())
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files++
		check(path, b)
		return err
	})
	if err != nil || files < 10 {
		t.Fatal(files, err)
	}
	if n = startNode(t, dir, opts); n.unseal(v)["KEY"] != value {
		t.Error("the value did not survive the restart")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// worker-version §5: with the node key gone, the version is not ready and says that it does not know why; nothing can be
// compared, nothing repairs it; with the key back everything is as before.
func TestLostNodeKey(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	s := n.secretSpec(w, "v", "KEY")
	key := freshKey()
	body := spec{"form": form.WorkerVersionURL, "space": "default", "name": "v", "spec": s, "privateInputs": spec{"KEY": "value"}}
	first := n.do("POST", root+"/resources", body, "Idempotency-Key", key)
	v := n.succeeded(first)
	n.stop()
	path := filepath.Join(dir, keyFile)
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	n = startNode(t, dir, nil)
	r := n.get(v)
	if o := r.member(t, "observed").(map[string]any); o["ready"] != false {
		t.Errorf("reads %s", r.body)
	}
	conds, _ := r.member(t, "hostConditions").([]any)
	if len(conds) != 1 || conds[0].(map[string]any)["status"] != "Unknown" || conds[0].(map[string]any)["reason"] != "DependencyMissing" {
		t.Errorf("hostConditions are %v", conds)
	}
	for _, pv := range n.lastPlan().Versions {
		if pv.UID == v && pv.Ready {
			t.Error("the plan has it ready")
		}
		if _, err := n.c.Secrets(pv); pv.UID == v && err == nil {
			t.Error("its values open")
		}
	}
	n.putWith(v, s, spec{"KEY": "value"}).is(t, 409, "private_inputs_unverifiable")
	replay := n.do("POST", root+"/resources", body, "Idempotency-Key", key)
	replay.is(t, 409, "private_inputs_unverifiable")
	if replay.text(t, "operationId") != first.text(t, "id") {
		t.Errorf("the Problem says %s", replay.body)
	}
	n.create(form.WorkerDeploymentURL, "d", weighted(w, v, 10000)).is(t, 422, "invalid_spec")
	n.succeeded(n.put(v, s)) // re-verifies, and finds the same
	if o := n.get(v).member(t, "observed").(map[string]any); o["ready"] != false {
		t.Error("a PUT without values repaired it")
	}
	n.succeeded(n.createWith(form.WorkerVersionURL, "v2", s, spec{"KEY": "value"})) // a new version is the way on
	n.stop()

	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	n = startNode(t, dir, nil)
	if r := n.get(v); r.member(t, "observed").(map[string]any)["ready"] != true || r.member(t, "hostConditions") != nil || n.unseal(v)["KEY"] != "value" {
		t.Errorf("with the key back it reads %s", r.body)
	}
	n.succeeded(n.putWith(v, s, spec{"KEY": "value"}))
	n.putWith(v, s, spec{"KEY": "other"}).is(t, 422, "invalid_spec")
}

// Rotation of the node key while the node serves: values and comparisons stay, the old key is not needed any more, also
// when the rotation was cut in the middle.
func TestRotateNodeKey(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	s := n.secretSpec(w, "v", "KEY")
	key := freshKey()
	body := spec{"form": form.WorkerVersionURL, "space": "default", "name": "v", "spec": s, "privateInputs": spec{"KEY": "value"}}
	v := n.succeeded(n.do("POST", root+"/resources", body, "Idempotency-Key", key))
	etag := n.get(v).header.Get("ETag")
	old := n.c.secrets.ring.Current()
	count, err := n.c.RotateKey(t.Context())
	if err != nil || count != 2 { // the version and the comparison key
		t.Fatalf("%d rewritten: %v", count, err)
	}
	check := func(n *node) {
		t.Helper()
		if ids := n.c.secrets.ring.IDs(); len(ids) != 1 || ids[0] == old {
			t.Errorf("keys are %v", ids)
		}
		if n.unseal(v)["KEY"] != "value" || n.get(v).header.Get("ETag") != etag {
			t.Error("the rotation changed the version")
		}
		if a := n.do("POST", root+"/resources", body, "Idempotency-Key", key); a.text(t, "resourceUid") != v {
			t.Errorf("replay gives %s", a.body)
		}
	}
	check(n)
	if err := n.c.secrets.ring.Rotate(); err != nil { // and a crash before anything was sealed anew
		t.Fatal(err)
	}
	m := startNode(t, n.crashCopy(), nil)
	m.poll(func() bool { return len(m.c.secrets.ring.IDs()) == 1 })
	check(m)
	m.putWith(v, s, spec{"KEY": "other"}).is(t, 422, "invalid_spec")
}

// vault is a Form whose create needs private inputs outside the control state: what WorkerVersion never does, since it
// settles when it is accepted.
func vault() form.Table {
	return form.NewTable(&form.Driver{URL: "https://test.test/vault", Kind: "Vault", Private: true,
		Fields: []form.Field{{Name: "names", Required: true, Read: func(s *form.Spec, _ string, val any) (any, *rules.Verdict) {
			for _, item := range val.([]any) {
				s.Sensitive = append(s.Sensitive, item.(string))
			}
			slices.Sort(s.Sensitive)
			return val, nil
		}}},
		Outside: func(a form.Action) bool { return a == form.Create },
		Observe: func(o *form.Observation) (any, *rules.Cause) { return spec{"ready": true}, nil }})
}

func (n *node) replenish(id string, private any) answer {
	n.t.Helper()
	return n.do("PUT", root+"/operations/"+id+"/private-inputs", spec{"privateInputs": private})
}

func (n *node) operation(id string) answer {
	n.t.Helper()
	return n.do("GET", root+"/operations/"+id, nil)
}

// host-api §8, every row of the table of R10; §7: inputRequired; §7.1: waiting_input to queued, and on to the end.
func TestReplenishment(t *testing.T) {
	n := startWith(t, t.TempDir(), vault(), func(o *Options) { o.TransferLife = time.Millisecond })
	n.c.settleWait = time.Millisecond
	n.c.mu.Lock()
	n.c.opt.MaxOperations = 0 // the runner takes nothing up yet
	n.c.mu.Unlock()
	key := freshKey()
	body := spec{"form": "https://test.test/vault", "space": "default", "name": "v", "spec": spec{"names": []string{"A", "B"}}, "privateInputs": spec{"A": "one", "B": "two"}}
	made := n.do("POST", root+"/resources", body, "Idempotency-Key", key)
	if made.status != 202 || made.text(t, "status") != "queued" {
		t.Fatalf("create answers %d %s", made.status, made.body)
	}
	id := made.text(t, "id")
	n.poll(func() bool { n.c.expireInputs(); return n.operation(id).text(t, "status") == "waiting_input" })
	op := n.operation(id)
	if in := op.member(t, "inputRequired").(map[string]any); in["reason"] != "expired" || len(in["names"].([]any)) != 2 || op.text(t, "effect") != "none" {
		t.Errorf("operation reads %s", op.body)
	}
	if n.c.state.Operation(id).Command.Inputs.Boxes != nil {
		t.Error("the expired values are still kept")
	}
	n.do("PUT", root+"/resources/"+made.text(t, "resourceUid"), spec{"spec": spec{"names": []string{}}}, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1").is(t, 409, "resource_busy")
	if a := n.do("POST", root+"/resources", body, "Idempotency-Key", key); a.status != 202 || a.text(t, "status") != "waiting_input" {
		t.Errorf("replay answers %d %s", a.status, a.body)
	}

	n.replenish("never", spec{"A": "one", "B": "two"}).is(t, 404, "not_found")
	for _, bad := range []any{spec{"A": "one", "B": "too"}, spec{"A": "one"}, spec{}, spec{"A": "one", "B": "two", "C": "x"}} {
		n.replenish(id, bad).is(t, 409, "private_inputs_conflict")
	}
	n.replenish(id, spec{"A": 1}).is(t, 400, "invalid_request")
	n.do("PUT", root+"/operations/"+id+"/private-inputs", spec{}).is(t, 400, "invalid_request")
	n.do("PUT", root+"/operations/"+id+"/private-inputs", spec{"privateInputs": spec{}, "x": 1}).is(t, 400, "invalid_request")

	n.c.mu.Lock()
	n.c.opt.TransferLife = time.Hour
	n.c.mu.Unlock()
	a := n.replenish(id, spec{"B": "two", "A": "one"})
	a.is(t, 200, "")
	if a.text(t, "status") != "queued" || a.member(t, "inputRequired") != nil || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("replenishment answers %s", a.body)
	}
	index := n.c.machine.applied.at()
	if again := n.replenish(id, spec{"A": "one", "B": "two"}); again.status != 200 || !bytes.Equal(again.body, a.body) || n.c.machine.applied.at() != index {
		t.Errorf("repeated it answers %s", again.body)
	}
	n.replenish(id, spec{"A": "one", "B": "too"}).is(t, 409, "private_inputs_conflict")

	// The effect that a real Form would have is done here.
	for _, cmd := range []*state.Command{{Kind: state.StartOperation, Operation: id}, {Kind: state.EndOperation, Operation: id, OK: true}} {
		if !n.c.tell(cmd) {
			t.Fatal("not committed")
		}
	}
	n.replenish(id, spec{"A": "one", "B": "too"}).is(t, 409, "private_inputs_conflict")
	done := n.replenish(id, spec{"A": "one", "B": "two"})
	done.is(t, 409, "operation_terminal")
	if done.text(t, "operationId") != id {
		t.Errorf("the Problem says %s", done.body)
	}
	r := n.c.state.Resource(made.text(t, "resourceUid"))
	if values, err := n.c.open(r.Tenant, r.UID, r.Secrets.Names, r.Secrets.Boxes); err != nil || values["B"] != "two" {
		t.Errorf("kept %v", err)
	}
}

// Who may replenish: whoever may change the Resource; strangers see nothing, readers are refused, and another principal of
// the tenant may help out.
func TestReplenishmentIsAuthorized(t *testing.T) {
	n := startWith(t, t.TempDir(), vault(), func(o *Options) { o.TransferLife = time.Millisecond; o.MaxOperations = 1 })
	n.c.settleWait = time.Millisecond
	made := n.do("POST", root+"/resources", spec{"form": "https://test.test/vault", "space": "default", "name": "v",
		"spec": spec{"names": []string{"A"}}, "privateInputs": spec{"A": "one"}}, "Idempotency-Key", freshKey())
	id := made.text(t, "id")
	token := func(tenant, principal, role string) string {
		return n.do("POST", "/operator/v1/control/tokens", spec{"tenant": tenant, "principal": principal, "role": role}).text(t, "token")
	}
	as := func(token string, private any) answer {
		return n.do("PUT", root+"/operations/"+id+"/private-inputs", spec{"privateInputs": private}, "Authorization", "Bearer "+token)
	}
	for _, private := range []spec{{"A": "one"}, {"A": "two"}} {
		as(token("other", "p", "operator"), private).is(t, 404, "not_found")
		as(token("default", "r", "reader"), private).is(t, 403, "forbidden")
	}
	as(token("default", "e", "editor"), spec{"A": "two"}).is(t, 409, "private_inputs_conflict")
	as(token("default", "e2", "editor"), spec{"A": "one"}).is(t, 200, "")
}

// host-api §8: lost values of an unfinished Operation are asked for again; lost comparison material leaves nothing to ask
// for, so that it fails without effect.
func TestUnfinishedOperationAndLostKey(t *testing.T) {
	dir := t.TempDir()
	n := startWith(t, dir, vault(), nil)
	n.c.settleWait = time.Millisecond
	n.c.mu.Lock()
	n.c.opt.MaxOperations = 0
	n.c.mu.Unlock()
	create := func(name string) string {
		a := n.do("POST", root+"/resources", spec{"form": "https://test.test/vault", "space": "default", "name": name,
			"spec": spec{"names": []string{"A"}}, "privateInputs": spec{"A": "one"}}, "Idempotency-Key", "key-of-the-create-"+name)
		a.is(t, 202, "")
		return a.text(t, "id")
	}
	queued, waiting := create("queued"), create("waiting")
	if !n.c.tell(&state.Command{Kind: state.AwaitInput, Operation: waiting, Reason: state.InputsUnavailable}) {
		t.Fatal("not committed")
	}
	n.stop()
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
		t.Fatal(err)
	}
	n = startWith(t, dir, vault(), nil)
	for _, id := range []string{queued, waiting} {
		n.poll(func() bool { return n.operation(id).text(t, "status") == "failed" })
		op := n.operation(id)
		if e := op.member(t, "error").(map[string]any); e["code"] != "private_inputs_unverifiable" || op.text(t, "effect") != "none" {
			t.Errorf("operation ended %s", op.body)
		}
		n.replenish(id, spec{"A": "one"}).is(t, 409, "private_inputs_unverifiable")
	}
}

// A damaged key file stops the start and is named; nothing is made in its place.
func TestDamagedNodeKey(t *testing.T) {
	dir := t.TempDir()
	startNode(t, dir, nil).stop()
	path := filepath.Join(dir, keyFile)
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, ControlOrigin: origin}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "nonsense" {
		t.Error("the file was replaced")
	}
}
