package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

type tested struct {
	Space                            string
	Passed, Failed, Skipped, Removed int
	Checks                           []struct{ Name, Section, Outcome, Why string }
	Left                             []struct{ Name, Why string }
}

// failed lists the checks that failed, in order.
func (r tested) failed() (names []string) {
	for _, c := range r.Checks {
		if c.Outcome == "fail" {
			names = append(names, c.Name)
		}
	}
	return names
}

// selftest runs the selftest against the node; its exit code must say the same as its report.
func (n *node) selftest(flags ...string) (r tested) {
	n.t.Helper()
	out, code := n.try(append([]string{"selftest", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Checks) == 0 {
		n.t.Fatalf("exit %d, %v\n%s", code, err, out)
	}
	if good := r.Failed == 0 && len(r.Left) == 0; good != (code == 0) {
		n.t.Errorf("exit %d\n%s", code, out)
	}
	return r
}

// The selftest passes on a sound node over both public listeners, names the contract's section for each check, and leaves the node
// as it found it.
func TestSelftest(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir(), "--max-cpu", "3s") // to fill its memory takes a guest most of a second on a busy machine
	neighbour := n.deploy(hello(t, ""))
	before := n.list("")
	for _, flags := range [][]string{nil, {"--front", "https://" + n.info.HTTPS}} {
		r := n.selftest(flags...)
		for _, c := range r.Checks {
			if c.Outcome != "pass" || c.Section == "" {
				t.Errorf("%+v", c)
			}
		}
		if len(r.Checks) < 25 || r.Passed != len(r.Checks) || r.Removed == 0 || len(r.Left) != 0 {
			t.Errorf("%+v", r)
		}
		if after := n.list(""); !slices.Equal(before, after) {
			t.Errorf("Resources were\n%v\nare\n%v", before, after)
		}
	}
	if a := n.get(neighbour + "/x"); a.body != "hello /x" {
		t.Errorf("the neighbour: %+v", a)
	}
	var made struct{ Token string }
	token := filepath.Join(t.TempDir(), "token")
	err := json.Unmarshal([]byte(n.edged("tokens", "create", "--json", "--tenant", "prover", "--principal", "p", "--role", "editor")), &made)
	if err == nil {
		err = os.WriteFile(token, []byte(made.Token), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := n.edged("selftest", "--skip", "limit.cpu,limit.memory", "--token-file", token) // an editor of another tenant can
	if out, code := n.try("selftest", "--timeout", "2s"); code != 1 || !strings.Contains(out, "interrupted") {
		t.Errorf("out of time: exit %d\n%s", code, out)
	}
	if after := n.list(""); !slices.Equal(before, after) {
		t.Errorf("Resources were\n%v\nare\n%v", before, after)
	}
	for _, want := range []string{"pass  kv ", "skip  limit.cpu", "module-worker §6", " 0 failed, 2 left out; removed "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for want, args := range map[string][]string{"there is no check": {"--skip", "everything"}, "is no Space of a selftest": {"--remove", "default"}, "is not like http://": {"--front", "localhost"}} {
		if out, code := n.try(append([]string{"selftest"}, args...)...); code != 2 || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d, %s", args, code, out)
		}
	}
}

// spoiler passes connections on to a node, and replaces texts in what the node says.
func spoiler(t *testing.T, to string, spoil *strings.Replacer) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with the listener
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			node, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				return
			}
			go func() { io.Copy(node, c); node.(*net.TCPConn).CloseWrite() }()
			go func() { // an answer that is spoilt here comes in one piece
				defer c.Close()
				defer node.Close()
				for b := make([]byte, 64<<10); ; {
					k, err := node.Read(b)
					if _, werr := spoil.WriteString(c, string(b[:k])); err != nil || werr != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// A node that misses a floor, or whose answers are spoilt on the way, is found out: the checks that it breaks fail, and no others.
func TestSelftestFindsFaults(t *testing.T) { // not beside others: what is not there within two seconds counts as a fault
	n := start(t, t.TempDir(), "--max-cpu", "1s", "--max-request-body", "1MiB")
	if got := n.selftest().failed(); !slices.Equal(got, []string{"limit.body"}) {
		t.Errorf("below the floor of bodies: %v", got)
	}
	spoils := []struct{ from, into, breaks string }{
		{"[0,255,128,65]", "[0,255,128,66]", "kv"},
		{"Edged-Error: bad_request", "Edged-Error: worker_erro", "smuggling.refused"},
		{"9007199254740993", "9007199254740992", "sql"},
		{"range_not_satisfiable", "precondition_failedxx", "objects"},
		{"[0,255,128],1]", "[0,255,128],2]", "queue"},
		{"an asset of", "an Asset of", "assets"},
		{"passed", "missed", "service"},
		{"peer two", "peer one", "routing.weights"},
		{"peer undefined", "peer xndefined", "isolation.workers"},
		{`[1,"undefined"]`, `[2,"undefined"]`, "isolation.requests"},
		{"[8192,60]", "[8192,59]", "limit.head"},
		{"Edged-Error: unknown_host", "Edged-Error: worker_error", "routing.host"},
		{"worker_error\n", "w inside err\n", "errors.host"},
		{"\r\n\r\nown", "\r\n\r\nowl", "headers.trusted"},
		{"hello", "hallo", "stream.cut"},
		{"six", "fix", "stream.duplex"},
		{"ignored", "http://", "smuggling.leftover"},
		{`"hi"]`, `"ho"]`, "env.exact"},
		{"memory_exceeded", "memory_excelled", "limit.memory"},
		{"cpu_exceeded", "cpu_excelled", "limit.cpu"},
	}
	for half := range 2 { // in each run what half of the checks look at is spoilt, and the other half is to pass
		var pairs, want []string
		for i, s := range spoils {
			if i%2 == half {
				pairs, want = append(pairs, s.from, s.into), append(want, s.breaks)
			}
		}
		got := n.selftest("--skip", "limit.body", "--patience", "2s", "--front", spoiler(t, n.info.HTTP, strings.NewReplacer(pairs...))).failed()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("failed %v, want %v", got, want)
		}
	}
	// A front that says 200 to everything.
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }))
	defer liar.Close()
	r := n.selftest("--front", liar.URL, "--patience", "1s")
	for _, c := range r.Checks {
		if fails := c.Outcome == "fail"; fails == (c.Name == "deploy" || c.Name == "cron") {
			t.Errorf("before a front that lies: %+v", c)
		}
	}
	if left := n.list(""); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A selftest that is interrupted removes what it made; one that is killed says nothing, and its Space can be removed by name.
func TestSelftestCleansUp(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	spaceOf := func(signal syscall.Signal) (space, out string, code int) {
		var text bytes.Buffer
		cmd := exec.Command(binary, "selftest", "--data-dir", n.dir, "--json")
		cmd.Stdout, cmd.Stderr = &text, &text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n.waits(func() bool {
			var page struct{ Items []struct{ Space string } }
			if json.Unmarshal([]byte(n.api("GET", root+"/resources", nil).body), &page) == nil && len(page.Items) > 0 {
				space = page.Items[0].Space
			}
			return space != ""
		}, "the selftest makes nothing")
		cmd.Process.Signal(signal)
		cmd.Wait()
		return space, text.String(), cmd.ProcessState.ExitCode()
	}
	space, out, code := spaceOf(syscall.SIGINT)
	var r tested
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || r.Space != space || r.Removed == 0 || r.Skipped == 0 {
		t.Errorf("interrupted: exit %d, %v\n%s", code, err, out)
	}
	if left := n.list(""); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	space, _, _ = spaceOf(syscall.SIGKILL)
	if left := n.list(""); len(left) == 0 {
		t.Error("a selftest that was killed left nothing")
	}
	if out := n.edged("selftest", "--remove", space); !strings.Contains(out, "removed") {
		t.Error(out)
	}
	if left := n.list(""); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
