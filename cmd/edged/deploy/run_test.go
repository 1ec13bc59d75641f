package deploy

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"edged/control"
	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

const fullManifest = `
name = "hello"
main = "i.js"
handlers = ["fetch"]
endpoint = true
domains = ["www.example.test", "other.example.test"]
[vars]
GREETING = "hi"
[assets]
directory = "public"
not_found = "single_page_application"
`

func full(t *testing.T) string {
	return lay(t, t.TempDir(), map[string]string{
		"worker.toml": fullManifest, "i.js": "export default { fetch() { return new Response('one'); } };", "public/index.html": "<p>", "public/a.css": "p{}",
	})
}

// variable replaces what differs between runs.
var variable = regexp.MustCompile(`[a-z0-9-]+\.edge\.localhost`)

func text(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return variable.ReplaceAllString(b.String(), "ASSIGNED")
}

// node-surface §6: everything is made once and in order; a second run mutates nothing; names are NAME.ROLE.DIGEST12.
func TestDeployTwice(t *testing.T) {
	n, dir := startNode(t), full(t)
	first := n.mustDeploy(dir, Options{})
	const golden = `created  WorkerBundle        hello.bundle.009baf1733b7   2 files, 586 B
created  StaticAssetBundle   hello.assets.6ecea6795e50   2 files, 6 B
created  ModuleWorker        hello
created  WorkerVersion       hello.version.510e3b03e2e9  fetch, assets
created  WorkerDeployment    hello.deployment            100% hello.version.510e3b03e2e9
created  WorkerEndpoint      hello.endpoint              ASSIGNED
created  WorkerCustomDomain  hello.domain.a98df29dfe38   www.example.test
created  WorkerCustomDomain  hello.domain.d94423d6a1b6   other.example.test

https://ASSIGNED/

https://www.example.test/

https://other.example.test/
`
	if got := text(t, first); got != golden || !first.Changed {
		t.Errorf("changed %t\n%s\nwant\n%s", first.Changed, got, golden)
	}
	n.took()
	second := n.mustDeploy(dir, Options{})
	if took := n.took(); len(took) > 0 || second.Changed {
		t.Errorf("a second run mutated: %q", took)
	}
	if got := text(t, second); got != strings.ReplaceAll(golden, "created  ", "unchanged  ") {
		t.Errorf("second run:\n%s", got)
	}
	if first.Version != second.Version || len(first.Addresses) != 3 || first.Addresses[0] != second.Addresses[0] {
		t.Errorf("first %+v, second %+v", first, second)
	}
	for _, s := range second.Steps {
		if s.Action != "unchanged" {
			t.Errorf("step %+v", s)
		}
	}
}

// Only what changed is made anew: code, then vars, then assets; the address stays.
func TestDeployChanges(t *testing.T) {
	n, dir := startNode(t), full(t)
	before := n.mustDeploy(dir, Options{})
	for _, c := range []struct{ name, file, content, want string }{
		{"code", "i.js", "export default { fetch() { return new Response('two'); } };", "WorkerBundle WorkerVersion WorkerDeployment"},
		{"vars", "worker.toml", strings.ReplaceAll(fullManifest, `"hi"`, `"ho"`), "WorkerVersion WorkerDeployment"},
		{"assets", "public/a.css", "p{x:y}", "StaticAssetBundle WorkerVersion WorkerDeployment"},
	} {
		lay(t, dir, map[string]string{c.file: c.content})
		after := n.mustDeploy(dir, Options{})
		var changed []string
		for _, s := range after.Steps {
			if s.Action != "unchanged" {
				changed = append(changed, s.Kind)
			}
		}
		if got := strings.Join(changed, " "); got != c.want || after.Version == before.Version || after.Addresses[0] != before.Addresses[0] {
			t.Errorf("%s: changed %s, want %s", c.name, got, c.want)
		}
		if len(after.Weights) != 1 || after.Weights[0] != (Share{after.Version, all}) {
			t.Errorf("%s: weights %v", c.name, after.Weights)
		}
		before = after
	}
	// Going back makes nothing new: the version is still there.
	lay(t, dir, map[string]string{"public/a.css": "p{}"})
	n.took()
	n.mustDeploy(dir, Options{})
	if took := n.took(); len(took) != 1 || !strings.HasPrefix(took[0], "PUT ") {
		t.Errorf("going back took %q, want the deployment's update alone", took)
	}
}

