package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit bounds everything that waits for the node: a hang fails instead of blocking the suite.
const limit = 60 * time.Second

var binary string // bin/edged as built for this run, with the race detector where the tests have it

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "edged-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "edged")
	args := append([]string{"build", "-o", binary}, raceFlag...)
	build := exec.Command("go", append(args, "edged/cmd/edged")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build edged:", err)
	} else {
		atOnce()
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// atOnce sets how many tests run at once, but where the command line says it: by default there are as many as cores, and these wait.
func atOnce() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		flag.Set("test.parallel", strconv.Itoa(perCore*runtime.NumCPU())) //nolint:errcheck // it is a number
	}
}

type runInfo struct {
	PID            int
	HTTP           string
	HTTPS          string
	Control        string
	Admin          string
	ControlOrigin  string
	EndpointDomain string
}

// node is one edged process.
type node struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	log  *said
	info runInfo
	done chan error // the process's end
}

// said is what a process has written so far; it may be read while that goes on.
type said struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// start runs a node on free ports and returns when all its listeners accept. The test's end kills it.
func start(t *testing.T, dir string, flags ...string) *node {
	t.Helper()
	return startBinary(t, binary, nil, dir, flags...)
}

// startBinary is start with another build of the program and more environment.
func startBinary(t *testing.T, binary string, env []string, dir string, flags ...string) *node {
	t.Helper()
	n := &node{t: t, dir: dir, log: new(said), done: make(chan error, 1)}
	args := []string{"run", "--data-dir", "./" + filepath.Base(dir), "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--control", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--log-format", "json"}
	n.cmd = exec.Command(binary, append(args, flags...)...)
	n.cmd.Dir = filepath.Dir(dir) // the default data directory is relative too
	n.cmd.Stderr = n.log
	n.cmd.Env = append(os.Environ(), env...)
	code, known := filepath.Join(dir, "sandbox", "code"), knownCode()
	linkFiles(known, code)
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { n.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	listening := 0
	for listening < 4 && lines.Scan() {
		listening++
	}
	timer.Stop()
	go func() { // ends with the process
		io.Copy(io.Discard, out)
		n.done <- n.cmd.Wait()
	}()
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			t.Logf("log of the node:\n%s", tail(n.log.String(), 8000))
		}
	})
	if listening < 4 {
		n.wait()
		t.Fatalf("the node did not start:\n%s", n.log)
	}
	linkFiles(code, known)
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &n.info); err != nil {
		t.Fatal(err)
	}
	return n
}

// knownCode is where the nodes of this run, whatever program they are of, leave that code for each other.
func knownCode() string { return filepath.Join(filepath.Dir(binary), "code") }

// linkFiles gives a node the engine's compiled code of the nodes before it: without, most of the suite's time is the compiler's. What
// cannot be linked the node compiles.
func linkFiles(from, to string) {
	filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if rel, relErr := filepath.Rel(from, path); err == nil && relErr == nil && e.Type().IsRegular() {
			target := filepath.Join(to, rel)
			os.MkdirAll(filepath.Dir(target), 0o700)
			os.Link(path, target) // not where it is already
		}
		return nil
	})
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// kill ends the process as a power cut would, and waits for its end.
func (n *node) kill() {
	n.cmd.Process.Kill()
	n.wait()
}

// stop asks the node to stop and returns its exit code.
func (n *node) stop() int {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	n.wait()
	return n.cmd.ProcessState.ExitCode()
}

func (n *node) wait() {
	select {
	case err := <-n.done:
		n.done <- err
	case <-time.After(limit):
		n.t.Fatalf("the node did not end within %v", limit)
	}
}

// edged runs a client command against the node and returns its output; it must succeed.
func (n *node) edged(args ...string) string {
	n.t.Helper()
	out, code := n.try(args...)
	if code != 0 {
		n.t.Fatalf("edged %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// try runs a client command and returns what it printed, both streams, and its exit code.
func (n *node) try(args ...string) (string, int) {
	n.t.Helper()
	return runEdged(n.t, append(args, "--data-dir", n.dir)...)
}

func runEdged(t *testing.T, args ...string) (string, int) {
	t.Helper()
	return runEdgedWith(t, "", args...)
}

// runEdgedWith is runEdged with something on standard input.
func runEdgedWith(t *testing.T, input string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// waits polls until ok.
func (n *node) waits(ok func() bool, otherwise string) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatal(otherwise)
		}
	}
}

// client talks to one listener of the node, whatever host a URL names.
func (n *node) client(addr string, conf *tls.Config) *http.Client {
	return &http.Client{
		Timeout: limit,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
			TLSClientConfig:   conf,
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// trust returns a client configuration that trusts the node's own authority.
func (n *node) trust() *tls.Config {
	n.t.Helper()
	pem, err := os.ReadFile(filepath.Join(n.dir, "tls", "ca.pem"))
	if err != nil {
		n.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		n.t.Fatal("tls/ca.pem holds no certificate")
	}
	return &tls.Config{RootCAs: pool}
}

func (n *node) token() string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, "control.token"))
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks the plain public listener.
func (n *node) get(url string) answer { n.t.Helper(); return n.do("GET", url, nil) }

func (n *node) do(method, url string, body io.Reader, header ...string) answer {
	n.t.Helper()
	a, err := n.ask(n.client(n.info.HTTP, nil), method, url, body, header...)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func (n *node) ask(c *http.Client, method, url string, body io.Reader, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(n.t.Context(), method, url, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}, err
}

// control asks the Host API with the bootstrap token.
func (n *node) api(method, path string, body io.Reader, header ...string) answer {
	n.t.Helper()
	header = append([]string{"Authorization", "Bearer " + n.token(), "Content-Type", "application/json"}, header...)
	a, err := n.ask(n.client(n.info.Control, n.trust()), method, n.info.ControlOrigin+path, body, header...)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// write puts files into a fresh directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// deployed is what `edged deploy --json` says.
type deployed struct {
	Addresses []struct{ Hostname string }
}

// deploy deploys the worker in dir and returns its plain URL.
func (n *node) deploy(dir string, flags ...string) string {
	n.t.Helper()
	out := n.edged(append([]string{"deploy", dir, "--json"}, flags...)...)
	var d deployed
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Addresses) == 0 {
		n.t.Fatalf("edged deploy --json: %v\n%s", err, out)
	}
	return "http://" + d.Addresses[0].Hostname
}
