package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"edged/control"
	"edged/control/operator"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// startControl runs the real control room on a data directory that says where it is, as a node would, and returns the
// directory. Nothing is evaluated: a version exports what it declares.
func startControl(t *testing.T) string {
	t.Helper()
	dir, _ := startRoom(t)
	return dir
}

// startRoom is startControl that returns the room too.
func startRoom(t *testing.T) (dir string, c *control.Control) {
	t.Helper()
	dir = t.TempDir()
	server := httptest.NewUnstartedServer(nil)
	address := server.Listener.Addr().String()
	c, err := control.Open(control.Options{
		Dir: dir, ControlOrigin: "https://" + address, EndpointDomain: "edge.localhost", Zones: []control.Zone{{Name: "*"}},
		Inspect: func(_ context.Context, in control.Inspection) ([]string, error) { return in.Handlers, nil },
		Rooms:   []operator.Room{fakeSQL},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }() // ends with ctx; the cleanup waits
	server.Config.Handler = c.Handler()
	server.StartTLS()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"ready":false,"reasons":{"disk":"nearly full"}}`)
	}))
	t.Cleanup(func() {
		admin.Close()
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		cancel()
		<-done
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	tick := time.NewTicker(time.Millisecond) // the room has no event for this
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !c.Ready(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("control is not ready")
		}
	}
	run, err := json.Marshal(map[string]string{
		"control": address, "controlOrigin": "https://" + address, "http": "0.0.0.0:18080", "https": "", "admin": strings.TrimPrefix(admin.URL, "http://"),
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "run.json"), run)
	write(t, filepath.Join(dir, "tls", "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return dir, c
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// edged runs the program in this process and returns what it printed.
func edged(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	root := newRootCommand(newStopper())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	root.SetIn(strings.NewReader("{}"))
	root.SetArgs(args)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = root.ExecuteContext(ctx)
	return out.String(), err
}

func mustEdged(t *testing.T, args ...string) string {
	t.Helper()
	out, err := edged(t, args...)
	if err != nil {
		t.Fatalf("edged %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// changing is what no two runs have in common; column widths go with it.
var changing = regexp.MustCompile(`r-[a-z2-9]{26}|[a-z0-9-]+\.edge\.localhost|127\.0\.0\.1:\d+|t-[a-z2-9]{26}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

func same(text string) string {
	return changing.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "r-"):
			return "UID"
		case strings.HasPrefix(s, "t-"):
			return "TOKEN"
		case strings.HasPrefix(s, "127."):
			return "ADDRESS"
		case strings.HasSuffix(s, "Z"):
			return "TIME"
		}
		return "HOST"
	})
}

func site(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "worker.toml"), []byte("name = 'site'\nendpoint = true\n[assets]\ndirectory = 'd'\n"))
	write(t, filepath.Join(dir, "d", "index.html"), []byte("<p>"))
	return dir
}

