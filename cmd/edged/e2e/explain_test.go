package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// follow starts edged tail --json and gives its lines; the channel is closed at the command's end, whose exit code is then in code.
func (n *node) follow(args ...string) (lines chan map[string]any, cmd *exec.Cmd) {
	n.t.Helper()
	cmd = exec.Command(binary, append([]string{"tail", "hello", "--json", "--data-dir", n.dir}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	lines = make(chan map[string]any, 1024)
	go func() { // ends with the command
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var l map[string]any
			if json.Unmarshal(s.Bytes(), &l) == nil {
				lines <- l
			}
		}
		cmd.Wait()
	}()
	n.t.Cleanup(func() {
		cmd.Process.Kill()
		for range lines {
		}
	})
	return lines, cmd
}

// What a worker does shows in a tail while it happens, with what it has cost and what it logs; in the access log; and, for whoever asks
// for a reason, in edged explain. Nobody but operators of the worker's tenant sees any of it, and queries show nowhere.
func TestWatchTraffic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	n := start(t, filepath.Join(dir, "data"), "--access-log", log)
	const worker = `export default { fetch(request) { const u = new URL(request.url); if (u.pathname == "/throw") throw new Error("went wrong");
		console.log("saw " + u.pathname); return new Response("hello") } }`
	url := n.deploy(write(t, map[string]string{"worker.toml": "name = \"hello\"\nmain = \"hello.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n", "hello.js": worker}))
	all, command := n.follow()
	failed, _ := n.follow("--outcome", "error")
	seen := func(lines chan map[string]any, path string, want func(map[string]any) bool) {
		t.Helper()
		n.waits(func() bool {
			n.get(url + path + "?secret=opensesame")
			for {
				select {
				case l, ok := <-lines:
					if !ok {
						t.Fatal("the tail has ended")
					}
					if text, _ := json.Marshal(l); strings.Contains(string(text), "opensesame") {
						t.Fatalf("a query is shown: %s", text)
					}
					if want(l) {
						return true
					}
				default:
					return false
				}
			}
		}, "no line of "+path)
	}
	seen(all, "/x", func(l map[string]any) bool {
		r, _ := l["receipt"].(map[string]any)
		return l["type"] == "invocation" && l["url"] == url+"/x" && l["status"] == 200.0 && l["outcome"] == "ok" && r["final"] == true && r["cpuMs"].(float64) > 0 &&
			r["memoryBytes"].(float64) > 0
	})
	seen(all, "/y", func(l map[string]any) bool { return l["type"] == "console" && l["text"] == "saw /y" })
	seen(failed, "/throw", func(l map[string]any) bool {
		if l["outcome"] == "ok" || l["level"] == "log" {
			t.Fatalf("not filtered: %v", l)
		}
		return l["type"] == "invocation" && l["status"] == 500.0 && l["outcome"] == "worker_error"
	})
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for range all {
	}
	if code := command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after an interrupt tail exits with %d", code)
	}

	n.refused(`no ModuleWorker "nobody"`, "tail", "nobody")
	if out := n.edged("explain", url+"/x?secret=opensesame"); !strings.Contains(out, "by endpoint ") || !strings.Contains(out, "generation 1\n") ||
		!strings.Contains(out, "100% (by weight, 0 to 10000 of 10000): code, ") || !strings.Contains(out, "admission   at once: 0 of ") || strings.Contains(out, "opensesame") {
		t.Errorf("explain\n%s", out)
	}
	if out := n.edged("explain", url+"/throw", "--send"); !strings.Contains(out, "status      500,") || !strings.Contains(out, "error       worker_error\n") ||
		!strings.Contains(out, "chosen=weight\n") || !strings.Contains(out, "cpu-us=") {
		t.Errorf("explain --send\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "token")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(n.edged("tokens", "create", "--json", "--tenant", "other", "--principal", "p", "--role", "operator")), &made); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(made.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	uid := n.uidOf("ModuleWorker/0.3.0")
	n.refused("no such Resource", "tail", uid, "--uid", "--token-file", file)
	if out := n.edged("explain", url, "--token-file", file); !strings.Contains(out, "is not routed here, or not yours") || strings.Contains(out, uid) {
		t.Errorf("another tenant's operator is told\n%s", out)
	}

	began := time.Now()
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if took := time.Since(began); took > 20*time.Second { // the drain waits for nobody who watches; the margin is for a busy machine
		t.Errorf("the stop took %v", took)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"path":"/x","status":200,"answer":"code"`) || !strings.Contains(string(text), `"status":500,"error":"worker_error"`) ||
		!strings.Contains(string(text), `"cpuMs":`) || strings.Contains(string(text), "opensesame") || !bytes.HasSuffix(text, []byte("}\n")) {
		t.Errorf("access log\n%s", tail(string(text), 3000))
	}
}
