package deploy

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
)

const boundManifest = `name = "all"
main = "i.js"
handlers = ["fetch", "scheduled", "queue"]
crons = ["*/5 * * * *"]
[secrets]
required = ["API_KEY"]
[bindings]
CACHE = { kv = "cache" }
DB = { sqlite = "app" }
TASKS = { queue = "tasks", retention_seconds = 3600 }
OTHER = { service = "other" }
[[consumers]]
queue = "tasks"
max_batch_size = 10
max_batch_timeout_seconds = 2
max_concurrency = 4
max_retries = 3
retry_delay_seconds = 5
dead_letter_queue = "dead"
`

// key gives every secret one value.
func key(value string) func(string) string { return func(string) string { return value } }

// boundWorker lays out the worker of boundManifest on a node that has the worker it is bound to.
func boundWorker(t *testing.T) (*testNode, string) {
	t.Helper()
	n := startNode(t)
	other := lay(t, t.TempDir(), map[string]string{"worker.toml": "name='other'\nmain='i.js'\nhandlers=['fetch']\n", "i.js": "export default { fetch() {} };"})
	n.mustDeploy(other, Options{})
	n.took()
	return n, lay(t, t.TempDir(), map[string]string{"worker.toml": boundManifest, "i.js": "export default { fetch() {}, scheduled() {}, queue() {} };"})
}

