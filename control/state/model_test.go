package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"edged/control/form"
	"edged/control/rules"
)

// model is a naive reading of the contract over a few workers: plain maps, every question answered by a scan.
type model struct {
	workers, bundles map[string]bool
	versions         map[string]modelVersion // UID to version
	deployments      map[string]modelDeployment
	attachments      map[string]modelAttachment
	gone             map[string]bool
	generation       map[string]uint64
}

type modelVersion struct {
	worker, bundle string
	http           bool
}

type modelDeployment struct {
	worker  string
	weights map[string]int
}

type modelAttachment struct{ worker, host string }

func newModel() *model {
	return &model{
		workers: map[string]bool{}, bundles: map[string]bool{}, versions: map[string]modelVersion{}, deployments: map[string]modelDeployment{},
		attachments: map[string]modelAttachment{}, gone: map[string]bool{}, generation: map[string]uint64{},
	}
}

func (m *model) live(uid string) bool { return m.generation[uid] > 0 && !m.gone[uid] }

func (m *model) deploymentOf(worker string) (string, bool) {
	for uid, d := range m.deployments {
		if d.worker == worker {
			return uid, true
		}
	}
	return "", false
}

func (m *model) attached(worker string) bool {
	for _, a := range m.attachments {
		if a.worker == worker {
			return true
		}
	}
	return false
}

// judgeWeights says which rule refuses a distribution; "" for none.
func (m *model) judgeWeights(worker string, uids []string, shares []int) string {
	sum := 0
	for i, uid := range uids {
		if slices.Contains(uids[:i], uid) {
			return "WA-2.1"
		}
		sum += shares[i]
	}
	if sum != 10000 {
		return "WA-2.2"
	}
	for _, uid := range uids {
		if _, ok := m.versions[uid]; !ok {
			if m.live(uid) {
				return "REL-3"
			}
			return "REL-1"
		}
	}
	for _, uid := range uids {
		if m.versions[uid].worker != worker {
			return "WA-2.3"
		}
	}
	return ""
}

func (m *model) judgeDependents(worker string, uids []string) string {
	if m.attached(worker) {
		for _, uid := range uids {
			if !m.versions[uid].http {
				return "WA-4.1"
			}
		}
	}
	return ""
}

// ready is rule 7.
func (m *model) ready(worker string) (string, bool) {
	uid, ok := m.deploymentOf(worker)
	if !ok {
		return "<nil>", false
	}
	for v := range m.deployments[uid].weights {
		if !m.versions[v].http {
			return uid, false
		}
	}
	return uid, true
}

// held reports whether anything live points at the UID.
func (m *model) held(uid string) bool {
	for _, v := range m.versions {
		if v.worker == uid || v.bundle == uid {
			return true
		}
	}
	for _, d := range m.deployments {
		if d.worker == uid || d.weights[uid] > 0 {
			return true
		}
	}
	for _, a := range m.attachments {
		if a.worker == uid {
			return true
		}
	}
	return false
}

// machine drives state and model with the same random commands.
type machine struct {
	l *lab
	m *model
	n int
}

func (x *machine) uid(kind string) string { x.n++; return fmt.Sprint(kind, x.n) }

// pick draws a UID, mostly one of the first set, so that sequences get somewhere.
func pick(t *rapid.T, what string, sets ...[]string) string {
	all := slices.Sorted(slices.Values(sets[0]))
	if len(all) == 0 || rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		for _, s := range sets[1:] {
			all = append(all, slices.Sorted(slices.Values(s))...)
		}
		all = append(all, "nothing")
	}
	return rapid.SampledFrom(all).Draw(t, what)
}

