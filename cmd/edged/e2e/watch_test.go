package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is a real Prometheus.
type server struct {
	t    *testing.T
	addr string
}

// watch starts a Prometheus with the example's configuration, which asks n four times a second. The test's end kills it.
func watch(t *testing.T, n *node) *server {
	t.Helper()
	path := program(t, "prometheus")
	dir := t.TempDir()
	for _, name := range []string{"prometheus.yml", "recording.yml", "alerts.yml"} {
		b, err := os.ReadFile(filepath.Join(top, "deploy/prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("15s", "250ms", "127.0.0.1:8082", n.info.Admin, "          - 127.0.0.1:9082\n", "").Replace(string(b))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	listening := regexp.MustCompile(`msg="?Listening on"? address=(127\.0\.0\.1:\d+)`)
	lines, s := bufio.NewScanner(log), &server{t: t}
	var said []string
	for s.addr == "" && lines.Scan() {
		said = append(said, lines.Text())
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			s.addr = m[1]
		}
	}
	var rest sync.WaitGroup
	rest.Go(func() { // ends with the process
		for lines.Scan() {
		}
	})
	t.Cleanup(func() {
		cmd.Process.Kill()
		rest.Wait()
		cmd.Wait()
	})
	if s.addr == "" {
		t.Fatalf("prometheus does not listen:\n%s", strings.Join(said, "\n"))
	}
	return s
}

// query asks for the present value of an expression and tells how many series it has. NaN, of a ratio or a quantile of nothing, counts
// as none.
func (s *server) query(e expression) (series int) {
	s.t.Helper()
	res, err := http.Get("http://" + s.addr + "/api/v1/query?query=" + url.QueryEscape(e.text))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusServiceUnavailable { // it still starts
		return 0
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	if answer.Status != "success" {
		s.t.Fatalf("%s: %s\n%s", e.by, answer.Error, e.text)
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			series++
		}
	}
	return series
}

// A live node has every metric that is documented, and no other; a real Prometheus that reads it understands every expression of rules
// and dashboards, and finds data for each: for an alert, for everything that it reads.
func TestWatchedByPrometheus(t *testing.T) {
	program(t, "prometheus")
	n := start(t, t.TempDir())
	n.deploy(example(t, "hello"))
	t.Setenv("SIGNING_KEY", "the key of this test")
	book := n.deploy(example(t, "guestbook"))
	s := watch(t, n)

	// What the guestbook does not do in this minute; the series are there all the same.
	idle := regexp.MustCompile(`_cron_record_seconds_bucket|_sqlstore_transaction_seconds_bucket|_sqlstore_write_wait_seconds_bucket`)
	var waiting []expression
	for _, e := range expressions(t) {
		if !strings.HasPrefix(e.by, "alerts.yml") && !idle.MatchString(e.text) {
			waiting = append(waiting, e)
		}
		for _, read := range selector.FindAllString(e.text, -1) {
			waiting = append(waiting, expression{e.by + ": what it reads", read})
		}
	}
	n.waits(func() bool { return s.query(expression{"the start", `count_over_time(edged_node_ready[5m]) > 1`}) == 1 }, "Prometheus does not read the node")
	for end := time.Now().Add(limit); len(waiting) > 0; {
		driveGuestbook(t, n, book)
		waiting = slices.DeleteFunc(waiting, func(e expression) bool { return s.query(e) > 0 })
		if time.Now().After(end) {
			break
		}
	}
	for _, e := range waiting {
		t.Errorf("no data for %s\n%s", e.by, e.text)
	}

	page := n.mustAsk(n.info.Admin, "/metrics")
	var live, known []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (edged_\w+) `).FindAllStringSubmatch(page, -1) {
		live = append(live, m[1])
	}
	for _, m := range documented(t) {
		known = append(known, m[1])
	}
	if !slices.Equal(live, known) {
		t.Errorf("the node has\n%v\ndocs/metrics.md has\n%v", live, known)
	}
}

func (n *node) mustAsk(addr, path string) string {
	n.t.Helper()
	a, err := n.ask(n.client(addr, nil), "GET", "http://"+addr+path, nil)
	if err != nil || a.status != 200 {
		n.t.Fatalf("%s: %v %+v", path, err, a)
	}
	return a.body
}
