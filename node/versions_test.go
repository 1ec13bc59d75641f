package node

import (
	"errors"
	"testing"

	"edged/control/plan"
	"edged/router/table"
)

// worker-deployment §3: the table gives every version its basis points; a name without an active deployment leads to a worker
// that nothing can serve (attachments §2), not to nowhere.
func TestBuildTable(t *testing.T) {
	p := &plan.Plan{
		Hosts: []plan.Host{{Name: "a.test", Worker: "w1"}, {Name: "b.test", Worker: "w1"}, {Name: "idle.test", Worker: "w2"}},
		Workers: []plan.Worker{
			{UID: "w1", Weights: []plan.Weight{{Version: "v1", Weight: 9500}, {Version: "v2", Weight: 500}}},
			{UID: "w2"},
		},
	}
	loaded := map[string]*loadedVersion{"v1": {route: &table.Version{UID: "v1"}}, "v2": {route: &table.Version{UID: "v2"}}}
	tbl, err := buildTable(p, loaded)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"a.test", "b.test"} {
		w := tbl.Match([]byte(host))
		if w == nil || w.Pick(0).UID != "v1" || w.Pick(9499).UID != "v1" || w.Pick(9500).UID != "v2" || w.Pick(9999).UID != "v2" {
			t.Errorf("%s leads to %+v", host, w)
		}
	}
	if w := tbl.Match([]byte("idle.test")); w == nil || w.Pick(0) != nil {
		t.Errorf("a worker without a deployment: %+v", w)
	}
	delete(loaded, "v2")
	if _, err := buildTable(p, loaded); !errors.Is(err, errNoVersion) {
		t.Errorf("a version is missing: %v, want a refusal, so that the plan before goes on serving", err)
	}
}

// Only what an active deployment weights is opened.
func TestWantedVersions(t *testing.T) {
	p := &plan.Plan{
		Workers:  []plan.Worker{{UID: "w1", Weights: []plan.Weight{{Version: "v1", Weight: 10000}}}, {UID: "w2"}},
		Versions: []plan.Version{{UID: "v1", Worker: "w1"}, {UID: "v0", Worker: "w1"}, {UID: "x", Worker: "w2"}},
	}
	if got := wantedVersions(p); len(got) != 1 || got["v1"] != &p.Versions[0] {
		t.Errorf("got %v, want v1 alone", got)
	}
}
