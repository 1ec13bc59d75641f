package deploy

import (
	"fmt"
	"strings"
	"testing"

	"edged/control/client"
	"edged/control/form"
)

func (n *testNode) worker(name string) *Worker {
	n.t.Helper()
	w, err := FindWorker(n.t.Context(), n.client, "default", name)
	if err != nil {
		n.t.Fatal(err)
	}
	return w
}

// shares renders a distribution, heaviest first.
func shares(list []NamedShare) string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%d %s", s.Weight, s.Name))
	}
	return strings.Join(out, ", ")
}

// worker-deployment §1: what a set of weights makes of a distribution; the rest stays with those that are not named.
func TestShifted(t *testing.T) {
	for _, c := range []struct {
		name    string
		current []Share
		set     map[string]int
		want    string
	}{
		{"beside one", []Share{{"a", all}}, map[string]int{"b": 500}, "[{a 9500} {b 500}]"},
		{"beside two, in proportion", []Share{{"a", 7500}, {"b", 2500}}, map[string]int{"c": 2000}, "[{a 6000} {b 2000} {c 2000}]"},
		{"what whole numbers leave", []Share{{"a", 3334}, {"b", 3333}, {"c", 3333}}, map[string]int{"d": 5000}, "[{d 5000} {a 1667} {b 1667} {c 1666}]"},
		{"one of two", []Share{{"a", 5000}, {"b", 5000}}, map[string]int{"b": 1}, "[{a 9999} {b 1}]"},
		{"out", []Share{{"a", 5000}, {"b", 5000}}, map[string]int{"b": 0}, "[{a 10000}]"},
		{"all named", []Share{{"a", all}}, map[string]int{"a": 0, "b": all}, "[{b 10000}]"},
		{"a part of less than one point is none", []Share{{"a", 9999}, {"b", 1}}, map[string]int{"c": 6000}, "[{c 6000} {a 4000}]"},
		{"too much", []Share{{"a", all}}, map[string]int{"b": 6000, "c": 6000}, "together that is 120%"},
		{"nobody keeps the rest", []Share{{"a", all}}, map[string]int{"a": 9000}, "together that is 90%, and no other"},
	} {
		got, err := shifted(c.current, c.set)
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
		sum := 0
		for _, s := range got {
			sum += s.Weight
		}
		if err == nil && sum != all {
			t.Errorf("%s: the sum is %d", c.name, sum)
		}
	}
}

