package state

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// host-api §7.4: one key, one Operation; another request under it is a conflict; replay comes before all later checks.
func TestIdempotency(t *testing.T) {
	l := newLab(t)
	c := l.createCommand(form.ModuleWorkerURL, "w", object{})
	first := l.ok(l.apply(c))
	again := *c
	again.UID, again.Operation = "w-again", "op-again"
	out := l.apply(&again)
	if !out.Replayed || out.Operation.ID != first.ID || l.s.Resource("w-again") != nil {
		t.Fatalf("replay gave %+v", out.Operation)
	}
	other := *c
	other.Fingerprint = []byte("other")
	l.seed(l.apply(&other), rules.IdempotencyConflict)
	// Before the Form is looked at, and before the fence.
	other.Form = "https://nowhere.test/"
	l.seed(l.apply(&other), rules.IdempotencyConflict)
	up := l.command(UpdateResource, "w", object{})
	l.ok(l.apply(up))
	stale := *up
	if out := l.apply(&stale); !out.Replayed {
		t.Errorf("a replay with a stale fence gave %v", out.Refusal)
	}
	// A refused request registers nothing.
	bad := l.createCommand(form.ModuleWorkerURL, "w", object{})
	l.seed(l.apply(bad), rules.NameConflict)
	bad.Name, bad.Fingerprint = "w2", []byte("x")
	l.ok(l.apply(bad))
	// Another principal's key is another key.
	m := l.as("t1", "p2")
	same := *c
	same.Actor, same.UID, same.Operation, same.Name = m.actor, "w3", "op-w3", "w3"
	if out := m.apply(&same); out.Replayed || out.Refusal != nil {
		t.Errorf("another principal's key answered %+v", out)
	}
	// Replays of a create and of a delete after the Resource is gone (D-33).
	del := l.command(DeleteResource, "w", nil)
	gone := l.ok(l.apply(del))
	for _, row := range []struct {
		c    Command
		want string
	}{{*c, first.ID}, {*del, gone.ID}} {
		if out := l.apply(&row.c); !out.Replayed || out.Operation.ID != row.want {
			t.Errorf("replay after deletion gave %+v", out)
		}
	}
	l.seed(l.delete("w"), rules.Gone)
	l.seed(l.update("w", object{}), rules.Gone)
}

// host-api §6.6: one unfinished mutation; busy is told before a stale generation.
func TestBusyBeforeGeneration(t *testing.T) {
	l := newLab(t)
	create := l.create(form.WorkerBundleURL, "b", artifactSpec())
	up := l.command(UpdateResource, "b", artifactSpec())
	up.Expected = 0
	l.seed(l.apply(up), rules.ResourceBusy)
	l.ok(create)
	l.seed(l.apply(up), rules.GenerationConflict)
	if g := l.s.Resource("b").Generation; g != 1 {
		t.Errorf("a refused update moved the generation to %d", g)
	}
}

