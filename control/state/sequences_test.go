package state

import (
	"bytes"
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

func (x *sequence) pick(kinds ...string) string {
	var fit, all []string
	for _, r := range x.m.sorted() {
		all = append(all, r.uid)
		if slices.Contains(kinds, r.spec.kind) {
			fit = append(fit, r.uid)
		}
	}
	switch {
	case len(fit) > 0 && x.rng.IntN(12) > 0:
		return fit[x.rng.IntN(len(fit))]
	case len(all) > 0 && x.rng.IntN(3) > 0:
		return all[x.rng.IntN(len(all))]
	}
	return "nothing"
}

func jsonRef(uid string) string { return `{"resourceUid":"` + uid + `"}` }

// spec makes a random spec of a kind; old is the one it may vary, nil for a create.
func (x *sequence) spec(kind string, old *refSpec) refSpec {
	s := refSpec{kind: kind}
	owner := func() {
		if s.worker = x.pick("ModuleWorker"); old != nil && x.rng.IntN(8) > 0 {
			s.worker = old.worker
		}
		s.refs = append(s.refs, refPointer{pointer: "/worker", target: s.worker, accept: "ModuleWorker"})
	}
	switch kind {
	case "ModuleWorker", "EdgeKVNamespace":
		s.json = `{}`
	case "AtLeastOnceQueue":
		s.json = fmt.Sprintf(`{"messageRetentionSeconds":%d}`, 60+x.rng.IntN(3))
	case "WorkerBundle":
		s.json = `{"artifact":{"url":"https://a.test/m","sha256":"` + strings.Repeat("a", 64) + `"}}`
	case "WorkerVersion":
		owner()
		return x.versionSpec(s)
	case "WorkerDeployment":
		owner()
		return x.deploymentSpec(s)
	case "WorkerEndpoint":
		owner()
		s.json = `{"worker":` + jsonRef(s.worker) + `}`
	case "WorkerCustomDomain":
		written := []string{"a.test", "A.Test.", "b.test"}[x.rng.IntN(3)]
		s.host = strings.ToLower(strings.TrimSuffix(written, "."))
		owner()
		s.json = `{"hostname":"` + written + `","worker":` + jsonRef(s.worker) + `}`
	case "WorkerCronTrigger":
		owner()
		s.cron = []string{"*/5 * * * *", "0 3 * * 1", "*/60 * * * *"}[min(2, x.rng.IntN(9)/4)]
		s.json = `{"worker":` + jsonRef(s.worker) + `,"cron":"` + s.cron + `"}`
	case "QueueConsumer":
		if s.queue = x.pick("AtLeastOnceQueue"); old != nil && x.rng.IntN(8) > 0 {
			s.queue = old.queue
		}
		s.refs = append(s.refs, refPointer{pointer: "/queue", target: s.queue, accept: "AtLeastOnceQueue"})
		owner()
		dead := ""
		if x.rng.IntN(2) == 0 {
			s.dead = x.pick("AtLeastOnceQueue")
			s.refs = append(s.refs, refPointer{pointer: "/deadLetterQueue", target: s.dead, accept: "AtLeastOnceQueue"})
			dead = `,"deadLetterQueue":` + jsonRef(s.dead)
		}
		s.json = `{"queue":` + jsonRef(s.queue) + `,"worker":` + jsonRef(s.worker) +
			`,"maxBatchSize":1,"maxBatchTimeoutSeconds":0,"maxConcurrency":1,"maxRetries":0,"retryDelaySeconds":0` + dead + `}`
	}
	return s
}

func (x *sequence) versionSpec(s refSpec) refSpec {
	bundle := x.pick("WorkerBundle")
	s.refs = append(s.refs, refPointer{pointer: "/bundle", target: bundle, accept: "WorkerBundle"})
	s.handlers = [][]string{{"fetch", "scheduled", "queue"}, {"fetch"}, {"scheduled"}, {"queue"}, {}}[max(0, x.rng.IntN(8)-3)]
	bindings := ""
	if x.rng.IntN(4) == 0 {
		kv := x.pick("EdgeKVNamespace")
		s.refs = append(s.refs, refPointer{pointer: "/kvBindings/0/resource", target: kv, accept: "EdgeKVNamespace"})
		bindings += `,"kvBindings":[{"name":"KV","resource":` + jsonRef(kv) + `}]`
	}
	if x.rng.IntN(4) == 0 {
		callee := x.pick("ModuleWorker")
		s.services = []string{callee}
		s.refs = append(s.refs, refPointer{pointer: "/serviceBindings/0/resource", target: callee, accept: "ModuleWorker"})
		bindings += `,"serviceBindings":[{"name":"API","resource":` + jsonRef(callee) + `}]`
	}
	s.json = `{"worker":` + jsonRef(s.worker) + `,"bundle":` + jsonRef(bundle) + `,"handlers":[` + quoted(s.handlers) + `]` + bindings + `}`
	return s
}

func quoted(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return `"` + strings.Join(list, `","`) + `"`
}

func (x *sequence) deploymentSpec(s refSpec) refSpec {
	var own []string
	for _, v := range x.m.of(s.worker, "WorkerVersion") {
		own = append(own, v.uid)
	}
	n := 1 + x.rng.IntN(2)
	shares := [][]int{{10000}, {4000, 6000}}[n-1]
	var versions []string
	for i := range n {
		uid := x.pick("WorkerVersion")
		if len(own) > 0 && x.rng.IntN(6) > 0 {
			uid = own[x.rng.IntN(len(own))]
		}
		share := shares[i]
		if x.rng.IntN(20) == 0 {
			share--
		}
		s.weights = append(s.weights, rules.Weight{Version: uid, Weight: share})
		s.refs = append(s.refs, refPointer{pointer: fmt.Sprintf("/versions/%d/workerVersion", i), target: uid, accept: "WorkerVersion", lenient: true})
		versions = append(versions, fmt.Sprintf(`{"workerVersion":%s,"weight":%d}`, jsonRef(uid), share))
	}
	s.json = `{"worker":` + jsonRef(s.worker) + `,"versions":[` + strings.Join(versions, ",") + `]}`
	return s
}

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
		Spec: []byte(s.json), Proven: true, Address: uid + ".edge.test"}
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
	r := &refResource{uid: uid, tenant: tenant, name: name, spec: s, phase: "pending"}
	x.m.live[uid], x.m.names[x.named(tenant, kind, name)] = r, uid
	x.began(r, out, false)
}

