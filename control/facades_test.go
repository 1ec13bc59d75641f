package control

import (
	"strings"
	"testing"

	"edged/control/form"
)

// worker-version §9: a version keeps the facade set it was sealed with. A program without that set renders it not ready and says
// why, refuses to select it, and does not seal it anew, not even by a same-spec PUT; a program that carries it again runs it; a
// restart that changes no set moves nothing.
func TestVersionOfAnotherFacadeSet(t *testing.T) {
	dir := t.TempDir()
	with := func(set string, others ...string) *node {
		t.Helper()
		return startNode(t, dir, func(o *Options) { o.FacadeSet, o.FacadeSets = set, others })
	}
	n := with("one")
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	code := n.code("code", "fetch")
	version := spec{"worker": ref(w), "bundle": ref(code), "handlers": []string{"fetch"}}
	v1 := n.made(form.WorkerVersionURL, "v1", version)
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, v1, 10000))
	e := n.made(form.WorkerEndpointURL, "e", spec{"worker": ref(w)})
	state := func(n *node, uid, member string) (value any, reason, text string) {
		t.Helper()
		a := n.get(uid)
		if c, ok := a.member(t, "hostConditions").([]any); ok {
			reason, _ = c[0].(map[string]any)["reason"].(string)
			text, _ = c[0].(map[string]any)["hostReason"].(string)
		}
		return a.member(t, "observed").(map[string]any)[member], reason, text
	}
	etags := func(n *node) string {
		t.Helper()
		var out []string
		for _, uid := range []string{w, v1, d, e} {
			out = append(out, n.get(uid).header.Get("ETag"))
		}
		return strings.Join(out, " ")
	}
	before := etags(n)
	n.stop()

	n = with("one")
	if got := etags(n); got != before {
		t.Errorf("a restart moved ETags from %s to %s", before, got)
	}
	n.stop()

	n = with("two")
	if ready, reason, text := state(n, v1, "ready"); ready != false || reason != "UnsupportedCapability" || !strings.Contains(text, "one") {
		t.Errorf("the version renders %v, %s: %s", ready, reason, text)
	}
	for uid, member := range map[string]string{w: "ready", d: "ready", e: "activeDeploymentRouteReady"} {
		if ready, reason, _ := state(n, uid, member); ready != false || reason != "UnsupportedCapability" {
			t.Errorf("%s renders %v, %s", uid, ready, reason)
		}
	}
	if err := n.c.plans.reach(t.Context(), n.c.machine.planned.Load()); err != nil {
		t.Fatal(err)
	}
	if p := n.lastPlan(); p.Versions[v1].Ready {
		t.Error("the plan lets the version run")
	}
	n.put(d, weighted(w, v1, 10000)).is(t, 422, "invalid_spec")
	n.succeeded(n.put(v1, version)) // verified again, and no other than before
	if ready, _, _ := state(n, v1, "ready"); ready != false {
		t.Error("a same-spec PUT sealed the version anew")
	}
	v2 := n.made(form.WorkerVersionURL, "v2", version)
	n.succeeded(n.put(d, weighted(w, v2, 10000))) // the way on
	if ready, _, _ := state(n, w, "ready"); ready != true {
		t.Error("the worker is not ready after the switch to a new version")
	}
	n.stop()

	n = with("two", "one")
	if ready, reason, _ := state(n, v1, "ready"); ready != true || reason != "" {
		t.Errorf("a program that carries the set renders %v, %s", ready, reason)
	}
	n.succeeded(n.put(d, weighted(w, v1, 5000, v2, 5000)))
}