// host-api §7.1 to §7.3: statuses and effects; what is terminal stays so; a failed create keeps its name until deleted.
func TestOperationLife(t *testing.T) {
	l := newLab(t)
	op := l.create(form.WorkerBundleURL, "b", artifactSpec()).Operation
	if op.Status != Queued || op.Effect != EffectNone || op.Generation != 1 || l.s.Resource("b").Phase != Pending {
		t.Fatalf("accepted as %+v", op)
	}
	tell := func(kind Kind) *Operation {
		l.now++
		return l.s.Apply(&Command{Kind: kind, At: l.now, Operation: op.ID}).Operation
	}
	for _, row := range []struct {
		kind   Kind
		status Status
		effect Effect
	}{
		{DoubtOperation, Queued, EffectNone}, // nothing was dispatched
		{StartOperation, Running, EffectUnknown},
		{StartOperation, Running, EffectUnknown},
		{DoubtOperation, Reconciling, EffectUnknown},
		{StartOperation, Running, EffectUnknown},
	} {
		if got := tell(row.kind); got.Status != row.status || got.Effect != row.effect {
			t.Fatalf("%s leads to %s/%s, want %s/%s", row.kind, got.Status, got.Effect, row.status, row.effect)
		}
	}
	// Why it is open may be told, as often as that changes, until it runs again or ends.
	l.s.Apply(&Command{Kind: DoubtOperation, At: l.now, Operation: op.ID, Seed: rules.BackendUnavailable, Message: "no disk"})
	why := l.s.Apply(&Command{Kind: DoubtOperation, At: l.now, Operation: op.ID, Seed: rules.BackendUnavailable, Message: "no space"}).Operation
	if why.Status != Reconciling || why.Seed != rules.BackendUnavailable || why.Message != "no space" {
		t.Errorf("in doubt it shows %+v", why)
	}
	if again := tell(StartOperation); again.Status != Running || again.Seed != "" || again.Message != "" {
		t.Errorf("running again it shows %+v", again)
	}
	end := l.end(op, false, nil).Operation
	if end.Status != Failed || end.Effect != EffectNone || end.Seed != rules.ArtifactInvalid || end.Message == "" || end.Command != nil {
		t.Errorf("failed as %+v", end)
	}
	if end.RetainUntil-end.UpdatedAt < op.Window {
		t.Errorf("retained for %d ms, promised %d", end.RetainUntil-end.UpdatedAt, op.Window)
	}
	if again := l.end(op, true, l.index("b")).Operation; again.Status != Failed {
		t.Errorf("a terminal Operation was reopened: %s", again.Status)
	}
	if r := l.s.Resource("b"); r.Phase != Errored || r.ObservedGeneration != 0 || string(r.Observed) != "{}" {
		t.Errorf("after the failure: %+v", r)
	}
	l.seed(l.create(form.ModuleWorkerURL, "b", object{}), rules.NameConflict)
	l.ok(l.update("b", artifactSpec())) // repaired on the same UID
	if r := l.s.Resource("b"); r.Phase != Idle || r.ObservedGeneration != 2 {
		t.Errorf("after the repair: %+v", r)
	}
}

// A delete keeps name and record until it succeeded (host-api §6.5).
func TestDeleteKeepsNameUntilDone(t *testing.T) {
	l := newLab(t)
	l.ok(l.create(form.WorkerBundleURL, "b", artifactSpec()))
	del := l.delete("b")
	if del.Operation.Generation != 2 || l.s.Resource("b").Phase != Deleting {
		t.Fatalf("accepted as %+v", del.Operation)
	}
	l.seed(l.create(form.ModuleWorkerURL, "b", object{}), rules.NameConflict)
	if page, _ := l.s.List(&l.actor, Filter{}, "", 10); len(page) != 1 {
		t.Error("a Resource that is being deleted is not listed")
	}
	l.ok(del)
	if page, _ := l.s.List(&l.actor, Filter{}, "", 10); len(page) != 0 {
		t.Error("a deleted Resource is listed")
	}
	l.ok(l.apply(func() *Command { c := l.createCommand(form.ModuleWorkerURL, "b2", object{}); c.Name = "b"; return c }()))
}