// node-surface §6: --weight puts the new version beside the current one.
func TestDeployWeight(t *testing.T) {
	n, dir := startNode(t), full(t)
	if _, err := n.deploy(dir, Options{Weight: 500}); err == nil || len(n.took()) > 0 {
		t.Errorf("a weight beside nothing: %v, want a refusal before any mutation", err)
	}
	first := n.mustDeploy(dir, Options{})
	lay(t, dir, map[string]string{"i.js": "export default { fetch() { return new Response('two'); } };"})
	second := n.mustDeploy(dir, Options{Weight: 500})
	if got := active(n.read("hello.deployment").Observed); len(got) != 2 || got[0] != (Share{first.Version, 9500}) || got[1] != (Share{second.Version, 500}) {
		t.Errorf("distribution %v", got)
	}
	for _, s := range second.Steps { // people read names, not UIDs
		if s.Name == "hello.deployment" && strings.Count(s.Note, "hello.version.") != 2 {
			t.Errorf("the distribution is told as %q", s.Note)
		}
	}
	n.took()
	n.mustDeploy(dir, Options{Weight: 500})
	if took := n.took(); len(took) > 0 {
		t.Errorf("again: %q", took)
	}
	n.mustDeploy(dir, Options{})
	if got := active(n.read("hello.deployment").Observed); len(got) != 1 || got[0] != (Share{second.Version, all}) {
		t.Errorf("distribution %v", got)
	}
}

// A static site has no bundle, no handlers and no env.
func TestDeployStaticSite(t *testing.T) {
	n := startNode(t)
	dir := lay(t, t.TempDir(), map[string]string{"worker.toml": "name='s'\nendpoint=true\n[assets]\ndirectory='d'\n", "d/index.html": "x"})
	r := n.mustDeploy(dir, Options{Space: "sites"})
	if len(r.Addresses) != 1 || r.Steps[0].Kind != "StaticAssetBundle" || len(r.Steps) != 5 {
		t.Errorf("report %+v", r)
	}
}