// node-surface §1: deploy prints the address, and the one that is reachable now; status shows the node at a glance.
func TestDeployAndStatus(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	dir := site(t)
	const golden = `created  StaticAssetBundle  site.assets.f57ca690f327   1 file, 3 B
created  ModuleWorker       site
created  WorkerVersion      site.version.8e97377d06c4  assets
created  WorkerDeployment   site.deployment            100% site.version.8e97377d06c4
created  WorkerEndpoint     site.endpoint              HOST

https://HOST/
  now: curl -H 'Host: HOST' http://ADDRESS/
`
	if got := same(mustEdged(t, "deploy", dir)); got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
	var report struct {
		Changed   bool
		Version   string
		Weights   []struct{ Weight int }
		Addresses []struct{ Hostname, URL, Now string }
	}
	if err := json.Unmarshal([]byte(mustEdged(t, "deploy", filepath.Join(dir, "worker.toml"), "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Changed || report.Version == "" || len(report.Weights) != 1 || len(report.Addresses) != 1 || report.Addresses[0].Now != "http://127.0.0.1:18080/" {
		t.Errorf("report %+v", report)
	}
	const status = `control  https://ADDRESS/apis/forms.takoform.com/v2
http     ADDRESS
ready    no
         disk: nearly full

SPACE    WORKER  READY  VERSIONS                        ADDRESSES
default  site    yes    100% site.version.8e97377d06c4  https://HOST/
`
	if got := same(mustEdged(t, "status")); got != status {
		t.Errorf("got\n%s\nwant\n%s", got, status)
	}
}

// node-surface §§1, 6: a dry run of the command tells everything that would be refused, in the order in which to mend it: first what the
// manifest asks for and is not there, line by line, then what the node refuses, Resource by Resource as they would be made. It fails.
func TestDryRunCommand(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	rival, dir := site(t), site(t)
	lay := func(dir, text string) string {
		path := filepath.Join(dir, "worker.toml")
		write(t, path, []byte(text+"[assets]\ndirectory = 'd'\n"))
		return path
	}
	lay(rival, "name = 'rival'\ndomains = ['a.example.test', 'b.example.test']\n")
	mustEdged(t, "deploy", rival)
	mustEdged(t, "deploy", dir)
	before := mustEdged(t, "resources", "list", "--json")
	write(t, filepath.Join(dir, "i.js"), []byte("export default { fetch() {} }"))
	for _, c := range []struct{ manifest, want string }{
		{"name = 'site'\nendpoint = true\nmain = 'i.js'\nhandlers = ['fetch']\n[bindings]\nCACHE = { kv = 'cache' }\nPEER = { service = 'nobody' }\n", `
would be refused; in the order in which to mend it:
1. worker.toml:6: cache: this node has no EdgeKVNamespace (https://edge.forms.takoform.com/forms/EdgeKVNamespace/0.2.0/)
2. worker.toml:7: binding PEER: there is no ModuleWorker "nobody" in Space "default" yet: deploy that first

nothing was changed (dry run)
`},
		{"name = 'site'\nendpoint = true\ndomains = ['b.example.test', 'a.example.test']\n", `
would be refused; in the order in which to mend it:
1. worker.toml:1: WorkerCustomDomain site.domain.1a1ca2c1a503 would be refused: invalid_spec: invalid_argument: CL-3: hostname b.example.test is already claimed by UID
2. worker.toml:1: WorkerCustomDomain site.domain.c4266aa2791f would be refused: invalid_spec: invalid_argument: CL-3: hostname a.example.test is already claimed by UID

nothing was changed (dry run)
`},
	} {
		path := lay(dir, c.manifest)
		out, err := edged(t, "deploy", dir, "--dry-run")
		_, got, _ := strings.Cut(strings.ReplaceAll(same(out), path, "worker.toml"), "\n\n")
		if "\n"+got != c.want || err == nil || err.Error() != "the dry run found 2 to mend" {
			t.Errorf("%v, got\n%s\nwant\n%s", err, out, c.want)
		}
	}
	if after := mustEdged(t, "resources", "list", "--json"); after != before {
		t.Errorf("a dry run changed something:\n%s", after)
	}
}

// node-surface §1: --json is stable. These are the documents of two commands, whole; a member may come, none may go or change.
func TestJSONIsStable(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	const deployed = `{
  "name": "site",
  "space": "default",
  "dryRun": false,
  "changed": true,
  "version": "UID",
  "weights": [
    {
      "version": "UID",
      "weight": 10000
    }
  ],
  "steps": [
    {
      "action": "created",
      "kind": "StaticAssetBundle",
      "name": "site.assets.f57ca690f327",
      "uid": "UID",
      "note": "1 file, 3 B"
    },
    {
      "action": "created",
      "kind": "ModuleWorker",
      "name": "site",
      "uid": "UID"
    },
    {
      "action": "created",
      "kind": "WorkerVersion",
      "name": "site.version.8e97377d06c4",
      "uid": "UID",
      "note": "assets"
    },
    {
      "action": "created",
      "kind": "WorkerDeployment",
      "name": "site.deployment",
      "uid": "UID",
      "note": "100% site.version.8e97377d06c4"
    },
    {
      "action": "created",
      "kind": "WorkerEndpoint",
      "name": "site.endpoint",
      "uid": "UID",
      "note": "HOST"
    }
  ],
  "addresses": [
    {
      "hostname": "HOST",
      "url": "https://HOST/",
      "now": "http://ADDRESS/"
    }
  ],
  "kept": [],
  "refusals": [],
  "warnings": []
}
`
	const status = `{
  "control": "https://ADDRESS/apis/forms.takoform.com/v2",
  "http": "ADDRESS",
  "ready": false,
  "reasons": {
    "disk": "nearly full"
  },
  "workers": [
    {
      "space": "default",
      "name": "site",
      "uid": "UID",
      "ready": "yes",
      "versions": [
        {
          "uid": "UID",
          "name": "site.version.8e97377d06c4",
          "weight": 10000
        }
      ],
      "addresses": [
        "https://HOST/"
      ]
    }
  ],
  "trouble": []
}
`
	for _, c := range []struct{ got, want string }{
		{mustEdged(t, "deploy", site(t), "--json"), deployed}, {mustEdged(t, "status", "--json"), status},
	} {
		if got := same(c.got); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// node-surface §1: Resources from the command line, found by name or UID, refused in the node's words.
func TestResources(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	spec := filepath.Join(t.TempDir(), "spec.json")
	write(t, spec, []byte("{}\n"))
	const golden = `created a (uid UID, generation 1)
created b (uid UID, generation 1)
updated a (uid UID, generation 2)
SPACE    NAME  FORM          PHASE  READY  GENERATION  UID
default  a     ModuleWorker  idle   no     2           UID
deleted a (uid UID, generation 3)
`
	got := mustEdged(t, "resources", "create", "a", "-", "--form", "ModuleWorker")
	got += mustEdged(t, "resources", "create", "b", spec, "--form", "https://edge.forms.takoform.com/forms/ModuleWorker/0.3.0/", "--space", "s")
	got += mustEdged(t, "resources", "update", "a", "{}")
	got += mustEdged(t, "resources", "list", "--space", "default", "--form", "ModuleWorker")
	var shown struct{ UID string }
	if err := json.Unmarshal([]byte(mustEdged(t, "resources", "show", "a", "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	got += mustEdged(t, "resources", "delete", shown.UID, "--uid")
	if got = same(got); got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
	for _, c := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"resources", "show", "a"}, `no Resource "a" in Space "default"`, false},
		{[]string{"resources", "create", "b", "{}", "--form", "ModuleWorker", "--space", "s"}, "409 name_conflict", false},
		{[]string{"resources", "create", "c", `{"x":1}`, "--form", "ModuleWorker"}, "422 invalid_spec", false},
		{[]string{"resources", "update", "b", "{}", "--space", "s", "--generation", "7"}, "409 generation_conflict", false},
		{[]string{"resources", "create", "c", "{", "--form", "ModuleWorker"}, "SPEC is no JSON", true},
		{[]string{"resources", "create", "c", "/gone", "--form", "ModuleWorker"}, "no such file", true},
		{[]string{"resources", "create", "c", "{}"}, "--form is needed", true},
		{[]string{"resources", "create", "c", "{}", "--form", "Gizmo"}, `"Gizmo" is neither`, true},
		{[]string{"resources", "show"}, "accepts 1 arg", true},
		{[]string{"resources"}, "name what to do", true},
		{[]string{"resources", "list", "--colour"}, "unknown flag", true},
	} {
		_, err := edged(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usageError{}) != c.usage {
			t.Errorf("%q: %v, want %q, usage %t", c.args, err, c.want, c.usage)
		}
	}
}

// node-surface §4: a token is printed once, works until it is revoked, and is listed without its secret.
func TestTokens(t *testing.T) {
	dir := startControl(t)
	var run struct{ ControlOrigin string }
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil || json.Unmarshal(b, &run) != nil {
		t.Fatal(err)
	}
	secret := mustEdged(t, "tokens", "create", "--data-dir", dir, "--tenant", "t1", "--principal", "ci", "--role", "editor", "--space", "a", "--space", "b")
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, []byte(secret))
	at := []string{"--control-url", run.ControlOrigin, "--ca-file", filepath.Join(dir, "tls", "ca.pem"), "--token-file", file}
	if got := same(mustEdged(t, append([]string{"resources", "create", "w", "{}", "--form", "ModuleWorker", "--space", "b"}, at...)...)); got != "created w (uid UID, generation 1)\n" {
		t.Errorf("got %s", got)
	}
	if _, err := edged(t, append([]string{"tokens", "list"}, at...)...); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("an editor lists tokens: %v", err)
	}
	list := mustEdged(t, "tokens", "list", "--data-dir", dir)
	if !strings.Contains(same(list), "t1       ci         editor    a,b     TIME  ") || strings.Contains(list, strings.TrimSpace(secret)) {
		t.Errorf("list %s", list)
	}
	var tokens []struct{ ID, Tenant string }
	if err := json.Unmarshal([]byte(mustEdged(t, "tokens", "list", "--data-dir", dir, "--json")), &tokens); err != nil {
		t.Fatal(err)
	}
	for _, k := range tokens {
		if k.Tenant == "t1" {
			mustEdged(t, "tokens", "revoke", k.ID, "--data-dir", dir)
		}
	}
	if _, err := edged(t, append([]string{"status"}, at...)...); err == nil || !strings.Contains(err.Error(), "401 unauthenticated") {
		t.Errorf("with a revoked token: %v", err)
	}
	if _, err := edged(t, "tokens", "create", "--data-dir", dir, "--tenant", "t"); !errors.As(err, &usageError{}) {
		t.Errorf("without a role: %v", err)
	}
}

// node-surface §1: what is wrong with configuration or manifest is told as usage, every fault of it; a node that is
// gone is a failure.
func TestClientRefusals(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"status", "--data-dir", empty}, "no node runs on this data directory", true},
		{[]string{"status", "--control-url", "http://127.0.0.1:1", "--token-file", os.DevNull}, "is empty", true},
		{[]string{"status", "--control-url", "https://127.0.0.1:1"}, "a token file is needed", true},
		{[]string{"deploy", "a", "b"}, "accepts at most 1 arg", true},
	} {
		_, err := edged(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usageError{}) != c.usage {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
	dir := startControl(t)
	bad := site(t)
	write(t, filepath.Join(bad, "worker.toml"), []byte("name = 'S'\nmain = 'gone.js'\ncrons = ['61 * * * *']\n"))
	_, err := edged(t, "deploy", bad, "--data-dir", dir)
	for _, want := range []string{"worker.toml:1: name", "worker.toml:2: main", "worker.toml:3: cron \"61 * * * *\": "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if !errors.As(err, &usageError{}) {
		t.Errorf("a wrong manifest is not usage: %v", err)
	}
	if _, err := edged(t, "deploy", site(t), "--data-dir", dir, "--weight", "10001"); !errors.As(err, &usageError{}) {
		t.Errorf("weight: %v", err)
	}
	if _, err := edged(t, "deploy", filepath.Join(bad, "gone"), "--data-dir", dir); !errors.As(err, &usageError{}) || !strings.HasPrefix(err.Error(), "open ") {
		t.Errorf("no manifest: %v", err)
	}
	write(t, filepath.Join(bad, "worker.toml"), []byte("name = 's'\nmain = 'm.js'\nhandlers = []\n"))
	write(t, filepath.Join(bad, "m.js"), []byte("export default {\n"))
	if _, err := edged(t, "deploy", bad, "--data-dir", dir); err == nil || !strings.Contains(err.Error(), "m.js:2: ") || errors.As(err, &usageError{}) {
		t.Errorf("a syntax error: %v", err)
	}
	write(t, filepath.Join(dir, "run.json"), []byte(`{"control":"127.0.0.1:1","controlOrigin":"https://127.0.0.1:1"}`))
	t.Setenv("EDGED_TOKEN_FILE", filepath.Join(dir, "control.token"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	root := newRootCommand(newStopper())
	root.SetArgs([]string{"status", "--data-dir", dir})
	if err := root.ExecuteContext(ctx); err == nil || errors.As(err, &usageError{}) {
		t.Errorf("a node that is gone: %v", err)
	}
}