// host-api §12 steps 8 to 15: each request breaks the rule of its row and every later one that it can.
func TestOrderOfChecks(t *testing.T) {
	l := newLab(t)
	l.worker("w")
	used := l.createCommand(form.ModuleWorkerURL, "used", object{})
	l.ok(l.apply(used))
	c := l.createCommand("https://nowhere.test/", "w", object{"x": 1})
	c.Private, c.Offering, c.Key, c.Actor.Spaces = true, true, used.Key, []string{"other"}
	rows := []struct {
		seed rules.Seed
		rule string
		fix  func()
	}{
		{rules.PermissionDenied, "host-api §4", func() { c.Actor.Spaces, c.Actor.Role = nil, Reader }},
		{rules.PermissionDenied, "host-api §4", func() { c.Actor.Role = Editor }},
		{rules.IdempotencyConflict, "", func() { c.Key = "fresh" }},
		{rules.FormUnknown, "host-api §5.1", func() { c.Form = form.WorkerDeploymentURL }},
		{rules.UnsupportedCapability, "host-api §8", func() { c.Private = false }},
		{rules.Malformed, "host-api §5.2", func() { c.Offering = false }},
		{rules.InvalidArgument, "spec", func() {
			c.Spec = []byte(`{"worker":{"resourceUid":"nothing"},"versions":[{"workerVersion":{"resourceUid":"v"},"weight":1}]}`)
		}},
		{rules.InvalidArgument, "WA-2.2", func() { c.Spec = bytes.Replace(c.Spec, []byte(`"weight":1`), []byte(`"weight":10000`), 1) }},
		{rules.NameConflict, "", func() { c.Name = "free" }},
		{rules.ResourceNotFound, "REL-1", nil},
	}
	for i, row := range rows {
		out := l.apply(c)
		if out.Refusal == nil || out.Refusal.Seed != row.seed || out.Refusal.Rule != row.rule {
			t.Fatalf("row %d: got %v, want %s by %s", i, out.Refusal, row.seed, row.rule)
		}
		if row.fix != nil {
			row.fix()
		}
	}
}

// worker-aggregate §6: a stranger sees what never existed; both tenants may own the same name; each can work its own.
func TestTenantsDoNotMeet(t *testing.T) {
	l := newLab(t)
	m := l.as("t2", "p2")
	w := l.worker("w")
	op := l.s.Resource(w).LastOperation
	for _, uid := range []string{w, "never"} {
		_, v := l.s.Find(&m.actor, uid)
		if v == nil || v.Detail() != notFound("Resource").Detail() {
			t.Errorf("a stranger reads %v of %s", v, uid)
		}
		m.seed(m.update(uid, object{}), rules.ResourceNotFound)
		m.seed(m.delete(uid), rules.ResourceNotFound)
	}
	if _, v := l.s.FindOperation(&m.actor, op); v == nil || v.Detail() != notFound("Operation").Detail() {
		t.Errorf("a stranger reads the Operation: %v", v)
	}
	if page, _ := l.s.List(&m.actor, Filter{}, "", 10); len(page) != 0 {
		t.Error("a stranger lists Resources")
	}
	c := m.createCommand(form.ModuleWorkerURL, "mw", object{})
	c.Name = "w"
	m.ok(m.apply(c))
	m.ok(m.update("mw", object{}))
	m.ok(m.delete("mw"))
	l.ok(l.update(w, object{}))
	l.ok(l.delete(w))
	if _, v := l.s.Find(&m.actor, w); v == nil || v.Seed != rules.ResourceNotFound {
		t.Errorf("a stranger sees the tombstone: %v", v)
	}
}

// host-api §4: inside the tenant the role and the granted Spaces decide, with 403.
func TestRolesAndSpaces(t *testing.T) {
	l := newLab(t)
	w := l.worker("w")
	for _, row := range []struct {
		name         string
		actor        Actor
		read, mutate bool
	}{
		{"editor", Actor{Tenant: "t1", Principal: "x", Role: Editor}, true, true},
		{"operator", Actor{Tenant: "t1", Principal: "x", Role: Operator}, true, true},
		{"reader", Actor{Tenant: "t1", Principal: "x", Role: Reader}, true, false},
		{"this Space", Actor{Tenant: "t1", Principal: "x", Role: Editor, Spaces: []string{"default"}}, true, true},
		{"other Space", Actor{Tenant: "t1", Principal: "x", Role: Editor, Spaces: []string{"other"}}, false, false},
		{"no role", Actor{Tenant: "t1", Principal: "x"}, true, false},
	} {
		_, v := l.s.Find(&row.actor, w)
		if (v == nil) != row.read || v != nil && v.Seed != rules.PermissionDenied {
			t.Errorf("%s reads: %v", row.name, v)
		}
		page, _ := l.s.List(&row.actor, Filter{}, "", 10)
		if (len(page) == 1) != row.read {
			t.Errorf("%s lists %d", row.name, len(page))
		}
		c := l.command(UpdateResource, w, object{})
		c.Actor = row.actor
		out := l.s.Decide(c)
		if (out.Refusal == nil) != row.mutate || out.Refusal != nil && out.Refusal.Seed != rules.PermissionDenied {
			t.Errorf("%s mutates: %v", row.name, out.Refusal)
		}
	}
}

