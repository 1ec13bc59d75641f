package e2e

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// node-surface §1: wrong usage and configuration exit with 2, list all faults and start nothing.
func TestWrongUsageExitsTwo(t *testing.T) {
	config := write(t, map[string]string{
		"unknown.toml":   "data_dri = \"x\"\n",
		"malformed.toml": "data_dir = \n",
		"values.toml":    "max_cpu = \"soon\"\nisolation = \"none\"\n",
	})
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"no command", nil, []string{"name a command"}},
		{"unknown command", []string{"serve"}, []string{"unknown command"}},
		{"unknown flag", []string{"run", "--prot", "1"}, []string{"unknown flag: --prot"}},
		{"argument", []string{"run", "here"}, []string{"unknown command \"here\""}},
		{"bad value", []string{"run", "--max-memory", "lots"}, []string{"max-memory", "lots"}},
		{"unknown key", []string{"run", "--config", filepath.Join(config, "unknown.toml")}, []string{"unknown.toml", `unknown key "data_dri"`}},
		{"malformed file", []string{"run", "--config", filepath.Join(config, "malformed.toml")}, []string{"malformed.toml:1:"}},
		{"missing file", []string{"run", "--config", filepath.Join(config, "none.toml")}, []string{"none.toml", "no such file"}},
		{"several faults", []string{"run", "--http", "", "--https", "", "--isolation", "none", "--max-cpu", "-1s"},
			[]string{"--http and --https are both off", "--isolation", "--max-cpu"}},
		{"fleet flags", []string{"run", "--join", "https://127.0.0.1:1"}, []string{"--join is for a member of a fleet", "--join and --invite belong together"}},
		{"fleet grants", []string{"run", "--revalidate-after", "-1m"}, []string{"--revalidate-after", "negative"}},
		{"address for others", []string{"run", "--peer", "0.0.0.0:0"}, []string{"--peer", "the other members reach this node"}},
		{"role", []string{"run", "--role", "edge"}, []string{"a node without --peer has both roles"}},
		{"traces", []string{"run", "--trace-sample", "2", "--otlp-ca-file", "x"}, []string{"--trace-sample: 2 is not between 0 and 1", "--otlp-ca-file is for the collector"}},
		{"unknown role", []string{"run", "--role", "edge,boss"}, []string{"is not control, edge, or both"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			args := tt.args
			if len(args) > 0 && args[0] == "run" {
				args = append(args, "--data-dir", dir)
			}
			out, code := runEdged(t, args...)
			if code != 2 {
				t.Errorf("exit %d, want 2", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the data directory was made")
			}
		})
	}
}

// What stands in the way of a start is said by name, with exit code 1.
func TestStartRefusals(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	newer := write(t, map[string]string{"format": "node 99\n"})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"data directory in use", []string{"--data-dir", n.dir}, "in use by process"},
		{"unwritable data directory", []string{"--data-dir", filepath.Join(file, "data")}, filepath.Join(file, "data")},
		{"newer format", []string{"--data-dir", newer}, "format 99"},
		{"port taken", []string{"--data-dir", t.TempDir(), "--http", taken.Addr().String()}, "--http: " + taken.Addr().String() + " is taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"run", "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", ""}, tt.args...)
			out, code := runEdged(t, args...)
			if code != 1 || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want 1 and %q in\n%s", code, tt.want, out)
			}
		})
	}
	if b, _ := os.ReadFile(filepath.Join(newer, "format")); string(b) != "node 99\n" {
		t.Errorf("the newer format was changed to %q", b)
	}
}

// node-surface §§2, 3: run.json while it serves, private files, exit 0 after SIGTERM.
func TestLifeOfANode(t *testing.T) {
	n := start(t, t.TempDir())
	if n.info.PID == 0 || n.info.EndpointDomain != "edge.localhost" || n.info.ControlOrigin != "https://"+n.info.Control {
		t.Errorf("run.json: %+v", n.info)
	}
	err := filepath.WalkDir(n.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if path != n.dir && info.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(path, "ca.pem") {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d after SIGTERM, want 0", code)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "run.json")); err == nil {
		t.Error("run.json is still there")
	}
}

// node-surface §5: the admin listener.
func TestAdmin(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	admin := n.client(n.info.Admin, nil)
	for path, want := range map[string]string{
		"/healthz": "ok",
		"/readyz":  `"ready":true`,
		"/metrics": "edged_router_",
	} {
		a, err := n.ask(admin, "GET", "http://admin"+path, nil)
		if err != nil || a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v %d %.200s", path, err, a.status, a.body)
		}
	}
	a, err := n.ask(admin, "GET", "http://admin/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"edged_router_", "edged_sandbox_", "edged_control_"} {
		if !strings.Contains(a.body, room) {
			t.Errorf("no metric of %s", room)
		}
	}
}

