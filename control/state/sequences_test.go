package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/rules"
	"edged/internal/testkit"
)

// sequence drives state and reference with the same random commands.
type sequence struct {
	t       *testing.T
	rng     *rand.Rand
	s       *State
	m       *reference
	now     int64
	n       int
	ops     map[string]string // unfinished Operation by UID
	log     [][]byte          // encoded commands
	history []string
	seen    map[string]int // answers of all sequences, by rule
	other   bool           // the state has the second set of drivers
}

// commandsPerSequence are what a sequence has beside its beginning: enough for attachments and their end.
const commandsPerSequence = 20

func (x *sequence) tenant() string { return []string{"t1", "t1", "t1", "t2"}[x.rng.IntN(4)] }

// send applies a command and returns what the state says. Decide has to say the same before.
func (x *sequence) send(c *Command) Outcome {
	x.n++
	x.now += 1 + int64(x.rng.IntN(100_000))
	c.At, c.Operation, c.Lane, c.Key, c.Window = x.now, fmt.Sprint("op", x.n), "v2", fmt.Sprint("key", x.n), 1
	c.Fingerprint = []byte(c.Key)
	decided := x.s.Decide(c)
	if decided.Inspect != nil {
		c.Inspected = &Inspected{Bundle: decided.Inspect.Bundle, Exports: decided.Inspect.Handlers}
		decided = x.s.Decide(c)
	}
	raw, err := c.Encode()
	if err != nil {
		x.t.Fatal(err)
	}
	x.log = append(x.log, raw)
	out := x.s.Apply(c)
	if (decided.Refusal == nil) != (out.Refusal == nil) || out.Refusal != nil && decided.Refusal.Detail() != out.Refusal.Detail() {
		x.t.Fatalf("%s\nDecide says %v, Apply %v", x.past(), decided.Refusal, out.Refusal)
	}
	return out
}

func (x *sequence) past() string { return strings.Join(x.history, "\n") }

// agree compares the answer and says whether both accept.
func (x *sequence) agree(what string, out Outcome, want verdict) bool {
	got := accepted
	if out.Refusal != nil {
		got = verdict{out.Refusal.Seed, out.Refusal.Rule}
	}
	x.history = append(x.history, fmt.Sprintf("%s: %v", what, got))
	x.seen[got.rule]++
	if got != want {
		x.t.Fatalf("%s\nthe reference says %v, the state %v (%v)", x.past(), want, got, out.Refusal)
	}
	return got == accepted
}

func firstOf(judges ...func() verdict) verdict {
	for _, judge := range judges {
		if v := judge(); v != accepted {
			return v
		}
	}
	return accepted
}

func (x *sequence) create() {
	kinds := []string{"ModuleWorker", "WorkerBundle", "WorkerVersion", "WorkerVersion", "WorkerDeployment", "WorkerDeployment", "WorkerEndpoint", "WorkerCustomDomain",
		"WorkerCronTrigger", "QueueConsumer", "QueueConsumer", "EdgeKVNamespace", "AtLeastOnceQueue"}
	kind := kinds[x.rng.IntN(len(kinds))]
	x.issue(x.tenant(), x.spec(kind, nil))
}

// form returns the identity of a kind, named the key of a name: the second set has names of their own for every kind.
func (x *sequence) form(kind string) string {
	if x.other {
		return otherIdentity(refForms[kind])
	}
	return refForms[kind]
}

func (x *sequence) named(tenant, kind, name string) string {
	if x.other {
		return tenant + " " + kind + " " + name
	}
	return tenant + " " + name
}

// issue sends a create.
func (x *sequence) issue(tenant string, s refSpec) {
	kind, uid := s.kind, fmt.Sprintf("r%03d", x.n)
	name := uid
	if x.rng.IntN(30) == 0 {
		name = "r000"
	}
	c := &Command{Kind: CreateResource, Actor: Actor{Tenant: tenant, Principal: "p", Role: Editor}, UID: uid, Form: x.form(kind), Space: "s", Name: name,
		Spec: []byte(s.json), Proven: true, Address: uid + ".edge.test", Home: pickOf(x, x.m.fleet.members, "")}
	want := firstOf(
		func() verdict { return shape(&s) },
		func() verdict { return distribution(&s) },
		func() verdict {
			if x.m.names[x.named(tenant, kind, name)] != "" {
				return verdict{rules.NameConflict, ""}
			}
			return accepted
		},
		func() verdict { return x.m.references(tenant, &s) },
		func() verdict { return x.m.aggregate(tenant, "", &s) })
	out := x.send(c)
	if !x.agree("create "+uid+" "+kind+" "+s.json+" of "+tenant, out, want) {
		return
	}
	r := &refResource{uid: uid, tenant: tenant, name: name, spec: s, phase: "pending", home: c.Home}
	x.m.live[uid], x.m.names[x.named(tenant, kind, name)] = r, uid
	x.began(r, out, false)
}