// host-api §7.4: after the window Operation, replay match and tombstone go together; unfinished ones stay.
func TestRetention(t *testing.T) {
	l := newLab(t)
	c := l.createCommand(form.ModuleWorkerURL, "w", object{})
	op := l.ok(l.apply(c))
	l.ok(l.delete("w"))
	open := l.create(form.WorkerBundleURL, "b", artifactSpec()).Operation
	sweep := func(at int64) {
		for l.s.Due(at) && l.s.Apply(&Command{Kind: Sweep, At: at}).More {
		}
	}
	sweep(l.now + 500)
	if l.s.Operation(op.ID) == nil {
		t.Fatal("an Operation went before its time")
	}
	if _, v := l.s.Find(&l.actor, "w"); v.Seed != rules.Gone {
		t.Fatalf("the tombstone reads %v", v)
	}
	sweep(l.now + 5000)
	if l.s.Operation(op.ID) != nil || l.s.Operation(open.ID) == nil {
		t.Error("retention kept the finished or dropped the unfinished")
	}
	if _, v := l.s.Find(&l.actor, "w"); v.Seed != rules.ResourceNotFound {
		t.Errorf("after retention a read says %v", v)
	}
	fresh := *c
	fresh.UID, fresh.Operation, fresh.At = "w2", "op-w2", l.now+6000
	if out := l.s.Apply(&fresh); out.Replayed || out.Refusal != nil {
		t.Errorf("the key is not free after retention: %+v", out)
	}
}

// Tokens: only a digest is kept; what is unknown is nobody; a principal outlives its tokens.
func TestTokens(t *testing.T) {
	l := newLab(t)
	add := func(id, secret string) {
		l.s.Apply(&Command{Kind: AddToken, Token: &Token{ID: id, Hash: TokenHash(secret), Tenant: "t1", Principal: "p", Role: Editor}})
	}
	add("a", "secret-a")
	add("b", "secret-b")
	a, ok := l.s.Authenticate("secret-a")
	b, ok2 := l.s.Authenticate("secret-b")
	if !ok || !ok2 || a.Principal != b.Principal {
		t.Errorf("authenticated %v %v", a, b)
	}
	for _, s := range []string{"", "secret", "secret-c", string(TokenHash("secret-a"))} {
		if _, ok := l.s.Authenticate(s); ok {
			t.Errorf("%q is somebody", s)
		}
	}
	l.s.Apply(&Command{Kind: RemoveToken, Token: &Token{ID: "a"}})
	if _, ok := l.s.Authenticate("secret-a"); ok {
		t.Error("a revoked token works")
	}
	if strings.Contains(string(l.bytesOf()), "secret-b") {
		t.Error("a secret is kept")
	}
}

// A page goes on strictly after the last UID; filters are exact and ANDed (host-api §§6.3, 9).
func TestList(t *testing.T) {
	l := newLab(t)
	for i := range 7 {
		l.worker(fmt.Sprint("w", i))
	}
	l.ok(l.create(form.WorkerBundleURL, "b", artifactSpec()))
	var seen []string
	after, more := "", true
	for more {
		var page []*Resource
		page, more = l.s.List(&l.actor, Filter{Form: form.ModuleWorkerURL}, after, 3)
		for _, r := range page {
			seen = append(seen, r.UID)
			after = r.UID
		}
	}
	if got := strings.Join(seen, " "); got != "w0 w1 w2 w3 w4 w5 w6" {
		t.Errorf("pages hold %s", got)
	}
	for _, row := range []struct {
		f    Filter
		want int
	}{
		{Filter{}, 8}, {Filter{Space: "default"}, 8}, {Filter{Space: "other"}, 0}, {Filter{Name: "w3"}, 1},
		{Filter{Space: "default", Name: "w3"}, 1}, {Filter{Space: "default", Name: "w3", Form: form.WorkerBundleURL}, 0}, {Filter{Space: "default", Name: "no"}, 0},
	} {
		if page, more := l.s.List(&l.actor, row.f, "", 100); len(page) != row.want || more {
			t.Errorf("%+v lists %d, want %d", row.f, len(page), row.want)
		}
	}
}

