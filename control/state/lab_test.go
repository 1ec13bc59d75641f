package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// lab is a State with a hand on every command.
type lab struct {
	t     testing.TB
	s     *State
	now   int64
	n     int
	actor Actor
	other bool // the state has the second set of drivers
}

func newLab(t testing.TB) *lab {
	return &lab{t: t, s: New(form.Builtin()), now: 1_000_000, actor: Actor{Tenant: "t1", Principal: "p1", Role: Editor}}
}

// onBothSets runs a test over the drivers of this program and over the second set.
func onBothSets(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Run("builtin", func(t *testing.T) { test(t, newLab(t)) })
	t.Run("other", func(t *testing.T) {
		l := newLab(t)
		l.s, l.other = New(renamed(form.Builtin())), true
		test(t, l)
	})
}

// as returns the same lab for another caller.
func (l *lab) as(tenant, principal string) *lab {
	other := *l
	other.actor = Actor{Tenant: tenant, Principal: principal, Role: Editor}
	return &other
}

type object = map[string]any

func ref(uid string) object { return object{"resourceUid": uid} }

// command makes a mutation whose UID, for a create, is its name, so that tables can speak of it.
func (l *lab) command(kind Kind, uid string, spec any) *Command {
	l.t.Helper()
	l.n++
	raw, err := json.Marshal(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	c := &Command{
		Kind: kind, At: l.now, Actor: l.actor, Lane: "v2", Key: fmt.Sprintf("%s-key-%d", l.actor.Tenant, l.n), UID: uid,
		Operation: fmt.Sprintf("op-%s-%d", l.actor.Tenant, l.n), Window: 1000, Proven: true, Address: "a-" + strings.ToLower(uid) + ".edge.test",
	}
	if kind != DeleteResource {
		c.Spec = raw
	}
	sum := sha256.Sum256(append([]byte(string(kind)+uid), raw...))
	c.Fingerprint = sum[:]
	if r := l.s.Resource(uid); r != nil {
		c.Expected = r.Generation
	}
	return c
}

func (l *lab) createCommand(formURL, uid string, spec any) *Command {
	l.t.Helper()
	c := l.command(CreateResource, uid, spec)
	if l.other {
		formURL = otherIdentity(formURL)
	}
	c.Form, c.Space, c.Name = formURL, "default", uid
	return c
}

// apply decides, gives a version the exports that its code stands for, and applies.
func (l *lab) apply(c *Command) Outcome {
	l.t.Helper()
	l.now++
	c.At = l.now
	if out := l.s.Decide(c); out.Inspect != nil {
		c.Inspected = &Inspected{Bundle: out.Inspect.Bundle, Exports: out.Inspect.Handlers}
	}
	decided := l.s.Decide(c)
	out := l.s.Apply(c)
	if (decided.Refusal == nil) != (out.Refusal == nil) || out.Refusal != nil && decided.Refusal.Detail() != out.Refusal.Detail() {
		l.t.Fatalf("Decide says %v, Apply %v", decided.Refusal, out.Refusal)
	}
	return out
}

func (l *lab) create(formURL, uid string, spec any) Outcome {
	l.t.Helper()
	return l.apply(l.createCommand(formURL, uid, spec))
}

func (l *lab) update(uid string, spec any) Outcome {
	l.t.Helper()
	return l.apply(l.command(UpdateResource, uid, spec))
}

func (l *lab) delete(uid string) Outcome {
	l.t.Helper()
	return l.apply(l.command(DeleteResource, uid, nil))
}

// end settles an unfinished Operation.
func (l *lab) end(op *Operation, ok bool, index *form.Index) Outcome {
	l.t.Helper()
	l.now++
	c := &Command{Kind: EndOperation, At: l.now, Operation: op.ID, OK: ok, Index: index}
	if !ok {
		c.Effect, c.Seed, c.Message = EffectNone, rules.ArtifactInvalid, "no"
	} else if r := l.s.Resource(op.Resource); r != nil && r.Driver().Role == rules.Migration {
		c.Ledger = &form.Ledger{Entries: l.s.Resource(r.Parsed().MigrationSet).Index.Entries()}
	}
	return l.s.Apply(c)
}

// ok fails the test unless the mutation was accepted; an unfinished one is settled.
func (l *lab) ok(out Outcome) *Operation {
	l.t.Helper()
	if out.Refusal != nil {
		l.t.Fatalf("refused: %s", out.Refusal.Detail())
	}
	if out.Operation.Status.Terminal() {
		if out.Operation.Status != Succeeded {
			l.t.Fatalf("operation %s failed: %s", out.Operation.ID, out.Operation.Message)
		}
		return out.Operation
	}
	out = l.end(out.Operation, true, l.index(out.Operation.Resource))
	if out.Operation.Status != Succeeded {
		l.t.Fatalf("operation ended %s: %s", out.Operation.Status, out.Operation.Message)
	}
	return out.Operation
}

func (l *lab) index(uid string) *form.Index {
	if r := l.s.Resource(uid); r == nil || r.Driver().ArtifactKind == "" {
		return nil
	}
	return &form.Index{SHA256: strings.Repeat("a", 64), Files: []form.File{{Path: "index.html", MediaType: "text/html", SHA256: strings.Repeat("b", 64), Size: 3}}}
}

func (l *lab) refused(out Outcome, rule string, names ...string) {
	l.t.Helper()
	if out.Refusal == nil {
		l.t.Fatalf("accepted, want %s", rule)
	}
	if out.Refusal.Rule != rule {
		l.t.Fatalf("refused by %s (%s), want %s", out.Refusal.Rule, out.Refusal.Detail(), rule)
	}
	for _, n := range names {
		if !strings.Contains(out.Refusal.Sentence, n) {
			l.t.Errorf("%q does not name %s", out.Refusal.Sentence, n)
		}
	}
}

func (l *lab) seed(out Outcome, seed rules.Seed) {
	l.t.Helper()
	if out.Refusal == nil || out.Refusal.Seed != seed {
		l.t.Fatalf("got %v, want %s", out.Refusal, seed)
	}
}

func artifactSpec() object {
	return object{"artifact": object{"url": "https://a.test/m", "sha256": strings.Repeat("a", 64)}}
}

func (l *lab) worker(uid string) string {
	l.t.Helper()
	l.ok(l.create(form.ModuleWorkerURL, uid, object{}))
	return uid
}

// versionSpec is a version with code; the bundle is made when it is missing.
func (l *lab) versionSpec(worker string, handlers ...string) object {
	l.t.Helper()
	b := "b-" + worker
	if l.s.Resource(b) == nil {
		l.ok(l.create(form.WorkerBundleURL, b, artifactSpec()))
	}
	if handlers == nil {
		handlers = []string{}
	}
	return object{"worker": ref(worker), "bundle": ref(b), "handlers": handlers}
}

func (l *lab) version(worker, uid string, handlers ...string) string {
	l.t.Helper()
	l.ok(l.create(form.WorkerVersionURL, uid, l.versionSpec(worker, handlers...)))
	return uid
}

func (l *lab) staticVersion(worker, uid string) string {
	l.t.Helper()
	a := "a-" + worker
	if l.s.Resource(a) == nil {
		l.ok(l.create(form.StaticAssetBundleURL, a, artifactSpec()))
	}
	l.ok(l.create(form.WorkerVersionURL, uid, object{"worker": ref(worker), "handlers": []string{},
		"assets": object{"bundle": ref(a), "runWorkerFirst": false, "notFoundHandling": "none"}}))
	return uid
}

func weights(worker string, shares ...any) object {
	var versions []object
	for i := 0; i < len(shares); i += 2 {
		versions = append(versions, object{"workerVersion": ref(shares[i].(string)), "weight": shares[i+1]})
	}
	return object{"worker": ref(worker), "versions": versions}
}

func (l *lab) deploy(worker, uid string, shares ...any) string {
	l.t.Helper()
	l.ok(l.create(form.WorkerDeploymentURL, uid, weights(worker, shares...)))
	return uid
}

func endpoint(worker string) object { return object{"worker": ref(worker)} }

func domain(worker, host string) object { return object{"worker": ref(worker), "hostname": host} }

// served returns the served representation of a Resource as an object.
func (l *lab) served(uid string) object {
	l.t.Helper()
	r := l.s.Resource(uid)
	if r == nil {
		l.t.Fatalf("%s does not exist", uid)
	}
	var doc object
	if err := json.Unmarshal(Representation(r), &doc); err != nil {
		l.t.Fatal(err)
	}
	return doc
}

// revisions returns the revision of every live Resource.
func (l *lab) revisions() map[string]uint64 {
	out := map[string]uint64{}
	l.s.Each(func(r *Resource) bool { out[r.UID] = r.Revision; return true })
	return out
}

// moved returns the UIDs whose revision differs from before, in order, the ones that came and went included.
func (l *lab) moved(before map[string]uint64) string {
	var out []string
	now := l.revisions()
	for uid, rev := range now {
		if before[uid] != rev {
			out = append(out, uid)
		}
	}
	for uid := range before {
		if _, live := now[uid]; !live {
			out = append(out, "-"+uid)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// bytesOf encodes the whole state.
func (l *lab) bytesOf() []byte {
	l.t.Helper()
	var b bytes.Buffer
	if err := l.s.Freeze().Write(&b); err != nil {
		l.t.Fatal(err)
	}
	return b.Bytes()
}