// Parts of the traffic as they are written.
func TestParsePoints(t *testing.T) {
	for text, want := range map[string]int{"500": 500, "5%": 500, "0.25%": 25, "12.5%": 1250, "100%": all, "0": 0, "10000": all,
		"": -1, "%": -1, ".5%": -1, "5.%": -1, "0.125%": -1, "10001": -1, "100.01%": -1, "-1": -1, "+5%": -1, "5 %": -1, "1e2": -1, "0.-1%": -1} {
		got, err := ParsePoints(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

// Weights by name, UID and beginning of a digest; a rollback goes to the distribution before, a second one undoes it, and what
// was refused or changed nothing is no distribution.
func TestShiftAndRollback(t *testing.T) {
	n, dir := startNode(t), full(t)
	first := n.mustDeploy(dir, Options{})
	one := n.named(first, "WorkerVersion")
	if _, err := n.worker("hello").Rollback(t.Context()); err == nil || !strings.Contains(err.Error(), "no distribution of hello before") {
		t.Errorf("without a past: %v", err)
	}
	lay(t, dir, map[string]string{"i.js": "export default { fetch() { return new Response('two'); } };"})
	second := n.mustDeploy(dir, Options{})
	two := n.named(second, "WorkerVersion")
	for _, c := range []struct {
		set  map[string]int
		want string
	}{
		{map[string]int{one: 500}, "9500 " + two + ", 500 " + one},
		{map[string]int{first.Version: 2500}, "7500 " + two + ", 2500 " + one},
		{map[string]int{strings.TrimPrefix(two, "hello.version.")[:6]: 6000}, "6000 " + two + ", 4000 " + one},
	} {
		change, err := n.worker("hello").Shift(t.Context(), c.set)
		if err != nil || !change.Changed || shares(change.After) != c.want || shares(n.worker("hello").Shares()) != c.want {
			t.Errorf("%v: %+v, %v, want %s", c.set, change, err, c.want)
		}
	}
	if change, err := n.worker("hello").Shift(t.Context(), map[string]int{two: 6000}); err != nil || change.Changed {
		t.Errorf("the same again: %+v, %v", change, err)
	}
	for text, want := range map[string]string{"gone": "no version", "": "no version"} {
		if _, err := n.worker("hello").Shift(t.Context(), map[string]int{text: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	back := func(want string) {
		t.Helper()
		change, err := n.worker("hello").Rollback(t.Context())
		if err != nil || shares(change.After) != want {
			t.Errorf("rollback: %+v, %v, want %s", change, err, want)
		}
	}
	back("7500 " + two + ", 2500 " + one)
	back("6000 " + two + ", 4000 " + one)
	n.mustDeploy(dir, Options{})
	w := n.worker("hello")
	old := w.versions[first.Version]
	op, err := n.client.Delete(t.Context(), old.UID, old.Generation, client.NewKey())
	if err == nil {
		_, err = n.client.Wait(t.Context(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.worker("hello").Rollback(t.Context()); err == nil || !strings.Contains(err.Error(), "which is gone") {
		t.Errorf("to a version that is gone: %v", err)
	}
}

// worker-aggregate §5: a worker goes with what depends on it, in the legal order; data stays; what others use or call stays
// and is named; an interrupted teardown is finished by the next.
func TestTeardown(t *testing.T) {
	n, dir := boundWorker(t)
	n.mustDeploy(dir, Options{Secret: key("s")})
	d, err := n.worker("other").Dependents(t.Context())
	if err != nil || len(d.Blocked) != 1 || d.Blocked[0].Note != "binds it as OTHER" {
		t.Errorf("%+v, %v", d, err)
	}
	if err := n.worker("other").Teardown(t.Context(), d, func(Step) {}); err == nil || !strings.Contains(err.Error(), "binds it as OTHER") {
		t.Errorf("a worker that is called: %v", err)
	}
	w := n.worker("all")
	if d, err = w.Dependents(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range d.Remove {
		want = append(want, s.Kind)
	}
	const order = "QueueConsumer WorkerCronTrigger WorkerDeployment WorkerVersion WorkerBundle ModuleWorker"
	if strings.Join(want, " ") != order || len(d.Blocked) > 0 {
		t.Errorf("%v, want %s", want, order)
	}
	half := *d
	half.Remove, half.resources = d.Remove[:3], d.resources[:3]
	var done []string
	note := func(s Step) { done = append(done, s.Action+" "+s.Kind) }
	if err := w.Teardown(t.Context(), &half, note); err != nil {
		t.Fatal(err)
	}
	if d, err = n.worker("all").Dependents(t.Context()); err != nil || len(d.Remove) != 3 {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := w.Teardown(t.Context(), d, note); err != nil || len(done) != 6 || done[5] != "deleted ModuleWorker" {
		t.Errorf("%v, %v", done, err)
	}
	if _, err := FindWorker(t.Context(), n.client, "default", "all"); err == nil {
		t.Error("the worker is still there")
	}
	for _, name := range []string{"cache", "app", "tasks", "dead", "other"} {
		n.read(name)
	}
	if _, err := FindWorker(t.Context(), n.client, "default", "cache"); err == nil {
		t.Error("a namespace passes for a worker")
	}
	n.mustDeploy(dir, Options{Secret: key("s")}) // and again from the beginning
}

// A bundle that another worker's version uses stays.
func TestTeardownKeepsSharedBundle(t *testing.T) {
	n, dir := startNode(t), full(t)
	first := n.mustDeploy(dir, Options{})
	bundle := n.read(n.named(first, "WorkerBundle"))
	op, err := n.client.Create(t.Context(), client.Create{Form: form.ModuleWorkerURL, Space: "default", Name: "guest", Spec: struct{}{}}, client.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	op, err = n.client.Create(t.Context(), client.Create{Form: form.WorkerVersionURL, Space: "default", Name: "guest.v",
		Spec: versionSpec{Worker: ref{op.ResourceUID}, Bundle: &ref{bundle.UID}, Handlers: []string{"fetch"}}}, client.NewKey())
	if err == nil {
		_, err = n.client.Wait(t.Context(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.worker("hello").Dependents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Remove {
		if s.UID == bundle.UID {
			t.Errorf("%+v would go", s)
		}
	}
	if err := n.worker("hello").Teardown(t.Context(), d, func(Step) {}); err != nil {
		t.Error(err)
	}
}