// A snapshot holds everything: the restored state encodes to the same bytes and goes on the same way.
func TestSnapshotRestores(t *testing.T) {
	l := newLab(t)
	l.s.Apply(&Command{Kind: Found, Secret: []byte("s")})
	l.s.Apply(&Command{Kind: AddToken, Token: &Token{ID: "a", Hash: TokenHash("x"), Tenant: "t1", Principal: "p", Role: Editor}})
	w := l.worker("w")
	v := l.version(w, "v", "fetch")
	d := l.deploy(w, "d", v, 10000)
	l.ok(l.create(form.CustomDomainURL, "dom", domain(w, "a.test")))
	l.create(form.WorkerBundleURL, "open", artifactSpec())
	l.ok(l.delete("dom"))
	frozen := l.bytesOf()
	r := newLab(t)
	if err := r.s.Restore(bytes.NewReader(frozen)); err != nil {
		t.Fatal(err)
	}
	if got := r.bytesOf(); !bytes.Equal(got, frozen) {
		t.Fatalf("restored\n%s\nwant\n%s", got, frozen)
	}
	r.now, r.n = l.now, l.n
	for _, x := range []*lab{l, r} {
		x.refused(x.delete(v), "REL-8", d)
		x.ok(x.delete(d))
		x.ok(x.delete(v))
		x.ok(x.create(form.ModuleWorkerURL, "z", object{}))
	}
	if !bytes.Equal(l.bytesOf(), r.bytesOf()) {
		t.Error("the restored state goes on differently")
	}
	for _, bad := range []string{"", "{}", `{"head":{"format":99}}`, string(frozen[:len(frozen)-20]), strings.Replace(string(frozen), "ModuleWorker/0.3.0/", "ModuleWorker/9.9.9/", -1)} {
		if err := New(form.Builtin()).Restore(strings.NewReader(bad)); err == nil {
			t.Errorf("a damaged snapshot is accepted: %.40q", bad)
		}
	}
}

// Composite keys are injective and keep prefixes together, for any bytes.
func TestKeys(t *testing.T) {
	parts := []string{"", "a", "\x00", "a\x00", "\x00\x01", "a\x00\x01b", "\x00\xff"}
	seen := map[string]string{}
	for _, a := range parts {
		for _, b := range parts {
			k := key(a, b)
			id := fmt.Sprintf("%q %q", a, b)
			if other, taken := seen[k]; taken {
				t.Errorf("%s and %s have one key", id, other)
			}
			seen[k] = id
			if !strings.HasPrefix(k, key(a)) {
				t.Errorf("key of %s does not begin with that of its first part", id)
			}
		}
	}
}

// A damaged snapshot is an error, never a panic.
func FuzzRestore(f *testing.F) {
	l := newLab(f)
	w := l.worker("w")
	l.deploy(w, "d", l.version(w, "v", "fetch"), 10000)
	l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
	f.Add(l.bytesOf())
	f.Add([]byte(`{"head":{"format":1}}{"resource":{"form":"` + form.ModuleWorkerURL + `","spec":{}}}{"end":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := New(form.Builtin())
		if s.Restore(bytes.NewReader(raw)) != nil {
			return
		}
		s.Each(func(r *Resource) bool {
			if r.Observed != nil && r.Output != nil {
				Representation(r)
			}
			return true
		})
	})
}