// node-surface §6: data, code, version, deployment, attachments, in this order; again nothing, also without the secrets.
func TestDeployBound(t *testing.T) {
	n, dir := boundWorker(t)
	const golden = `created  SQLiteDatabase     app
created  EdgeKVNamespace    cache
created  AtLeastOnceQueue   dead
created  AtLeastOnceQueue   tasks
created  WorkerBundle       all.bundle.BUNDLE   2 files, 1007 B
created  ModuleWorker       all
created  WorkerVersion      all.version.VERSION  fetch, scheduled, queue, 4 bindings, 1 secret
created  WorkerDeployment   all.deployment            100% all.version.VERSION
created  WorkerCronTrigger  all.cron.CRON     */5 * * * *
created  QueueConsumer      all.consumer.CONSUMER  of tasks
`
	first := n.mustDeploy(dir, Options{Secret: key("s3cret")})
	got := text(t, first)
	for _, s := range first.Steps {
		if i := strings.LastIndexByte(s.Name, '.'); i > 0 && len(s.Name)-i == 13 {
			got = strings.ReplaceAll(got, s.Name[i+1:], strings.ToUpper(strings.Split(s.Name, ".")[1]))
		}
	}
	if squeeze(got) != squeeze(golden) {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
	n.took()
	second := n.mustDeploy(dir, Options{})
	if took := n.took(); len(took) > 0 || second.Changed {
		t.Errorf("again: %q", took)
	}
	var spec struct {
		RequiredSensitiveVars []string
		KVBindings            []bound
		Retention             int `json:"messageRetentionSeconds"`
	}
	v := n.read(n.named(first, "WorkerVersion"))
	if err := json.Unmarshal(v.Spec, &spec); err != nil || len(spec.RequiredSensitiveVars) != 1 || len(spec.KVBindings) != 1 || spec.KVBindings[0].Resource.UID != n.read("cache").UID {
		t.Errorf("version %s, %v", v.Spec, err)
	}
	for name, want := range map[string]int{"tasks": 3600, "dead": 345600} {
		if err := json.Unmarshal(n.read(name).Spec, &spec); err != nil || spec.Retention != want {
			t.Errorf("%s keeps for %d s, want %d (%v)", name, spec.Retention, want, err)
		}
	}
}

// squeeze takes out how wide columns are.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

// named returns the name of the first step of a kind.
func (n *testNode) named(r *Report, kind string) string {
	n.t.Helper()
	for _, s := range r.Steps {
		if s.Kind == kind {
			return s.Name
		}
	}
	n.t.Fatalf("no %s in %+v", kind, r.Steps)
	return ""
}

// node-surface §6: a changed value cannot be seen from outside; --rotate-secrets makes a version with the given values, which
// is the one that is meant from then on.
func TestRotateSecrets(t *testing.T) {
	n, dir := boundWorker(t)
	first := n.mustDeploy(dir, Options{Secret: key("one")})
	second := n.mustDeploy(dir, Options{Secret: key("two"), RotateSecrets: true})
	if first.Version == second.Version || second.Weights[0].Version != second.Version {
		t.Errorf("first %s, second %s, weights %v", first.Version, second.Version, second.Weights)
	}
	n.took()
	if again := n.mustDeploy(dir, Options{}); len(n.took()) > 0 || again.Version != second.Version {
		t.Errorf("afterwards %s is meant, want %s", again.Version, second.Version)
	}
	third := n.mustDeploy(dir, Options{Secret: key("three"), RotateSecrets: true, Weight: 500})
	if len(third.Weights) != 2 || third.Weights[1].Version != third.Version || third.Version == second.Version {
		t.Errorf("third %+v", third.Weights)
	}
	_, err := n.deploy(dir, Options{RotateSecrets: true})
	if err == nil || !strings.Contains(err.Error(), "worker.toml:6: secret API_KEY has no value") || strings.Contains(err.Error(), "three") {
		t.Errorf("rotated without values: %v", err)
	}
	if _, err := n.deploy(full(t), Options{RotateSecrets: true}); err == nil || !strings.Contains(err.Error(), "nothing to rotate") {
		t.Errorf("without secrets: %v", err)
	}
}

// node-surface §6: what the node has not, secrets without a value, workers that are not there: all at once, with file and
// line, before the first mutation.
func TestDeployRefusesBeforehand(t *testing.T) {
	n := startNode(t)
	dir := lay(t, t.TempDir(), map[string]string{"worker.toml": `name = "x"
main = "i.js"
handlers = ["fetch"]
[secrets]
required = ["A", "B"]
[bindings]
FILES = { bucket = "files" }
DB = { sqlite = "app", migrations = "m" }
OTHER = { service = "gone" }
MINE = { kv = "taken" }
`, "i.js": "export default { fetch() {} };", "m/1.sql": "create table t(a);"})
	if _, err := n.client.Create(t.Context(), client.Create{Form: form.ModuleWorkerURL, Space: "default", Name: "taken", Spec: struct{}{}}, client.NewKey()); err != nil {
		t.Fatal(err)
	}
	n.took()
	_, err := n.deploy(dir, Options{Secret: func(name string) string { return map[string]string{"A": "a"}[name] }})
	var faults manifest.Faults
	if !errors.As(err, &faults) || len(faults) != 5 {
		t.Errorf("faults %v", err)
	}
	for _, want := range []string{":5: secret B has no value", ":7: files: this node has no ObjectBucket", ":8: x.migration.", "it has no SQLiteMigrationApplication",
		`:9: binding OTHER: there is no ModuleWorker "gone"`, ":10: taken: the name is taken by a ModuleWorker"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if took := n.took(); len(took) > 0 {
		t.Errorf("took %q", took)
	}
	r, err := n.deploy(dir, Options{DryRun: true})
	if err != nil || len(n.took()) > 0 || len(r.Steps) == 0 {
		t.Errorf("a dry run: %v, %+v", err, r)
	}
	var lines []int // in the order in which to mend it
	for _, f := range r.Refusals {
		lines = append(lines, f.Line)
	}
	if !slices.Equal(lines, []int{5, 5, 7, 8, 9, 10}) {
		t.Errorf("refusals stand in the order %v: %+v", lines, r.Refusals)
	}
}

// node-surface §6, D-51: a dry run changes nothing, says what would be done, and asks the node what it would refuse.
func TestDryRun(t *testing.T) {
	n, dir := boundWorker(t)
	before, err := n.deploy(dir, Options{DryRun: true, Secret: key("s")})
	if err != nil || len(n.took()) > 0 || !before.Changed || len(before.Refusals) != 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	done := n.mustDeploy(dir, Options{Secret: key("s")})
	for i, s := range before.Steps {
		if s.Action+"d" != done.Steps[i].Action || s.Name != done.Steps[i].Name || s.Note != done.Steps[i].Note {
			t.Errorf("foreseen %+v, done %+v", s, done.Steps[i])
		}
	}
	if after, err := n.deploy(dir, Options{DryRun: true}); err != nil || after.Changed || text(t, after) != strings.ReplaceAll(text(t, done), "created  ", "unchanged  ")+"\nnothing was changed (dry run)\n" {
		t.Errorf("%s, %v", text(t, after), err)
	}
	// Another worker consumes a queue of this one: the node refuses a second consumer (CL-8), and the dry run tells.
	lay(t, dir, map[string]string{"worker.toml": strings.Replace(boundManifest, `queue = "tasks"
max`, `queue = "shared"
max`, 1)})
	rival := lay(t, t.TempDir(), map[string]string{"i.js": "export default { queue() {} };",
		"worker.toml": "name='rival'\nmain='i.js'\nhandlers=['queue']\n[[consumers]]\nqueue='shared'\nmax_batch_size=1\nmax_batch_timeout_seconds=0\nmax_concurrency=1\nmax_retries=0\nretry_delay_seconds=0\n"})
	n.mustDeploy(rival, Options{})
	n.took()
	r, err := n.deploy(dir, Options{DryRun: true})
	if err != nil || len(r.Refusals) != 1 || r.Refusals[0].Line != 12 || r.Refusals[0].Code != "invalid_spec" || len(n.took()) > 0 {
		t.Errorf("%+v, %v", r.Refusals, err)
	}
	if out := text(t, r); !strings.Contains(out, "delete     QueueConsumer") || !strings.Contains(out, "in the order in which to mend it:\n1. ") {
		t.Errorf("%s", out)
	}
	if _, err := n.deploy(dir, Options{}); err == nil || !strings.Contains(err.Error(), "worker.toml:12: QueueConsumer") || len(n.took()) > 0 {
		t.Errorf("for real: %v", err)
	}
}

// attachments §1: schedules and consumers that left the manifest go before the version that no longer handles them; what
// somebody else attached stays, and where it needs a handler that is gone it is named beforehand.
func TestDeployDetaches(t *testing.T) {
	n, dir := boundWorker(t)
	n.mustDeploy(dir, Options{Secret: key("s")})
	bare := map[string]string{"worker.toml": "name='all'\nmain='i.js'\nhandlers=['fetch']\n", "i.js": "export default { fetch() {} };"}
	lay(t, dir, bare)
	n.took()
	r := n.mustDeploy(dir, Options{})
	var got []string
	for _, s := range r.Steps {
		got = append(got, s.Action+" "+s.Kind)
	}
	if want := "created WorkerBundle, unchanged ModuleWorker, created WorkerVersion, deleted QueueConsumer, deleted WorkerCronTrigger, updated WorkerDeployment"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	n.took()
	if again := n.mustDeploy(dir, Options{}); again.Changed || len(n.took()) > 0 {
		t.Errorf("again %+v", again)
	}
	lay(t, dir, map[string]string{"worker.toml": boundManifest, "i.js": "export default { fetch() {}, scheduled() {}, queue() {} };"})
	n.mustDeploy(dir, Options{})
	op, err := n.client.Create(t.Context(), client.Create{Form: form.CronTriggerURL, Space: "default", Name: "mine", Spec: cronSpec{ref{n.read("all").UID}, "1 1 * * *"}}, client.NewKey())
	if err == nil {
		_, err = n.client.Wait(t.Context(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := n.mustDeploy(dir, Options{}); len(r.Kept) != 1 || r.Kept[0].Name != "mine" {
		t.Errorf("kept %+v", r.Kept)
	}
	lay(t, dir, bare)
	n.took()
	if _, err := n.deploy(dir, Options{}); err == nil || !strings.Contains(err.Error(), "mine (WorkerCronTrigger mine) stays attached and needs scheduled") || len(n.took()) > 0 {
		t.Errorf("%v", err)
	}
}

// attachments §4: another spelling of the same schedule is the same trigger; the expression follows the manifest.
func TestDeployUpdatesTriggers(t *testing.T) {
	n, dir := boundWorker(t)
	n.mustDeploy(dir, Options{Secret: key("s")})
	lay(t, dir, map[string]string{"worker.toml": strings.NewReplacer("*/5", "0-59/5", "max_retries = 3", "max_retries = 4", "3600", "7200").Replace(boundManifest)})
	n.took()
	n.mustDeploy(dir, Options{})
	took := n.took()
	for _, m := range took {
		if !strings.HasPrefix(m, http.MethodPut) {
			t.Errorf("took %q", took)
		}
	}
	if len(took) != 3 {
		t.Errorf("took %q, want the queue, the trigger and the consumer", took)
	}
}
