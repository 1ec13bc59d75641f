package control

import (
	"encoding/json"
	"testing"

	"edged/control/form"
)

// A whole worker through the API: identity, bundle, version, deployment, endpoint, domain; the plan follows; tear-down in
// the legal order leaves nothing behind (worker-aggregate §4).
func TestWorkerFromCreateToTearDown(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	v := n.version(w, "v1", "fetch")
	d := n.made(form.WorkerDeploymentURL, "dep", weighted(w, v, 10000))
	e := n.made(form.WorkerEndpointURL, "ep", spec{"worker": ref(w)})
	c := n.made(form.CustomDomainURL, "dom", spec{"hostname": "WWW.Example.test.", "worker": ref(w)})

	var ep struct {
		Observed struct{ TLSReady, ActiveDeploymentRouteReady bool }
		Output   struct{ Hostname, URL string }
	}
	if err := json.Unmarshal(n.get(e).body, &ep); err != nil {
		t.Fatal(err)
	}
	if !ep.Observed.ActiveDeploymentRouteReady || ep.Output.URL != "https://"+ep.Output.Hostname+"/" {
		t.Errorf("endpoint reads %s", n.get(e).body)
	}
	p := n.lastPlan()
	if len(p.Hosts) != 2 || len(p.Workers) != 1 || p.Workers[w].Deployment != d || len(p.Workers[w].Weights) != 1 || p.Workers[w].Weights[0].Version != v {
		raw, _ := json.Marshal(p)
		t.Fatalf("plan is %s", raw)
	}
	if p.Hosts[ep.Output.Hostname] == nil {
		t.Errorf("plan does not route %s", ep.Output.Hostname)
	}
	if got := n.get(c).member(t, "spec").(map[string]any)["hostname"]; got != "www.example.test" { // D-40
		t.Errorf("the domain echoes %v", got)
	}
	for _, uid := range []string{c, e, d, v, w} {
		n.succeeded(n.del(uid))
		n.get(uid).is(t, 410, "gone")
	}
	if p := n.lastPlan(); len(p.Hosts)+len(p.Workers)+len(p.Versions) != 0 {
		t.Errorf("plan still serves %+v", p)
	}
}

// D-54: of two tenants with the same name the older live claim has the route in the plan, and the newer one gets it when
// the older is gone.
func TestOlderClaimHasTheRoute(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	m := n.principal("other", "p", "editor")
	claim := func(n *node) (worker, dom string) {
		worker = n.made(form.ModuleWorkerURL, "web", spec{})
		n.made(form.WorkerDeploymentURL, "d", weighted(worker, n.version(worker, "v", "fetch"), 10000))
		return worker, n.made(form.CustomDomainURL, "dom", spec{"hostname": "same.test", "worker": ref(worker)})
	}
	w, dom := claim(n)
	mw, _ := claim(m)
	if h := n.lastPlan().Hosts["same.test"]; h == nil || h.Worker != w || h.Tenant != "default" {
		t.Fatalf("the route is %+v", h)
	}
	n.succeeded(n.del(dom))
	if h := n.lastPlan().Hosts["same.test"]; h == nil || h.Worker != mw || h.Tenant != "other" {
		t.Errorf("after the older claim went the route is %+v", h)
	}
}
