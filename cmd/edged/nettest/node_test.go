//go:build linux

package nettest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"edged/internal/testkit/netns"
)

const soon = 60 * time.Second // for what takes seconds at most, on a machine that may be busy

// node is one edged, in a network of its own that outlives it.
type node struct {
	f                         *fabric
	name, role, ip, link, dir string
	peer                      int // port
	ns                        *netns.Namespace

	cmd    *exec.Cmd
	done   chan error
	votes  atomic.Bool  // about the control log
	lives  atomic.Int64 // odd while it serves
	client *http.Client
}

// start runs the node and returns when all its listeners accept.
func (n *node) start(flags ...string) {
	n.f.t.Helper()
	args := []string{"run", "--data-dir", n.dir, "--role", n.role, "--http", n.ip + ":8080", "--https", "", "--control", n.ip + ":8081", "--admin", n.ip + ":8082",
		"--peer", fmt.Sprintf("%s:%d", n.ip, n.peer), "--gossip", n.ip + ":7401", "--log-format", "json", "--supervise=false"}
	n.cmd, n.done = exec.Command(os.Getenv(binaryEnv), append(args, flags...)...), make(chan error, 1)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(filepath.Join(n.f.t.ArtifactDir(), n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.f.t.Fatal(err)
	}
	defer log.Close()
	n.cmd.Stderr = log
	out, err := n.cmd.StdoutPipe()
	if err := errors.Join(err, n.ns.In(n.cmd.Start)); err != nil {
		n.f.t.Fatal(err)
	}
	late := time.AfterFunc(2*soon, func() { n.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	listening := 0
	for listening < 4 && lines.Scan() {
		listening++
	}
	late.Stop()
	go func(cmd *exec.Cmd, done chan error) { // ends with the process
		io.Copy(io.Discard, out)
		done <- cmd.Wait()
	}(n.cmd, n.done)
	if listening < 4 {
		n.f.t.Fatalf("%s did not start:\n%s", n.name, n.tail())
	}
	n.lives.Add(1)
}

func (n *node) tail() string {
	b, _ := os.ReadFile(filepath.Join(n.f.t.ArtifactDir(), n.name+".log"))
	return string(b[max(0, len(b)-3000):])
}

// kill ends the process at once, as a crash would.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	if n.lives.Load()%2 == 1 {
		n.lives.Add(1)
	}
	n.cmd.Process.Kill()
	<-n.done
	n.cmd = nil
}

// edged runs a client command against the node with the founder's token.
func (n *node) edged(within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv(binaryEnv), append(args, "--data-dir", n.dir, "--token-file", n.f.token)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		why := string(out) // the reason is on its last line
		err = fmt.Errorf("edged %s at %s: %w: %s", args[0], n.name, err, why[strings.LastIndex(strings.TrimSpace(why), "\n")+1:])
	}
	return string(out), err
}

// must is edged of what has to succeed, by and by.
func (n *node) must(args ...string) (out string) {
	n.f.t.Helper()
	eventually(n.f.t, soon, func() (err error) {
		out, err = n.edged(soon, args...)
		return err
	})
	return out
}

func (n *node) id() string {
	n.f.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, "node.id"))
	if err != nil {
		n.f.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// members is what `edged fleet nodes` says.
func (n *node) members() (out struct {
	Items []struct {
		ID           string
		Votes, Leads bool
		Control      bool
		Serves       uint64
	}
	Index uint64
}, err error) {
	text, err := n.edged(20*time.Second, "fleet", "nodes", "--json")
	if err == nil {
		err = json.NewDecoder(strings.NewReader(text)).Decode(&out)
	}
	return out, err
}

// ask makes one request to a worker; the error says what is wrong with any answer but a 200.
func (n *node) ask(method, url, body string) (string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("%d %.200s", resp.StatusCode, b)
	}
	return string(b), err
}

// metrics is what the node counts.
func (n *node) metrics() (string, error) {
	resp, err := http.Get("http://" + n.ip + ":8082/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// eventually polls, as what it waits for happens in other processes.
func eventually(t *testing.T, within time.Duration, try func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(within)
	for err := try(); err != nil; err = try() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %v", within, err)
		}
	}
}
