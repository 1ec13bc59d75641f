package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// again waits until run.json names another serving process than before, and makes it the node's.
func (n *node) again() {
	n.t.Helper()
	old := n.info.PID
	n.until("another serving process", func() bool {
		var info runInfo
		b, err := os.ReadFile(filepath.Join(n.dir, "run.json"))
		if err != nil || json.Unmarshal(b, &info) != nil || info.PID == old {
			return false
		}
		n.info = info
		return true
	})
}

// until polls: there is no event for what another process does.
func (n *node) until(what string, ok func() bool) {
	n.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			n.t.Fatalf("no %s within %v", what, limit)
		}
	}
}

// gone reports whether a process runs no more; nobody need have waited for it.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err != nil || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// The watchdog (issue of isolation; node-surface §2): a serving process that is killed, or that gives no sign of life, is
// replaced by one that serves the same, and the log says so.
func TestNodeIsRestarted(t *testing.T) {
	n := start(t, t.TempDir(), "--frozen-after", "2s")
	url := n.deploy(hello(t, ""))
	parent := n.cmd.Process.Pid
	if n.info.PID == parent || gone(n.info.PID) {
		t.Fatalf("run.json names %d, which is not the serving process", n.info.PID)
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGKILL} {
		if err := syscall.Kill(n.info.PID, sig); err != nil {
			t.Fatal(err)
		}
		was := n.info.PID
		n.again()
		if a := n.get(url + "/x"); a.status != 200 || a.body != "hello /x" {
			t.Errorf("after %v: %+v", sig, a)
		}
		if !gone(was) {
			t.Errorf("after %v: both processes run", sig)
		}
	}
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d after SIGTERM, want 0", code)
	}
	if !gone(n.info.PID) {
		t.Error("the serving process outlived its supervisor")
	}
	for _, want := range []string{"the node is frozen; killing it", "the node has ended; starting it again", "signal: killed"} {
		if !strings.Contains(n.log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

// Killing the supervisor takes the serving process with it, and nothing it held stops the next start on the same
// directory and addresses: also when the serving process was frozen.
func TestKilledSupervisorLeavesNothing(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		n := start(t, t.TempDir())
		if frozen {
			if err := syscall.Kill(n.info.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		next := start(t, n.dir, "--http", n.info.HTTP, "--https", n.info.HTTPS, "--control", n.info.Control, "--admin", n.info.Admin)
		if !gone(n.info.PID) {
			t.Error("the serving process outlived its supervisor")
		}
		if code := next.stop(); code != 0 {
			t.Errorf("exit %d, want 0", code)
		}
	}
}

// slowWorker answers when its gate is asked for.
const slowWorker = `export default { async fetch(request) {
	if (new URL(request.url).pathname === "/slow") await new Promise(r => setTimeout(r, 1500));
	return new Response("done");
} }`

// Signals reach the serving process once, whoever gets them: the first drains, the second ends at once, and the exit code
// is passed through.
func TestSignalsAreForwarded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		who  func(n *node) []int
		code int
	}{
		{"supervisor", func(n *node) []int { return []int{n.cmd.Process.Pid} }, 0},
		{"serving process", func(n *node) []int { return []int{n.info.PID} }, 0},
		{"both, as a terminal does", func(n *node) []int { return []int{n.cmd.Process.Pid, n.info.PID} }, 0},
		{"supervisor twice", func(n *node) []int { return []int{n.cmd.Process.Pid, 0, n.cmd.Process.Pid} }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := start(t, t.TempDir())
			url := n.deploy(write(t, map[string]string{
				"worker.toml": "name = \"slow\"\nmain = \"slow.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n", "slow.js": slowWorker}))
			n.get(url + "/")
			slow := make(chan string, 1)
			go func() { // ends with the node
				a, err := n.ask(n.client(n.info.HTTP, nil), http.MethodGet, url+"/slow", nil)
				slow <- fmt.Sprint(a.body, err)
			}()
			n.until("request at work", func() bool {
				a, err := n.ask(n.client(n.info.Admin, nil), http.MethodGet, "http://admin/metrics", nil)
				return err == nil && strings.Contains(a.body, "\nedged_router_invocations_inflight 1\n")
			})
			for _, pid := range tt.who(n) {
				if pid == 0 { // the drain has begun
					n.until("drain", func() bool { _, err := os.Stat(filepath.Join(n.dir, "run.json")); return err != nil })
				} else if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			n.wait()
			if code := n.cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			if got := <-slow; (got == "done<nil>") != (tt.code == 0) {
				t.Errorf("the request at work: %s", got)
			}
			if !gone(n.info.PID) {
				t.Error("the serving process is left")
			}
		})
	}
}

// --supervise=false serves in the one process, which a service manager can watch.
func TestUnsupervised(t *testing.T) {
	n := start(t, t.TempDir(), "--supervise=false")
	if n.info.PID != n.cmd.Process.Pid {
		t.Errorf("run.json names %d, not %d", n.info.PID, n.cmd.Process.Pid)
	}
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// Under a service manager that watches, the node leaves watching to it: one process, which tells it of its life.
func TestServiceManagerWatches(t *testing.T) {
	dir, err := os.MkdirTemp("", "n") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	for _, watches := range []bool{true, false} {
		os.Remove(path)
		manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer manager.Close()
		env := []string{"NOTIFY_SOCKET=" + path}
		if watches {
			env = append(env, "WATCHDOG_USEC=300000")
		}
		told := make(chan string, 1000)
		go func() { // ends when the node has said that it stops, or with the socket
			defer close(told)
			for b := make([]byte, 100); ; {
				k, err := manager.Read(b)
				if err != nil {
					return
				}
				told <- string(b[:k])
			}
		}()
		n := startBinary(t, binary, env, t.TempDir())
		if one := n.info.PID == n.cmd.Process.Pid; one != watches {
			t.Errorf("watched %t, but one process: %t", watches, one)
		}
		want := []string{"READY=1"}
		if watches {
			want = append(want, "WATCHDOG=1")
		}
		for len(want) > 0 {
			select {
			case said := <-told:
				want = slices.DeleteFunc(want, func(s string) bool { return s == said })
			case <-time.After(limit):
				t.Fatalf("nobody said %v", want)
			}
		}
		stopping := make(chan bool, 1)
		go func() { // ends with the socket
			saw := false
			for said := range told {
				saw = saw || said == "STOPPING=1"
			}
			stopping <- saw
		}()
		if code := n.stop(); code != 0 {
			t.Errorf("exit %d, want 0", code)
		}
		manager.Close()
		if !<-stopping {
			t.Error("nobody said STOPPING=1")
		}
	}
}