// began notes an accepted mutation; one without outside effect has ended.
func (x *sequence) began(r *refResource, out Outcome, deletes bool) {
	r.generation++
	outside := slices.Contains([]string{"WorkerBundle", "EdgeKVNamespace", "AtLeastOnceQueue"}, r.spec.kind) || deletes && r.spec.kind == "WorkerDeployment"
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

// rendering is what rule 9 is about.
type rendering struct {
	observed, cause      string
	generation, revision uint64
	operation            string
}

func (x *sequence) renderings() map[string]rendering {
	out := make(map[string]rendering, len(x.m.live))
	x.s.resources.Scan(func(uid string, r *Resource) bool {
		d := rendering{string(r.Observed), "", r.Generation, r.Revision, r.LastOperation}
		if r.Cause != nil {
			d.cause = string(r.Cause.Reason) + r.Cause.Text
		}
		out[uid] = d
		return true
	})
	return out
}

// check compares every rendering and counter with the reference, and what moved with rule 9.
func (x *sequence) check(before map[string]rendering) {
	now := x.renderings()
	if len(now) != len(x.m.live) {
		x.t.Fatalf("%s\n%d Resources live, the reference has %d", x.past(), len(now), len(x.m.live))
	}
	for uid, r := range x.m.live {
		got := now[uid]
		want := x.m.observed(r)
		if r.spec.kind == "WorkerBundle" && r.settled {
			want = got.observed // its index is the runner's
		}
		rec := x.s.get(uid)
		if got.observed != want || got.generation != r.generation || string(rec.Phase) != r.phase {
			x.t.Fatalf("%s\n%s observes %s in generation %d and phase %s, the reference has %s, %d, %s", x.past(), uid, got.observed, got.generation, rec.Phase, want, r.generation, r.phase)
		}
		old, was := before[uid]
		if !was {
			continue
		}
		own := old.operation != got.operation || old.generation != got.generation || rec.Phase != Phase(r.phase)
		if moved, changed := old.revision != got.revision, old.observed != got.observed || old.cause != got.cause; changed && !moved || moved && !changed && !own && uid != x.lastSettled() {
			x.t.Fatalf("%s\n%s: rendering changed %t, revision moved %t", x.past(), uid, changed, moved)
		}
	}
}

// lastSettled is the Resource whose Operation the last step ended: phase and observedGeneration of it move too.
func (x *sequence) lastSettled() string {
	if len(x.history) == 0 {
		return ""
	}
	if rest, ok := strings.CutPrefix(x.history[len(x.history)-1], "settle "); ok {
		uid, _, _ := strings.Cut(rest, ":")
		return uid
	}
	return ""
}

// restarted compares the state with its snapshot's and with one that the same encoded commands lead to.
func (x *sequence) restarted() {
	var frozen, again, replayed bytes.Buffer
	if err := x.s.Freeze().Write(&frozen); err != nil {
		x.t.Fatal(err)
	}
	s := New(x.s.drivers)
	if err := s.Restore(bytes.NewReader(frozen.Bytes())); err != nil {
		x.t.Fatal(err)
	}
	if _ = s.Freeze().Write(&again); !bytes.Equal(again.Bytes(), frozen.Bytes()) {
		x.t.Fatalf("%s\nrestored\n%s\nwant\n%s", x.past(), again.Bytes(), frozen.Bytes())
	}
	r := New(x.s.drivers)
	for _, raw := range x.log {
		c, err := DecodeCommand(raw)
		if err != nil {
			x.t.Fatal(err)
		}
		r.Apply(c)
	}
	if _ = r.Freeze().Write(&replayed); !bytes.Equal(replayed.Bytes(), frozen.Bytes()) {
		x.t.Fatalf("%s\nreplayed\n%s\nwant\n%s", x.past(), replayed.Bytes(), frozen.Bytes())
	}
	x.s = s
}

func (x *sequence) run() {
	x.begin()
	for range commandsPerSequence {
		var before map[string]rendering
		if x.rng.IntN(4) == 0 {
			before = x.renderings()
		}
		switch n := x.rng.IntN(20); {
		case n < 11:
			x.create()
		case n < 14:
			x.update()
		case n < 16:
			x.remove()
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
	if x.rng.IntN(16) == 0 {
		x.restarted()
	}
}

func otherIdentity(url string) string { return "other:" + url }

// renamed is a second set of drivers: the same members, but other identities, targets by those, and names that are unique among
// Resources of one kind only. Nothing in rules or state may depend on the first set.
func renamed(first form.Table) form.Table {
	out := form.Table{}
	for url, d := range first {
		other := *d
		other.URL, other.Scope, other.Fields = otherIdentity(url), d.Kind, slices.Clone(d.Fields)
		for i := range other.Fields {
			read := other.Fields[i].Read
			other.Fields[i].Read = func(s *form.Spec, pointer string, val any) (any, *rules.Verdict) {
				had := len(s.Refs)
				norm, v := read(s, pointer, val)
				for k := range s.Refs[had:] {
					ref := &s.Refs[had+k]
					ref.Accept = slices.Clone(ref.Accept)
					for n := range ref.Accept {
						ref.Accept[n] = otherIdentity(ref.Accept[n])
					}
				}
				return norm, v
			}
		}
		out[other.URL] = &other
	}
	return out
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
		"REL-1 REL-3 REL-4 REL-5 REL-8 CL-3 CL-6 CL-8 CL-9 immutable") {
		if seen[rule] == 0 && sequences >= 10_000 {
			t.Errorf("no sequence came to %s: the generator is too narrow", rule)
		}
	}
}