// began notes an accepted mutation; one without outside effect has ended.
func (x *sequence) began(r *refResource, out Outcome, deletes bool) {
	r.generation++
	outside := slices.Contains([]string{"WorkerBundle", "EdgeKVNamespace", "AtLeastOnceQueue"}, r.spec.kind) || deletes && slices.Contains([]string{"WorkerDeployment", "QueueConsumer"}, r.spec.kind)
	if out.Operation.Status.Terminal() == outside {
		x.t.Fatalf("%s\noperation is %s", x.past(), out.Operation.Status)
	}
	r.open, r.deleting, r.phase = true, deletes, "pending"
	if deletes {
		r.phase = "deleting"
	}
	if !outside {
		x.ended(r, true)
		return
	}
	x.ops[r.uid] = out.Operation.ID
}

func (x *sequence) ended(r *refResource, ok bool) {
	delete(x.ops, r.uid)
	r.open = false
	switch {
	case !ok:
		r.phase, r.deleting = "error", false
	case r.deleting:
		delete(x.m.live, r.uid)
		delete(x.m.names, x.named(r.tenant, r.spec.kind, r.name))
		x.m.gone[r.uid] = r.tenant
	default:
		r.phase, r.settled, r.at = "idle", true, x.now
		r.active = r.spec.weights
	}
}

func (x *sequence) any() string {
	if all := x.m.sorted(); len(all) > 0 && x.rng.IntN(15) > 0 {
		return all[x.rng.IntN(len(all))].uid
	}
	return fmt.Sprintf("r%03d", x.rng.IntN(x.n+1))
}

// addressed judges steps 8 and 13 of a mutation of an existing Resource.
func (x *sequence) addressed(uid, tenant string, expected uint64) verdict {
	r := x.m.live[uid]
	switch {
	case r == nil && x.m.gone[uid] == tenant:
		return verdict{rules.Gone, ""}
	case r == nil || r.tenant != tenant:
		return verdict{rules.ResourceNotFound, ""}
	case r.open:
		return verdict{rules.ResourceBusy, ""}
	case expected != r.generation:
		return verdict{rules.GenerationConflict, ""}
	}
	return accepted
}

func (x *sequence) target() (uid, tenant string, expected uint64) {
	uid, tenant = x.any(), x.tenant()
	if r := x.m.live[uid]; r != nil {
		if expected = r.generation; x.rng.IntN(8) > 0 {
			tenant = r.tenant
		}
	}
	if x.rng.IntN(25) == 0 {
		expected++
	}
	return uid, tenant, expected
}

func (x *sequence) update() {
	uid, tenant, expected := x.target()
	r := x.m.live[uid]
	s := refSpec{kind: "ModuleWorker", json: `{}`}
	if r != nil {
		if s = r.spec; x.rng.IntN(2) == 0 {
			s = x.spec(r.spec.kind, &r.spec)
		}
	}
	c := &Command{Kind: UpdateResource, Actor: Actor{Tenant: tenant, Principal: "p", Role: Editor}, UID: uid, Spec: []byte(s.json), Expected: expected, Proven: true}
	want := firstOf(
		func() verdict { return x.addressed(uid, tenant, expected) },
		func() verdict { return shape(&s) },
		func() verdict {
			o := &r.spec
			changes := o.worker != s.worker || o.queue != s.queue || o.host != s.host
			if o.kind == "WorkerVersion" {
				changes = o.json != s.json
			}
			if changes {
				return invalidSpec("immutable")
			}
			return accepted
		},
		func() verdict { return distribution(&s) },
		func() verdict { return x.m.references(tenant, &s) },
		func() verdict { return x.m.aggregate(tenant, uid, &s) })
	out := x.send(c)
	if x.agree("update "+uid+" "+s.json+" of "+tenant, out, want) {
		r.spec = s
		x.began(r, out, false)
	}
}

func (x *sequence) remove() {
	uid, tenant, expected := x.target()
	c := &Command{Kind: DeleteResource, Actor: Actor{Tenant: tenant, Principal: "p", Role: Editor}, UID: uid, Expected: expected}
	want := firstOf(
		func() verdict { return x.addressed(uid, tenant, expected) },
		func() verdict { return x.m.deletable(x.m.live[uid]) })
	out := x.send(c)
	if x.agree("delete "+uid+" of "+tenant, out, want) {
		x.began(x.m.live[uid], out, true)
	}
}

