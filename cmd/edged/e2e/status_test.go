package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// edged status tells the one on call what runs, how it fares, and what is broken and why: here a version whose secret cannot be
// opened, for the node key is gone.
func TestStatusAtNight(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	secret := filepath.Join(t.TempDir(), "secrets.toml")
	if err := os.WriteFile(secret, []byte("API_KEY = \"opensesame\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := n.deploy(write(t, map[string]string{"hello.js": helloWorker,
		"worker.toml": "name = \"hello\"\nmain = \"hello.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n[secrets]\nrequired = [\"API_KEY\"]\n"}), "--secrets-file", secret)
	expect(t, "hello", n.get(url+"/x"), 200, "hello /x")
	n.get("http://nobody.test/")
	n.get("http://nobody.test/")
	out := n.edged("status")
	for _, want := range []string{`(?m)^program  edged dev, up \d+`, `(?m)^load     0 invocations at work, 0 waiting, 3 requests since the start$`, `(?m)^errors   2 unknown_host since the start$`,
		`(?m)^ready    yes$`, `default  hello   yes`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.Contains(out, "not as it should be") {
		t.Errorf("a sound node:\n%s", out)
	}
	n.stop()
	if err := os.Remove(filepath.Join(n.dir, "node.key")); err != nil {
		t.Fatal(err)
	}
	n = start(t, n.dir)
	var s struct {
		Vitals  struct{ Program string }
		Trouble []struct{ Space, Kind, Name, Why string }
	}
	n.waits(func() bool {
		return json.Unmarshal([]byte(n.edged("status", "--json")), &s) == nil && len(s.Trouble) > 0
	}, "nothing is broken")
	found := false
	for _, b := range s.Trouble {
		found = found || b.Space == "default" && b.Kind == "WorkerVersion" && strings.HasPrefix(b.Name, "hello.version.") && strings.Contains(b.Why, "DependencyMissing: ")
	}
	if !found || s.Vitals.Program == "" {
		t.Errorf("%+v", s)
	}
	if out := n.edged("status"); !strings.Contains(out, "\nnot as it should be: ") || !strings.Contains(out, "DependencyMissing") {
		t.Errorf("a broken node:\n%s", out)
	}
}
