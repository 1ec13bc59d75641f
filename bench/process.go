package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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
	"time"

	"github.com/valyala/fasthttp"

	"edged/control/client"
)

// nodeProcess is one running node.
type nodeProcess struct {
	cfg    config
	dir    string
	cmd    *exec.Cmd
	pid    int    // of the serving process
	http   string // address of the plain public listener
	admin  string
	peer   string // address for other members of its fleet; "" alone
	client *client.Client
	said   *tail
	booted time.Duration // from exec to all listeners accepting
}

// startNode runs a node on free ports in dir. The caller ends it with stop.
func startNode(ctx context.Context, cfg config, dir string, flags ...string) (*nodeProcess, error) {
	args := []string{"run", "--data-dir", dir, "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	n := &nodeProcess{cfg: cfg, dir: dir, said: new(tail), cmd: exec.CommandContext(ctx, cfg.binary, append(args, flags...)...)}
	n.cmd.Stderr = n.said
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w (make build makes it)", err)
	}
	lines := bufio.NewScanner(out)
	listeners := 3
	if slices.Contains(flags, "--peer") {
		listeners++
	}
	for i := 0; i < listeners && lines.Scan(); i++ {
		continue
	}
	n.booted = time.Since(began)
	go io.Copy(io.Discard, out) //nolint:errcheck // ends with the process
	var info struct {
		PID               int
		HTTP, Admin, Peer string
	}
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil {
		stopped := n.stop() // it has said everything then
		return nil, errors.Join(fmt.Errorf("the node did not start: %w\n%s", err, *n.said), stopped)
	}
	n.http, n.admin, n.peer, n.pid = info.HTTP, info.Admin, info.Peer, info.PID
	opt, err := client.Find(client.Where{DataDir: dir, TokenFile: cfg.token})
	if err == nil {
		n.client, err = client.New(opt)
	}
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

// withNode runs a node in a temporary directory for as long as use takes.
func withNode(ctx context.Context, cfg config, use func(*nodeProcess) error, flags ...string) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return withNodeIn(ctx, cfg, dir, use, flags...)
}

// withNodeIn is withNode in a directory that a node may have used before.
func withNodeIn(ctx context.Context, cfg config, dir string, use func(*nodeProcess) error, flags ...string) error {
	n, err := startNode(ctx, cfg, dir, flags...)
	if err != nil {
		return err
	}
	used, stopped := use(n), n.stop()
	if used != nil {
		used = fmt.Errorf("%w\nthe node said last:\n%s", used, *n.said)
	}
	return errors.Join(used, stopped)
}

// tail is the end of what a node logs: hostile workers make it say much, and only a failure needs it.
type tail []byte

// Write is io.Writer's.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if over := len(*t) - 4096; over > 4096 {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(p), nil
}

// stop ends the node in order, and remembers its largest poll gap.
func (n *nodeProcess) stop() error {
	if n.admin != "" {
		noteGap(n.metric("edged_sandbox_poll_gap_seconds"))
	}
	if n.client != nil {
		n.client.Close()
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return n.cmd.Wait()
}

// metric reads one unlabelled value from the node; 0 if it is not there.
func (n *nodeProcess) metric(name string) float64 {
	res, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, _ := strconv.ParseFloat(value, 64)
			return v
		}
	}
	return 0
}

var gap float64

func noteGap(seconds float64) { gap = max(gap, seconds) }

func largestGap() string {
	if gap == 0 {
		return "not measured"
	}
	return time.Duration(gap * float64(time.Second)).Round(time.Microsecond).String()
}

// memoryBytes is what the node costs: resident memory of both its processes plus the memory files behind its images.
func (n *nodeProcess) memoryBytes() (int64, error) {
	serving, err := processBytes(n.pid)
	if err != nil || n.pid == n.cmd.Process.Pid {
		return serving, err
	}
	watching, err := processBytes(n.cmd.Process.Pid)
	return serving + watching, err
}

func processBytes(pid int) (int64, error) {
	total, err := processStatus(pid, "VmRSS:")
	if err != nil {
		return 0, err
	}
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		path := filepath.Join(fds, e.Name())
		target, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(target, "/memfd:") {
			continue
		}
		var st syscall.Stat_t
		if syscall.Stat(path, &st) == nil {
			total += st.Blocks * 512
		}
	}
	return total, nil
}

// status is processStatus of the process that serves.
func (n *nodeProcess) status(name string) (int64, error) { return processStatus(n.pid, name) }

// processStatus reads one line of what the kernel says of a process, in bytes.
func processStatus(pid int, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not say %s", name)
}

// residentParts is the resident memory that is the process's own, and the part that files lie behind.
func (n *nodeProcess) residentParts() (anon, file int64, err error) {
	if anon, err = n.status("RssAnon:"); err == nil {
		file, err = n.status("RssFile:")
	}
	return anon, file, err
}

// startFasthttp runs the baseline in a process of its own and returns its address.
func startFasthttp(ctx context.Context) (addr string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		return "", nil, err
	}
	addr = ln.Addr().String()
	ln.Close()
	cmd := exec.CommandContext(ctx, self, "-serve-fasthttp", addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	if !bufio.NewScanner(out).Scan() {
		return "", nil, errors.New("the baseline did not start")
	}
	return addr, func() { cmd.Process.Kill(); cmd.Wait() }, nil
}

// serveFasthttp is the baseline: the fixed answer of the hello worker from bare fasthttp, and an echo.
func serveFasthttp(addr string) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("serving")
	srv := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/echo" {
			ctx.SetBody(ctx.PostBody())
			return
		}
		ctx.Response.Header.SetContentType("text/plain;charset=UTF-8")
		ctx.SetBodyString("Hello World")
	}, NoDefaultServerHeader: true}
	fmt.Fprintln(os.Stderr, srv.Serve(ln))
	os.Exit(1)
}