func keysOf[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

// agree compares the outcome with the rule that the model expects, "" for acceptance.
func (x *machine) agree(t *rapid.T, out Outcome, want, uid string) bool {
	got := ""
	if out.Refusal != nil {
		got = out.Refusal.Rule
		if got == "" {
			got = string(out.Refusal.Seed)
		}
	}
	if got != want {
		t.Fatalf("%s: got %q (%v), model says %q", uid, got, out.Refusal, want)
	}
	if want == "" {
		x.l.ok(out)
		x.m.generation[uid]++
	}
	return want == ""
}

func (x *machine) reference(target string, set bool) string {
	switch {
	case set:
		return ""
	case x.m.live(target):
		return "REL-3"
	}
	return "REL-1"
}

func (x *machine) all() []string {
	return slices.Concat(keysOf(x.m.workers), keysOf(x.m.bundles), keysOf(x.m.versions), keysOf(x.m.deployments), keysOf(x.m.attachments))
}

func first(rules ...string) string {
	for _, r := range rules {
		if r != "" {
			return r
		}
	}
	return ""
}

func (x *machine) createWorker(t *rapid.T) {
	if len(x.m.workers) == 2 {
		t.Skip("two workers are enough to get in each other's way")
	}
	uid := x.uid("w")
	if x.agree(t, x.l.create(form.ModuleWorkerURL, uid, object{}), "", uid) {
		x.m.workers[uid] = true
	}
}

func (x *machine) createBundle(t *rapid.T) {
	if len(x.m.bundles) == 2 {
		t.Skip("two bundles are enough")
	}
	uid := x.uid("b")
	if x.agree(t, x.l.create(form.WorkerBundleURL, uid, artifactSpec()), "", uid) {
		x.m.bundles[uid] = true
	}
}

func (x *machine) createVersion(t *rapid.T) {
	uid := x.uid("v")
	w := pick(t, "worker", keysOf(x.m.workers), keysOf(x.m.bundles))
	b := pick(t, "bundle", keysOf(x.m.bundles))
	handlers := rapid.SampledFrom([][]string{{"fetch"}, {"scheduled"}, {}}).Draw(t, "handlers")
	want := first(x.reference(w, x.m.workers[w]), x.reference(b, x.m.bundles[b]))
	out := x.l.create(form.WorkerVersionURL, uid, object{"worker": ref(w), "bundle": ref(b), "handlers": handlers})
	if x.agree(t, out, want, uid) {
		x.m.versions[uid] = modelVersion{w, b, len(handlers) > 0 && handlers[0] == "fetch"}
	}
}

func (x *machine) distribution(t *rapid.T, worker string) ([]string, []int) {
	n := rapid.IntRange(1, 3).Draw(t, "entries")
	var own, uids []string
	for uid, v := range x.m.versions {
		if v.worker == worker {
			own = append(own, uid)
		}
	}
	for range n {
		uids = append(uids, pick(t, "version", own, keysOf(x.m.versions), keysOf(x.m.workers)))
	}
	shares := [][]int{{10000}, {4000, 6000}, {1, 2, 9997}}[n-1]
	if rapid.IntRange(0, 9).Draw(t, "off") == 0 {
		shares = slices.Clone(shares)
		shares[0]--
		if shares[0] == 0 {
			shares[0] = 2
		}
	}
	return uids, shares
}

func weightSpec(worker string, uids []string, shares []int) object {
	var flat []any
	for i := range uids {
		flat = append(flat, uids[i], shares[i])
	}
	return weights(worker, flat...)
}

func (x *machine) createDeployment(t *rapid.T) {
	uid := x.uid("d")
	w := pick(t, "worker", keysOf(x.m.workers))
	uids, shares := x.distribution(t, w)
	pure := x.m.judgeWeights(w, uids, shares)
	want := pure
	if pure != "WA-2.1" && pure != "WA-2.2" {
		want = x.reference(w, x.m.workers[w])
		if want == "" && strings.HasPrefix(pure, "REL") {
			want = pure
		}
		if want == "" {
			if _, taken := x.m.deploymentOf(w); taken {
				want = "WA-1.1"
			}
		}
		want = first(want, pure, x.m.judgeDependents(w, uids))
	}
	if x.agree(t, x.l.create(form.WorkerDeploymentURL, uid, weightSpec(w, uids, shares)), want, uid) {
		x.setWeights(uid, w, uids, shares)
	}
}

func (x *machine) setWeights(uid, worker string, uids []string, shares []int) {
	d := modelDeployment{worker, map[string]int{}}
	for i, v := range uids {
		d.weights[v] = shares[i]
	}
	x.m.deployments[uid] = d
}

func (x *machine) updateDeployment(t *rapid.T) {
	uid := pick(t, "deployment", keysOf(x.m.deployments))
	d, ok := x.m.deployments[uid]
	if !ok {
		return
	}
	uids, shares := x.distribution(t, d.worker)
	want := first(x.m.judgeWeights(d.worker, uids, shares), x.m.judgeDependents(d.worker, uids))
	if x.agree(t, x.l.update(uid, weightSpec(d.worker, uids, shares)), want, uid) {
		x.setWeights(uid, d.worker, uids, shares)
	}
}

func (x *machine) attach(t *rapid.T) {
	w := pick(t, "worker", keysOf(x.m.workers))
	host := rapid.SampledFrom([]string{"", "a.test", "B.test.", "b.test"}).Draw(t, "host")
	uid := x.uid("a")
	canonical := strings.ToLower(strings.TrimSuffix(host, "."))
	want := x.reference(w, x.m.workers[w])
	for _, a := range x.m.attachments {
		switch {
		case want != "":
		case host == "" && a.host == "" && a.worker == w:
			want = "CL-6"
		case host != "" && a.host == canonical:
			want = "CL-3"
		}
	}
	if want == "" {
		if _, ready := x.m.ready(w); !ready {
			d, ok := x.m.deploymentOf(w)
			switch {
			case !ok:
				want = "WA-3.5"
			case len(x.m.deployments[d].weights) > 0 && host == "":
				want = "WA-3.2"
			default:
				want = "WA-3.1"
			}
		}
	}
	var out Outcome
	if host == "" {
		out = x.l.create(form.WorkerEndpointURL, uid, endpoint(w))
	} else {
		out = x.l.create(form.CustomDomainURL, uid, domain(w, host))
	}
	if x.agree(t, out, want, uid) {
		x.m.attachments[uid] = modelAttachment{w, canonical}
	}
}

func (x *machine) remove(t *rapid.T) {
	uid := pick(t, "target", x.all(), keysOf(x.m.gone))
	want := ""
	d, isDeployment := x.m.deployments[uid]
	switch {
	case x.m.gone[uid]:
		want = string(rules.Gone)
	case !x.m.live(uid):
		want = string(rules.ResourceNotFound)
	case isDeployment:
		for _, kind := range []struct {
			rule     string
			endpoint bool
		}{{"WA-5.1", false}, {"WA-5.2", true}} {
			for _, a := range x.m.attachments {
				if want == "" && a.worker == d.worker && (a.host == "") == kind.endpoint {
					want = kind.rule
				}
			}
		}
	case x.m.held(uid):
		want = "REL-8"
	}
	if x.agree(t, x.l.delete(uid), want, uid) {
		x.m.gone[uid] = true
		for _, set := range []map[string]bool{x.m.workers, x.m.bundles} {
			delete(set, uid)
		}
		delete(x.m.versions, uid)
		delete(x.m.deployments, uid)
		delete(x.m.attachments, uid)
	}
}

// repeat sends the same spec again: only the Resource itself may move.
func (x *machine) repeat(t *rapid.T) {
	uid := pick(t, "target", x.all())
	r := x.l.s.Resource(uid)
	if r == nil {
		return
	}
	before := x.l.revisions()
	if x.agree(t, x.l.update(uid, r.Spec), "", uid) {
		if moved := x.l.moved(before); moved != uid {
			t.Fatalf("the same spec of %s moved %q", uid, moved)
		}
	}
}

// check compares every rendering and counter.
func (x *machine) check(t *rapid.T) {
	for w := range x.m.workers {
		active, ready := x.m.ready(w)
		want := fmt.Sprintf("map[activeDeploymentUid:%s ready:%t]", active, ready)
		if got := fmt.Sprint(x.l.served(w)["observed"]); got != want {
			t.Fatalf("worker %s observes %s, model says %s", w, got, want)
		}
	}
	for a, at := range x.m.attachments {
		_, ready := x.m.ready(at.worker)
		if got := x.l.served(a)["observed"].(object)["activeDeploymentRouteReady"]; got != ready {
			t.Fatalf("attachment %s routes %v, model says %t", a, got, ready)
		}
	}
	n := 0
	x.l.s.Each(func(r *Resource) bool {
		n++
		if !x.m.live(r.UID) || x.m.generation[r.UID] != r.Generation || r.ObservedGeneration != r.Generation {
			t.Fatalf("%s has generation %d, observed %d, model says %d", r.UID, r.Generation, r.ObservedGeneration, x.m.generation[r.UID])
		}
		return true
	})
	if want := len(x.m.workers) + len(x.m.bundles) + len(x.m.versions) + len(x.m.deployments) + len(x.m.attachments); n != want {
		t.Fatalf("%d Resources live, model says %d", n, want)
	}
}

// Random sequences of commands: the state and the naive model agree on every answer and every rendering, and a snapshot
// taken anywhere goes on like the original.
func TestApplyAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := &machine{l: newLab(t), m: newModel()}
		rt.Repeat(map[string]func(*rapid.T){
			"worker": x.createWorker, "bundle": x.createBundle, "version": x.createVersion, "version2": x.createVersion,
			"deploy": x.createDeployment, "deploy2": x.createDeployment, "reweight": x.updateDeployment, "reweight2": x.updateDeployment,
			"attach": x.attach, "attach2": x.attach, "attach3": x.attach, "remove": x.remove, "repeat": x.repeat,
			"restore": func(rt *rapid.T) {
				frozen := x.l.bytesOf()
				s := New(form.Builtin())
				if err := s.Restore(bytes.NewReader(frozen)); err != nil {
					rt.Fatal(err)
				}
				x.l.s = s
				if got := x.l.bytesOf(); !bytes.Equal(got, frozen) {
					rt.Fatalf("restored %s, want %s", got, frozen)
				}
			},
			"": x.check,
		})
	})
}