// node-surface §6: a name that another Form has is reported as such, before anything is made.
func TestDeployNameClash(t *testing.T) {
	n, dir := startNode(t), full(t)
	_, err := n.client.Create(t.Context(), client.Create{Form: form.ModuleWorkerURL, Space: "default", Name: "hello.endpoint", Spec: struct{}{}}, client.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	n.took()
	_, err = n.deploy(dir, Options{})
	if err == nil || !strings.Contains(err.Error(), "the name is taken by a ModuleWorker") || !strings.Contains(err.Error(), "hello.endpoint") {
		t.Errorf("error %v", err)
	}
	if took := n.took(); len(took) > 0 {
		t.Errorf("took %q", took)
	}
}

// Domains and an endpoint that the manifest does not ask for any more are told, and stay.
func TestDeployKeepsAddresses(t *testing.T) {
	n, dir := startNode(t), full(t)
	n.mustDeploy(dir, Options{})
	lay(t, dir, map[string]string{"worker.toml": strings.NewReplacer("endpoint = true", "", `, "other.example.test"`, "").Replace(fullManifest)})
	n.took()
	r := n.mustDeploy(dir, Options{})
	if took := n.took(); len(took) > 0 || len(r.Addresses) != 1 {
		t.Errorf("took %q, addresses %v", took, r.Addresses)
	}
	const golden = "kept: other.example.test is no longer in the manifest; to take it off the net: edged resources delete hello.domain.d94423d6a1b6 --space default\n" +
		"kept: ASSIGNED is no longer in the manifest; to take it off the net: edged resources delete hello.endpoint --space default\n"
	if got := text(t, r); !strings.Contains(got, golden) {
		t.Errorf("got %s\nwant %s", got, golden)
	}
}

// A domain that was attached by hand, under another name, is taken as it is.
func TestDeployFindsDomainUnderAnotherName(t *testing.T) {
	n, dir := startNode(t), full(t)
	lay(t, dir, map[string]string{"worker.toml": strings.ReplaceAll(fullManifest, `"www.example.test", `, "")})
	n.mustDeploy(dir, Options{})
	worker := n.read("hello").UID
	op, err := n.client.Create(t.Context(), client.Create{Form: form.CustomDomainURL, Space: "default", Name: "mine",
		Spec: attachmentSpec{ref{worker}, "WWW.example.test"}}, client.NewKey())
	if err == nil {
		_, err = n.client.Wait(t.Context(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
	lay(t, dir, map[string]string{"worker.toml": fullManifest})
	n.took()
	n.mustDeploy(dir, Options{})
	if took := n.took(); len(took) > 0 {
		t.Errorf("took %q", took)
	}
}

// A run that is cut off at any of its mutations is taken up by the next, and the end is the same.
func TestDeployIsTakenUp(t *testing.T) {
	n, dir := startNode(t), full(t)
	want := len(n.mustDeploy(dir, Options{}).Steps)
	total := len(n.took())
	for cut := range total {
		// Domains are claimed once per tenant; each worker of this test has its own.
		m := strings.NewReplacer("hello", "w"+string(rune('a'+cut)), "www.", "www"+string(rune('a'+cut))+".", "other.", "o"+string(rune('a'+cut))+".")
		lay(t, dir, map[string]string{
			"worker.toml": m.Replace(fullManifest),
			"i.js":        "export default { fetch() { return new Response('cut " + string(rune('a'+cut)) + "'); } };",
		})
		n.set(func() {
			seen := 0
			n.intercept = func(r *http.Request) bool {
				if !mutates(r) {
					return false
				}
				seen++
				return seen > cut
			}
		})
		_, err := n.deploy(dir, Options{})
		n.set(func() { n.intercept = nil })
		var step *StepError
		if err != nil && (!errors.As(err, &step) || fault.CodeOf(err) != fault.Unavailable) {
			t.Errorf("cut after %d: error %v", cut, err)
		}
		r := n.mustDeploy(dir, Options{})
		if len(r.Steps) != want || len(r.Addresses) != 3 {
			t.Errorf("after a cut at %d: %+v", cut, r)
		}
	}
}

// A bundle that the node could not verify is repaired by the next run.
func TestDeployRepairsFailedBundle(t *testing.T) {
	n, dir := startNode(t), full(t)
	// The manifest's URL is one under which nothing was uploaded: the create fails and leaves its record.
	m := load(t, dir)
	d := &deployer{opt: Options{Client: n.client, Space: "default"}, manifest: m, report: &Report{}}
	if err := d.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		action string
		spec   any
	}{
		{"repaired", nil}, // the very spec that is wanted
		{"replaced", map[string]any{"artifact": map[string]string{"url": n.client.ArtifactAt(strings.Repeat("0", 64)).URL, "sha256": strings.Repeat("0", 64)}}},
	} {
		w, err := d.artifact(d.code)
		if err != nil {
			t.Fatal(err)
		}
		w.form, w.name = form.WorkerBundleURL, c.action
		if c.spec == nil {
			c.spec = w.spec
		}
		op, err := n.client.Create(t.Context(), client.Create{Form: w.form, Space: "default", Name: w.name, Spec: c.spec}, client.NewKey())
		if err == nil {
			_, err = n.client.Wait(t.Context(), op)
		}
		if ended := (*client.OperationError)(nil); !errors.As(err, &ended) {
			t.Fatalf("%s: the bundle without bytes: %v", c.action, err)
		}
		d.have = map[string]*client.Resource{w.name: n.read(w.name)}
		r, err := d.ensure(t.Context(), w)
		if err != nil || r.Phase != "idle" || d.report.Steps[len(d.report.Steps)-1].Action != c.action {
			t.Errorf("%s: %+v, %v", c.action, d.report.Steps, err)
		}
		if err := d.remove(t.Context(), w, r); err != nil {
			t.Fatal(err)
		}
	}
}

// What the node's sandbox says about a module reaches the author.
func TestDeployRefusedByNode(t *testing.T) {
	n, dir := startNode(t), full(t)
	n.set(func() {
		n.inspect = func(control.Inspection) error {
			return fault.Name(fault.Invalid, "module_syntax_error", 998).New("test", "main.js line 7: unexpected token")
		}
	})
	r, err := n.deploy(dir, Options{})
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "invalid_spec" || !strings.Contains(p.Detail, "module_syntax_error") {
		t.Errorf("error %v", err)
	}
	if len(r.Steps) != 3 {
		t.Errorf("steps %+v", r.Steps)
	}
}

// What an earlier run left unfinished is waited for, and then seen as it has become.
func TestSettled(t *testing.T) {
	n, dir := startNode(t), full(t)
	n.mustDeploy(dir, Options{})
	d := &deployer{opt: Options{Client: n.client}}
	unfinished := func(name, phase string) *client.Resource {
		r := *n.read(name)
		r.Phase = phase
		return &r
	}
	r, err := d.settled(t.Context(), unfinished("hello", "pending"))
	if err != nil || r == nil || r.Phase != "idle" {
		t.Errorf("pending: %+v, %v", r, err)
	}
	w := unfinished("hello.endpoint", "deleting")
	op, err := n.client.Delete(t.Context(), w.UID, w.Generation, client.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w.LastOperation = op.ID
	if r, err := d.settled(t.Context(), w); err != nil || r != nil {
		t.Errorf("deleting: %+v, %v", r, err)
	}
}
