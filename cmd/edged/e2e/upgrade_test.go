package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// upgradeResult is what `edged upgrade --json` says.
type upgradeResult struct {
	PID    int
	Waited time.Duration `json:"waitedNanoseconds"`
}

func (n *node) upgrade(flags ...string) (u upgradeResult) {
	n.t.Helper()
	out := n.edged(append([]string{"upgrade", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &u); err != nil || u.PID == n.info.PID {
		n.t.Fatalf("edged upgrade: %v, %+v\n%s", err, u, out)
	}
	n.again()
	if u.PID != n.info.PID {
		n.t.Errorf("run.json names %d, not %d", n.info.PID, u.PID)
	}
	return u
}

// The rule of upgrades: no request is lost, over HTTP and HTTPS, on connections that are kept alive and on new ones, and none waits for long.
// EDGED_UPGRADE_RATE asks for more requests a second than the suite has time for (make test-upgrade).
func TestUpgradeLosesNoRequest(t *testing.T) {
	n := start(t, t.TempDir())
	url := n.deploy(hello(t, ""))
	host := strings.TrimPrefix(url, "http://")
	parent := n.cmd.Process.Pid
	rate, conns, between := 400, 40, 10
	if s := os.Getenv("EDGED_UPGRADE_RATE"); s != "" {
		var err error
		if rate, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
		conns, between = 100, rate // that is more than a second's for each kind
	}
	conf := n.trust()
	conf.ServerName = host
	httpAddr, httpsAddr := n.info.HTTP, n.info.HTTPS
	every := time.Duration(conns) * time.Second / time.Duration(rate)
	stop := make(chan struct{})
	kept := "GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	plain := func() (net.Conn, error) { return net.Dial("tcp", httpAddr) }
	loads := map[string]*pacer{
		"kept alive": {dial: plain, request: kept},
		"TLS":        {dial: func() (net.Conn, error) { return tls.Dial("tcp", httpsAddr, conf) }, request: kept},
		"new":        {dial: plain, request: strings.Replace(kept, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)},
	}
	for name, p := range loads {
		p.every, p.stop = every, stop
		share := conns / 8
		if name == "kept alive" {
			share = conns - 2*share
		}
		p.start(share)
	}
	progress := func() {
		for name, p := range loads {
			was := p.count()
			n.until("requests, "+name, func() bool { return p.count() > was+between/8 })
		}
	}
	began := time.Now()
	progress()
	var longest time.Duration
	for range 3 {
		longest = max(longest, n.upgrade().Waited)
		progress()
	}
	took := time.Since(began)
	close(stop)
	for name, p := range loads {
		p.ended(t, name)
	}
	t.Logf("in %v; clients waited at most %v by the supervisor's measure", took.Round(time.Millisecond), longest)
	if n.cmd.Process.Pid != parent || gone(parent) {
		t.Error("the watching process is another")
	}
	if a := n.get(url + "/x"); a.body != "hello /x" {
		t.Errorf("afterwards: %+v", a)
	}
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// endless streams until its client leaves, or (/short) for a while; /task answers at once and leaves a task behind.
const endless = `let tasks = 0;
export default { fetch(request, env, ctx) {
	const path = new URL(request.url).pathname, text = s => new TextEncoder().encode(s), wait = ms => new Promise(r => setTimeout(r, ms));
	if (path === "/task") { ctx.waitUntil(wait(1200).then(() => console.log("the task has ended"))); return new Response("ok"); }
	return new Response(new ReadableStream({ async start(c) {
		c.enqueue(text("begun\n"));
		for (let i = 0; path !== "/short" || i < 12; i++) await wait(100);
		c.enqueue(text("ended\n"));
		c.close();
	} })); } }`

// stream begins an answer of the endless worker, and returns when its first line is there.
func (n *node) stream(url string) *http.Response {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), limit)
	n.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	res, err := n.client(n.info.HTTP, nil).Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { res.Body.Close() })
	if _, err := io.ReadFull(res.Body, make([]byte, len("begun\n"))); err != nil {
		n.t.Fatal(err)
	}
	return res
}

func endlessWorker(t *testing.T) string {
	return write(t, map[string]string{
		"worker.toml": "name = \"endless\"\nmain = \"e.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n", "e.js": endless})
}

// Streams and tasks of waitUntil that end within --drain-timeout end before the old process gives way; a stream that does not is cut so
// that its client sees it. Meanwhile everybody is served.
func TestUpgradeLetsStreamsEnd(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir(), "--drain-timeout", "20s")
	url := n.deploy(endlessWorker(t))
	short := n.stream(url + "/short")
	n.get(url + "/task")
	n.upgrade()
	if rest, err := io.ReadAll(short.Body); err != nil || string(rest) != "ended\n" {
		t.Errorf("the stream went on with %q, %v", rest, err)
	}
	n.stop()
	if !strings.Contains(n.log.String(), "the task has ended") {
		t.Error("the task was cut")
	}

	n = start(t, n.dir, "--drain-timeout", "500ms")
	long := n.stream(url + "/long")
	n.upgrade()
	if rest, err := io.ReadAll(long.Body); err == nil {
		t.Errorf("the stream that was cut ended as if it were whole, with %q", rest)
	}
}