// Replaying the same encoded commands gives the same bytes: nothing in Apply depends on anything else.
func TestReplayIsDeterministic(t *testing.T) {
	l := newLab(t)
	var log [][]byte
	record := func(c *Command, out Outcome) {
		raw, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, raw)
		_ = out
	}
	step := func(c *Command) Outcome { out := l.apply(c); record(c, out); return out }
	step(l.createCommand(form.ModuleWorkerURL, "w", object{}))
	b := step(l.createCommand(form.WorkerBundleURL, "b", artifactSpec()))
	end := &Command{Kind: EndOperation, At: l.now, Operation: b.Operation.ID, OK: true, Index: l.index("b")}
	record(end, l.s.Apply(end))
	for i := range 5 {
		step(l.createCommand(form.WorkerVersionURL, fmt.Sprint("v", i), object{"worker": ref("w"), "bundle": ref("b"), "handlers": []string{"fetch"}, "vars": object{"N": i, "M": object{"z": 1, "a": 2}}}))
	}
	step(l.createCommand(form.WorkerDeploymentURL, "d", weights("w", "v0", 5000, "v1", 5000)))
	step(l.createCommand(form.WorkerEndpointURL, "e", endpoint("w")))
	again := New(form.Builtin())
	for _, raw := range log {
		c, err := DecodeCommand(raw)
		if err != nil {
			t.Fatal(err)
		}
		again.Apply(c)
	}
	want := l.bytesOf()
	l.s = again
	if got := l.bytesOf(); !bytes.Equal(got, want) {
		t.Errorf("replay gives\n%s\nwant\n%s", got, want)
	}
}