// host-api §4: no or unknown credential is 401 with a challenge; discovery needs none.
func TestControlListenerAuthentication(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	c := n.client(n.info.Control, n.trust())
	for _, tt := range []struct {
		path, auth string
		status     int
	}{
		{"/.well-known/takoform/v2", "", 200},
		{"/apis/forms.takoform.com/v2/resources", "", 401},
		{"/apis/forms.takoform.com/v2/resources", "Bearer wrong", 401},
		{"/apis/forms.takoform.com/v2/resources", "Basic " + n.token(), 401},
		{"/apis/forms.takoform.com/v2/resources", "Bearer " + n.token(), 200},
	} {
		a, err := n.ask(c, "GET", n.info.ControlOrigin+tt.path, nil, "Authorization", tt.auth)
		if err != nil || a.status != tt.status {
			t.Errorf("%s with %.12q: %v %d, want %d", tt.path, tt.auth, err, a.status, tt.status)
		}
		if a.status == 401 && (a.header.Get("WWW-Authenticate") == "" || !strings.Contains(a.body, `"unauthenticated"`)) {
			t.Errorf("401 without challenge or code: %v %s", a.header, a.body)
		}
	}
	if _, err := n.ask(n.client(n.info.Control, nil), "GET", n.info.ControlOrigin+"/.well-known/takoform/v2", nil); err == nil {
		t.Error("the control certificate is trusted without the node's authority")
	}
}

const helloWorker = `export default { fetch(request) { return new Response("hello " + new URL(request.url).pathname) } }`

func hello(t *testing.T, extra string) string {
	return write(t, map[string]string{
		"worker.toml": "name = \"hello\"\nmain = \"hello.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n" + extra,
		"hello.js":    helloWorker,
	})
}

// node-surface §7: host-made answers say their class; worker-made ones never do.
func TestUnknownAndMisdirectedHosts(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	url := n.deploy(hello(t, "domains = [\"www.example.test\"]\n"))
	if a := n.get(url + "/x?q"); a.status != 200 || a.body != "hello /x" || a.header.Get("Edged-Error") != "" {
		t.Errorf("endpoint: %+v", a)
	}
	if a := n.get("http://WWW.example.TEST.:80/y"); a.status != 200 || a.body != "hello /y" {
		t.Errorf("domain: %+v", a)
	}
	if a := n.get("http://nobody.example.test/"); a.status != 404 || a.header.Get("Edged-Error") != "unknown_host" {
		t.Errorf("unknown host: %+v", a)
	}
	conf := n.trust()
	a, err := n.ask(n.client(n.info.HTTPS, conf), "GET", "https://www.example.test/z", nil)
	if err != nil || a.body != "hello /z" {
		t.Errorf("https: %v %+v", err, a)
	}
	conf = &tls.Config{RootCAs: conf.RootCAs, ServerName: "www.example.test"}
	a, err = n.ask(n.client(n.info.HTTPS, conf), "GET", strings.Replace(url, "http:", "https:", 1)+"/", nil)
	if err != nil || a.status != 421 || a.header.Get("Edged-Error") != "misdirected" {
		t.Errorf("server name that is not the host: %v %+v", err, a)
	}
}

// A deploy with nothing changed mutates nothing: the Resources keep their generations.
func TestDeployIsIdempotent(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	dir := hello(t, "")
	first := n.deploy(dir)
	before := n.list("")
	if second := n.deploy(dir); second != first {
		t.Errorf("the address moved from %s to %s", first, second)
	}
	if after := n.list(""); !slices.Equal(before, after) {
		t.Errorf("generations moved:\n%v\n%v", before, after)
	}
}

// kv §2: the support profile that discovery leads to shows this node's limits and choices as they are set, and its target for
// convergence, which holds.
func TestSupportProfile(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir(), "--max-cpu", "1500ms", "--max-wall", "7s", "--max-wall-events", "9m", "--max-memory", "96MiB",
		"--max-request-body", "101MiB", "--max-inflight", "3", "--max-queue", "5", "--isolation", "worker")
	page := n.api("GET", "/docs/profile", nil).body
	for _, row := range []string{
		"CPU of one invocation | 1.5s", "time to a response head | 7s", "time of event handlers, and of `waitUntil` tasks | 9m0s",
		"memory of one sandbox | 100663296 bytes", "request body | 105906176 bytes", "invocations at work, and waiting | 3, 5", "isolation | worker",
		"drain of a version that a switch dropped | 15m0s", "grace of running work when its deployment is deleted | 5s",
		"target for the convergence of EdgeKVNamespace | 0 s, this node is the only place",
	} {
		if !strings.Contains(page, "\n| "+row+" |\n") {
			t.Errorf("the profile lacks %q:\n%s", row, page)
		}
	}
	kv := n.made("EdgeKVNamespace/0.2.0/", "kv", object{})
	w := n.served("w", `export default { async fetch(r, env) { await env.KV.put('k', r.url); return new Response(await env.KV.get('k')) } }`,
		object{"handlers": []string{"fetch"}, "kvBindings": []bound{{"KV", ref{kv}}}})
	url := n.address("w", w)
	for i := range 20 {
		path := url + "/" + strings.Repeat("x", i)
		expect(t, "read back at once", n.get(path), 200, path)
	}
}

// The shells' completions are scripts that ask the program, and the program knows its commands and flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{"bash": "__start_edged", "zsh": "#compdef edged", "fish": "complete -c edged"} {
		if out, code := runEdged(t, "completion", shell); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: no %q in %.200s", shell, want, out)
		}
	}
	for want, args := range map[string][]string{"selftest\t": {"se"}, "objects\t": {"backup", ""}, "--max-cpu\t": {"run", "--max-c"}} {
		if out, code := runEdged(t, append([]string{"__complete"}, args...)...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in %s", args, want, out)
		}
	}
}
