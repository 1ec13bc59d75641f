package e2e

import (
	"strings"
	"testing"
)

// REL-10 with a real process: a pinned target that is gone out of band shows on what relied on it; reads heal nothing, and
// nothing is found anew by name.
func TestOutOfBandRemoval(t *testing.T) {
	t.Parallel()
	n := startAt(t, "", t.TempDir())
	cache := n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	worker := n.made("ModuleWorker/0.3.0/", "w", object{})
	spec := object{"worker": ref{worker}, "handlers": []string{"fetch"}, "kvBindings": []bound{{"CACHE", ref{cache}}},
		"bundle": ref{n.bundled("b", `export default { fetch() {} }`)}}
	v := n.made("WorkerVersion/0.7.0/", "v", spec)
	if a := n.api("POST", "/operator/v1/control/vanish/"+cache, strings.NewReader("")); a.status != 200 {
		t.Fatalf("vanish: %d %s", a.status, a.body)
	}
	n.made("EdgeKVNamespace/0.2.0/", "cache2", object{}) // another one is no substitute
	for range 2 {
		a := n.api("GET", "/apis/forms.takoform.com/v2/resources/"+v, nil)
		if !strings.Contains(a.body, `"ready":false`) || !strings.Contains(a.body, "DependencyMissing") {
			t.Fatalf("the version reads %s", a.body)
		}
	}
	if a := n.mutate("PUT", v, spec); a.status != 404 {
		t.Errorf("a PUT that verifies it again: %d %s, want 404", a.status, a.body)
	}
}
