package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const formPrefix = "https://edge.forms.takoform.com/forms/"

const secretWorker = `export default { fetch(request, env) { return new Response("the key is " + env.API_KEY + " of " + Object.keys(env)) } }`

// uidOf finds a Resource by its Form and the end of its name.
func (n *node) uidOf(form string) string {
	n.t.Helper()
	list := n.list("form=" + formPrefix + form + "/")
	if len(list) == 0 {
		n.t.Fatalf("no %s", form)
	}
	return list[0].UID
}

// secretVersion makes a version of the deployed worker's code that has a secret, deploys it, and returns its UID and spec.
func (n *node) secretVersion(value string) (uid, spec string) {
	n.t.Helper()
	worker, bundle, deployment := n.uidOf("ModuleWorker/0.3.0"), n.uidOf("WorkerBundle/0.2.0"), n.uidOf("WorkerDeployment/0.6.0")
	spec = fmt.Sprintf(`{"worker":{"resourceUid":%q},"bundle":{"resourceUid":%q},"handlers":["fetch"],"requiredSensitiveVars":["API_KEY"]}`, worker, bundle)
	a := n.api("POST", root+"/resources", strings.NewReader(fmt.Sprintf(
		`{"form":"%sWorkerVersion/0.7.0/","space":"default","name":"secretive","spec":%s,"privateInputs":{"API_KEY":%q}}`, formPrefix, spec, value)),
		"Idempotency-Key", "the-key-of-the-secret-version")
	if a.status != 200 {
		n.t.Fatalf("version: %d %s", a.status, a.body)
	}
	var op struct{ ResourceUID string }
	if err := json.Unmarshal([]byte(a.body), &op); err != nil {
		n.t.Fatal(err)
	}
	a = n.api("PUT", root+"/resources/"+deployment, strings.NewReader(fmt.Sprintf(
		`{"spec":{"worker":{"resourceUid":%q},"versions":[{"workerVersion":{"resourceUid":%q},"weight":10000}]}}`, worker, op.ResourceUID)),
		"Idempotency-Key", "the-key-of-the-switch", "Takoform-Expected-Generation", "1")
	if a.status != 200 {
		n.t.Fatalf("switch: %d %s", a.status, a.body)
	}
	return op.ResourceUID, spec
}

// worker-version §§5, 8: a secret reaches env and nothing else of the node. A backup restored onto an empty node, with the
// node key that travelled apart, serves the same worker with the same secret under the same address; without the key
// nothing is restored. The key is rotated meanwhile.
func TestSecretsBackupRestore(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	address := n.deploy(write(t, map[string]string{
		"worker.toml": "name = \"hello\"\nmain = \"hello.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n", "hello.js": secretWorker,
	}))
	const value = "opensesame-4711"
	version, spec := n.secretVersion(value)
	want := "the key is " + value + " of API_KEY"
	if a := n.get(address + "/"); a.body != want {
		t.Fatalf("%+v", a)
	}
	if out := n.edged("secrets", "rotate"); !strings.Contains(out, "2 records") {
		t.Errorf("rotate says %s", out)
	}
	dir := t.TempDir()
	out := n.edged("backup", "control", dir, "--json")
	var saved struct{ File string }
	if err := json.Unmarshal([]byte(out), &saved); err != nil || filepath.Dir(saved.File) != dir {
		t.Fatalf("%v %s", err, out)
	}
	if info, err := os.Stat(saved.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if out, code := n.try("backup", "control", saved.File); code != 1 || !strings.Contains(out, "there already") {
		t.Errorf("exit %d: %s", code, out)
	}
	key := filepath.Join(dir, "node.key")
	text, err := os.ReadFile(filepath.Join(n.dir, "node.key"))
	if err == nil {
		err = os.WriteFile(key, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	resources, replay := n.api("GET", root+"/resources", nil), n.api("GET", root+"/resources/"+version, nil)
	ca, err := os.ReadFile(filepath.Join(n.dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	oldToken := n.token()
	if out, code := n.try("restore", "control", saved.File, "--node-key", key); code != 1 || !strings.Contains(out, "in use") {
		t.Errorf("onto a running node: exit %d: %s", code, out)
	}
	n.stop()
	if strings.Contains(n.log.String(), value) {
		t.Error("the log shows the secret")
	}

	fresh := filepath.Join(t.TempDir(), "data")
	if out, code := runEdged(t, "restore", "control", saved.File, "--data-dir", fresh); code != 2 || !strings.Contains(out, "--node-key") {
		t.Errorf("without the key: exit %d: %s", code, out)
	}
	if out, code := runEdged(t, "restore", "control", saved.File, "--data-dir", fresh, "--node-key", key); code != 0 {
		t.Fatalf("restore: exit %d: %s", code, out)
	}
	m := start(t, fresh)
	if a := m.get(address + "/"); a.body != want {
		t.Errorf("restored: %+v", a)
	}
	if a := m.api("GET", root+"/resources", nil); a.body != resources.body {
		t.Errorf("restored\n%s\nwas\n%s", a.body, resources.body)
	}
	if a := m.api("GET", root+"/resources/"+version, nil, "Authorization", "Bearer "+oldToken); a.body != replay.body || a.header.Get("ETag") != replay.header.Get("ETag") {
		t.Errorf("restored %s, was %s", a.body, replay.body)
	}
	put := func(key, secret string) answer {
		return m.api("PUT", root+"/resources/"+version, strings.NewReader(fmt.Sprintf(`{"spec":%s,"privateInputs":{"API_KEY":%q}}`, spec, secret)),
			"Idempotency-Key", "a-key-for-the-put-"+key, "Takoform-Expected-Generation", "1")
	}
	if a := put("1", "wrong"); a.status != 422 {
		t.Errorf("another value: %d %s", a.status, a.body)
	}
	if a := put("2", value); a.status != 200 {
		t.Errorf("the same value: %d %s", a.status, a.body)
	}
	if now, err := os.ReadFile(filepath.Join(fresh, "tls", "ca.pem")); err != nil || string(now) != string(ca) {
		t.Errorf("the CA is another: %v", err)
	}
	m.kill()
	m = start(t, fresh)
	if a := m.get(address + "/"); a.body != want {
		t.Errorf("after a kill: %+v", a)
	}
}

// The audit over the command line: what was done shows, by whom, and what it was refused for.
func TestAuditCommand(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	n.create("one")
	n.api("POST", root+"/resources", strings.NewReader(createBody("one")), "Idempotency-Key", "another-key-for-one")
	n.edged("tokens", "create", "--tenant", "t2", "--principal", "ci", "--role", "reader")
	out := n.edged("audit")
	for _, want := range []string{"default/bootstrap  create", "accepted", "refused name_conflict", "control.tokens.create", "the node"} {
		if !strings.Contains(out, want) {
			t.Errorf("the audit lacks %q:\n%s", want, out)
		}
	}
	if out := n.edged("audit", "--outcome", "refused"); strings.Contains(out, "accepted") || !strings.Contains(out, "name_conflict") {
		t.Errorf("filtered:\n%s", out)
	}
	before := n.edged("audit", "--json")
	n.kill()
	n = start(t, n.dir)
	if after := n.edged("audit", "--json"); after != before {
		t.Errorf("after a kill\n%s\nbefore\n%s", after, before)
	}
}
