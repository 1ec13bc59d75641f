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
	if len(p.Hosts) != 2 || len(p.Workers) != 1 || p.Workers[0].Deployment != d || len(p.Workers[0].Weights) != 1 || p.Workers[0].Weights[0].Version != v {
		raw, _ := json.Marshal(p)
		t.Fatalf("plan is %s", raw)
	}
	if p.Hosts[0].Name != ep.Output.Hostname && p.Hosts[1].Name != ep.Output.Hostname {
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