// begin makes a world in which something can happen: two workers, the first of them deployed, and two queues. Its commands are
// judged like all others, and a few go wrong.
func (x *sequence) begin() {
	for _, kind := range []string{"ModuleWorker", "WorkerBundle", "AtLeastOnceQueue", "AtLeastOnceQueue", "EdgeKVNamespace"} {
		x.issue("t1", x.spec(kind, nil))
	}
	for range 4 {
		x.settle()
	}
	worker := "r000"
	for range 2 {
		s := x.versionSpec(refSpec{kind: "WorkerVersion", worker: worker, refs: []refPointer{{pointer: "/worker", target: worker, accept: "ModuleWorker"}}})
		x.issue("t1", s)
	}
	x.issue("t1", x.deploymentSpec(refSpec{kind: "WorkerDeployment", worker: worker, refs: []refPointer{{pointer: "/worker", target: worker, accept: "ModuleWorker"}}}))
	x.issue("t1", x.spec("ModuleWorker", nil))
}

func (x *sequence) settle() {
	var open []string
	for uid := range x.ops {
		open = append(open, uid)
	}
	if len(open) == 0 {
		return
	}
	slices.Sort(open)
	uid := open[x.rng.IntN(len(open))]
	r := x.m.live[uid]
	ok := r.deleting || x.rng.IntN(6) > 0
	id := x.ops[uid]
	c := &Command{Kind: EndOperation, OK: ok, Effect: EffectNone, Seed: rules.ArtifactInvalid, Message: "no"}
	if ok && r.spec.kind == "WorkerBundle" && !r.deleting {
		c.Index = &form.Index{SHA256: "m", Files: []form.File{{Path: "main.js"}}}
	}
	x.now++
	c.At, c.Operation = x.now, id
	raw, err := c.Encode()
	if err != nil {
		x.t.Fatal(err)
	}
	x.log = append(x.log, raw)
	out := x.s.Apply(c)
	x.history = append(x.history, fmt.Sprintf("settle %s: %t", uid, ok))
	if (out.Operation.Status == Succeeded) != ok {
		x.t.Fatalf("%s\noperation ended %s", x.past(), out.Operation.Status)
	}
	x.ended(r, ok)
}

func (x *sequence) run() {
	x.begin()
	for range commandsPerSequence {
		var before map[string]rendering
		if x.rng.IntN(4) == 0 {
			before = x.renderings()
		}
		switch n := x.rng.IntN(21); {
		case n < 11:
			x.create()
		case n < 14:
			x.update()
		case n < 16:
			x.remove()
		case n == 20: // rare, but then enough for a fleet to have a history
			for range 12 {
				x.fleet()
			}
		default:
			x.settle()
		}
		if before != nil {
			x.check(before)
		}
		if x.rng.IntN(16*commandsPerSequence) == 0 {
			x.restarted()
		}
	}
	x.check(nil)
	x.checkFleet()
	if x.rng.IntN(16) == 0 {
		x.restarted()
	}
}

// Random sequences of commands, over two sets of drivers: the state and the naive reference agree on every answer (kind and rule)
// and every rendering, exactly the changed renderings move the revision, and a snapshot or a replay taken anywhere goes on
// like the original.
func TestSequencesAgreeWithReference(t *testing.T) {
	rng := testkit.Rand(t)
	sets := []form.Table{form.Builtin(), renamed(form.Builtin())}
	seen := map[string]int{}
	for i := range sequences {
		x := &sequence{t: t, rng: rng, s: New(sets[i%2]), m: newReference(), now: 1_700_000_000_000, ops: map[string]string{}, seen: seen, other: i%2 == 1}
		x.run()
	}
	for _, rule := range strings.Fields("WA-1.1 WA-2.1 WA-2.2 WA-2.3 WA-3.1 WA-3.2 WA-3.3 WA-3.4 WA-3.5 WA-4.1 WA-5.1 WA-5.2 WA-5.3 WA-5.4 WA-8.1 " +
		"REL-1 REL-3 REL-4 REL-5 REL-8 CL-3 CL-6 CL-8 CL-9 immutable " +
		"FL-1 FL-2 FL-3.1 FL-3.2 FL-3.3 FL-4.1 FL-4.2 FL-4.3 FL-5.1 FL-5.2 FL-5.3") {
		if seen[rule] == 0 && sequences >= 10_000 {
			t.Errorf("no sequence came to %s: the generator is too narrow", rule)
		}
	}
}
