package control

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"edged/control/api"
	"edged/control/artifact"
	"edged/control/state"
)

// The first page leads to the others, and one says how a principal survives its tokens (host-api §3). All are for everyone.
func TestDocumentationPages(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	page := func(name string) string {
		a := n.do("GET", "/docs/"+name, nil, "Authorization", "")
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/markdown") || strings.Contains(string(a.body), "{{") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		return string(a.body)
	}
	if index := page(""); !strings.Contains(index, "(profile)") || !strings.Contains(index, "(authentication)") {
		t.Error("the first page does not lead to the others")
	}
	if !strings.Contains(page("authentication"), "belong to the principal, not") {
		t.Error("it is not explained how a principal survives its tokens")
	}
	n.do("POST", "/docs/profile", nil).is(t, 405, "method_not_allowed")
}

// The support profile says what the program does: its numbers are those of code, options and discovery, its Forms those of
// Support.
func TestProfileIsTrue(t *testing.T) {
	n := startWithStores(t, t.TempDir(), newFakes(), func(o *Options) {
		o.Migrate = newFakeDatabases().migrate
		o.MaxRequestBytes, o.MaxPageSize, o.RequestRate = 7_654_321, 77, 777
		o.Profile = []api.ProfileRow{{Name: "sandboxes", Value: "many"}}
	})
	page := string(n.do("GET", "/docs/profile", nil, "Authorization", "").body)
	limits := n.do("GET", "/.well-known/takoform/v2", nil).member(t, "limits").(map[string]any)
	for _, want := range []string{
		fmt.Sprintf("| request document | %.0f bytes |", limits["maxRequestBytes"]),
		fmt.Sprintf("| page of a list | %.0f items,", limits["maxPageSize"]),
		fmt.Sprintf("| replay of an idempotency key | %v at least |", n.c.opt.ReplayWindow),
		"| requests of one principal | 777 a second, 1554 at once |",
		fmt.Sprintf("| private inputs of an Operation that has not begun | kept %v |", n.c.opt.TransferLife),
		fmt.Sprintf("| private inputs of one request | %d |", state.MaxInputs),
		fmt.Sprintf("| manifest of a bundle | %d bytes |", artifact.MaxManifestBytes),
		fmt.Sprintf("| files of a bundle | %d |", artifact.MaxFiles),
		fmt.Sprintf("| one file | %d bytes |", artifact.MaxBlobBytes),
		fmt.Sprintf("| all files of a bundle | %d bytes |", artifact.MaxBundleBytes),
		fmt.Sprintf("%d bytes, kept %v", n.c.opt.MaxHeldBytes, artifact.Grace),
		fmt.Sprintf("ends within %v is answered", n.c.settleWait),
		"| sandboxes | many |",
		"addresses: edge.localhost.",
		"does not replicate",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for formURL, d := range n.c.drivers.Offered(n.c.opt.has) { // those whose store this node has
		private := map[bool]string{true: "yes", false: "no"}[d.Private]
		if !strings.Contains(page, "| "+formURL+" | create, read, update, delete | "+private+" |") {
			t.Errorf("the page lacks %s", formURL)
		}
		s := n.do("GET", root+"/support?form="+url.QueryEscape(formURL), nil)
		if s.member(t, "supported") != true || s.member(t, "privateInputs") != d.Private {
			t.Errorf("support of %s says %s", formURL, s.body)
		}
	}
	if strings.Count(page, "https://edge.forms.takoform.com/") != len(n.c.drivers.Offered(n.c.opt.has)) {
		t.Error("the page names Forms that there are not")
	}
	caps := n.do("GET", "/.well-known/takoform/v2", nil).member(t, "capabilities").(map[string]any)
	for _, row := range []struct{ name, yes, no string }{
		{"offerings", "Offerings: advertised", "Offerings: not advertised"}, {"previews", "Previews: offered", "Previews: not"},
	} {
		if want := map[any]string{true: row.yes, false: row.no}[caps[row.name]]; !strings.Contains(page, want) {
			t.Errorf("discovery says %s: %v, the page does not say %q", row.name, caps[row.name], want)
		}
	}
}