// A program or a configuration with which the node does not start changes nothing, and is told; one that fails when the old process has
// let go is rolled back.
func TestUpgradeIsRolledBack(t *testing.T) {
	t.Parallel()
	faulty, err := faultBinary()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "edged.toml")
	text := filepath.Join(t.TempDir(), "text")
	for path, content := range map[string]string{config: "max_cpu = \"5s\"\n", text: "no program\n"} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n := startBinary(t, binary, []string{"EDGED_FAULTPOINT=control.publish"}, t.TempDir(), "--config", config)
	url := n.deploy(hello(t, ""))
	refused := func(want string, flags ...string) {
		t.Helper()
		out, code := n.try(append([]string{"upgrade"}, flags...)...)
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit %d, want 1 and %q in\n%s", code, want, out)
		}
		if a := n.get(url + "/x"); a.body != "hello /x" {
			t.Errorf("after %v: %+v", flags, a)
		}
	}
	refused("no such file", "--binary", text+"s")
	refused("is not a program", "--binary", filepath.Dir(text))
	refused("cannot be started: exec format error", "--binary", text)
	refused("does not start: exit status 1", "--binary", "/bin/false")
	if err := os.WriteFile(config, []byte("max_cpus = \"5s\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(`unknown key "max_cpus"`)
	if pid := n.info.PID; gone(pid) {
		t.Error("the serving process is another")
	}
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("has ended before it served", "--binary", faulty)
	n.again()
	n.upgrade() // nothing is left that is in the way
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// childrenOf lists the processes that a process has started.
func childrenOf(pid int) (list []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil && !gone(child) {
				list = append(list, child)
			}
		}
	}
	return list
}

// Whichever process is killed in the middle of an upgrade, the node goes on or can be started again.
func TestUpgradeOfAProcessThatDies(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir(), "--drain-timeout", "20s")
	url := n.deploy(endlessWorker(t))
	parent := n.cmd.Process.Pid
	// begin starts an upgrade that waits for a stream to end, and returns the process that waits for that.
	begin := func() (next int, end chan string) {
		n.stream(url + "/long")
		end = make(chan string, 1)
		said, w := io.Pipe()
		cmd := exec.Command(binary, "upgrade", "--data-dir", n.dir)
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(said)
		go func() { // ends with the command, which ends with the upgrade
			err := cmd.Wait()
			w.CloseWithError(io.EOF)
			_ = err
		}()
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "ready to take over") {
			t.Fatalf("%q, %v", line, err)
		}
		go func() { // as above
			rest, _ := io.ReadAll(lines)
			end <- string(rest)
		}()
		for _, pid := range childrenOf(parent) {
			if pid != n.info.PID {
				next = pid
			}
		}
		if next == 0 {
			t.Fatalf("no second process: %v", childrenOf(parent))
		}
		return next, end
	}
	kill := func(pid int) {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}

	_, end := begin()
	kill(n.info.PID)
	if out := <-end; !strings.Contains(out, "upgraded to") {
		t.Errorf("the old process killed: %s", out)
	}
	n.again()

	next, end := begin()
	kill(next)
	n.until("replacement", func() bool { all := childrenOf(parent); return len(all) == 2 && !slices.Contains(all, next) })
	kill(n.info.PID) // its stream would hold it for long
	if out := <-end; !strings.Contains(out, "the program before serves again") {
		t.Errorf("the new process killed: %s", out)
	}
	n.again()
	if a := n.get(url + "/task"); a.body != "ok" {
		t.Errorf("afterwards: %+v", a)
	}

	next, end = begin()
	kill(parent)
	n.wait()
	if out := <-end; !strings.Contains(out, "has ended before it answered") {
		t.Errorf("the watching process killed: %s", out)
	}
	n.until("end of both", func() bool { return gone(next) && gone(n.info.PID) })
	again := start(t, n.dir, "--http", n.info.HTTP, "--https", n.info.HTTPS, "--control", n.info.Control, "--admin", n.info.Admin)
	again.upgrade()
	if code := again.stop(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	if out, code := again.try("upgrade"); code != 1 || !strings.Contains(out, "no supervised node serves on") {
		t.Errorf("without a node: exit %d, %s", code, out)
	}
}

// A service manager that listens itself (socket activation) passes its sockets, told by name or by address.
func TestSocketActivation(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	url := first.deploy(hello(t, ""))
	first.stop()
	for _, supervise := range []string{"--supervise=true", "--supervise=false"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		early, err := net.Dial("tcp", l.Addr().String()) // before there is a process
		if err != nil {
			t.Fatal(err)
		}
		defer early.Close()
		if _, err := fmt.Fprintf(early, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(url, "http://")); err != nil {
			t.Fatal(err)
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=http exec "$0" "$@"`, binary, "run", "--data-dir", dir,
			"--https", "", "--control", "127.0.0.1:0", "--admin", "", supervise)
		cmd.ExtraFiles = []*os.File{file}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		early.SetDeadline(time.Now().Add(limit))
		res, err := http.ReadResponse(bufio.NewReader(early), nil)
		if err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %v %v", supervise, res, err)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", supervise, err)
		}
	}
}

// edged drain tells what holds the node, before and while it stops, and waits for its end.
func TestDrainExplains(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir(), "--drain-timeout", "20s")
	url := n.deploy(endlessWorker(t))
	held := n.stream(url + "/long")
	if out := n.edged("drain", "--explain"); !strings.Contains(out, "state        serving") || !strings.Contains(out, "answer") ||
		!strings.Contains(out, "default/endless") {
		t.Errorf("while it serves: %s", out)
	}
	n.edged("drain")
	n.until("drain", func() bool { return strings.Contains(n.edged("drain", "--explain"), "state        draining") })
	ended := make(chan string, 1)
	go func() { out, code := n.try("drain", "--wait"); ended <- fmt.Sprint(out, code) }() // ends with the node
	held.Body.Close()
	n.wait()
	if got := <-ended; got != "the node has ended\n0" || n.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("drain --wait: %s; the node's exit code %d", got, n.cmd.ProcessState.ExitCode())
	}
}
