package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	origin = "https://control.example.test"
	root   = "/apis/forms.takoform.com/v2"
)

// node is a Control that runs, with everything a test needs to drive it.
type node struct {
	t     testing.TB
	dir   string
	c     *Control
	token string
	stop  func()

	booted *plan.Plan // the last plan at the start; not changed

	mu     sync.Mutex // guards the fields below
	plan   *plan.Plan // what the deltas lead to
	handed int        // deltas so far
}

// startNode opens a Control in dir and waits until it is ready. change may alter the options.
func startNode(t testing.TB, dir string, change func(*Options)) *node {
	t.Helper()
	return startWith(t, dir, form.Builtin(), change)
}

// startWith is startNode with other Forms.
func startWith(t testing.TB, dir string, drivers form.Table, change func(*Options)) *node {
	t.Helper()
	n := openNode(t, dir, drivers, change)
	n.run()
	return n
}

// openNode is startWith up to where Run is called.
func openNode(t testing.TB, dir string, drivers form.Table, change func(*Options)) *node {
	t.Helper()
	n := &node{t: t, dir: dir}
	opt := Options{
		Dir: dir, ControlOrigin: origin, EndpointDomain: "edge.localhost", Zones: []Zone{{Name: "*"}}, SweepEvery: time.Hour,
		Inspect: exportsByText,
		OnPlan:  n.onPlan,
	}
	if change != nil {
		change(&opt)
	}
	c, err := open(opt, drivers)
	if err != nil {
		t.Fatal(err)
	}
	n.c, n.booted, n.plan = c, copyOf(c.last), copyOf(c.last)
	return n
}

// run is called once; the node has started when it returns.
func (n *node) run() {
	t, c := n.t, n.c
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }() // ends with ctx; stop waits
	n.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	select {
	case <-c.Started():
	case err := <-done:
		t.Fatalf("control does not start: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(n.dir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	n.token = strings.TrimSpace(string(raw))
}

// exportsByText stands in for the sandbox: a module exports the handlers that its text names.
func exportsByText(_ context.Context, in Inspection) ([]string, error) {
	for _, m := range in.Modules {
		if m.Path != in.Entrypoint {
			continue
		}
		if bytes.Contains(m.Bytes, []byte("syntax error")) {
			return nil, fault.Name(fault.Invalid, "module_syntax_error", 999).New("inspect", "line 1: no")
		}
		var out []string
		for _, h := range form.Handlers {
			if bytes.Contains(m.Bytes, []byte(h)) {
				out = append(out, h)
			}
		}
		return out, nil
	}
	return nil, errors.New("no entrypoint")
}

func (n *node) onPlan(d *plan.Delta) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plan.Apply(d)
	n.handed++
}

func (n *node) lastPlan() *plan.Plan {
	n.t.Helper()
	n.poll(func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.handed > 0 }) // the first one follows the start
	n.mu.Lock()
	defer n.mu.Unlock()
	return copyOf(n.plan)
}

func copyOf(p *plan.Plan) *plan.Plan {
	q := plan.New()
	q.Apply(p.Delta())
	return q
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) member(t testing.TB, name string) any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(a.body, &doc); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return doc[name]
}

func (a answer) text(t testing.TB, name string) string {
	t.Helper()
	s, _ := a.member(t, name).(string)
	return s
}

// is checks status and problem code.
func (a answer) is(t testing.TB, status int, code string) {
	t.Helper()
	if a.status != status || code != "" && a.text(t, "code") != code {
		t.Fatalf("got %d %s, want %d %s", a.status, a.body, status, code)
	}
}

func (n *node) do(method, path string, body any, headers ...string) answer {
	n.t.Helper()
	var rd io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		rd = strings.NewReader(b)
	case []byte:
		rd = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			n.t.Fatal(err)
		}
		rd = bytes.NewReader(raw)
	}
	req := httptest.NewRequest(method, path, rd)
	req.Header.Set("Authorization", "Bearer "+n.token)
	if rd != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	rec := httptest.NewRecorder()
	n.c.Handler().ServeHTTP(rec, req)
	return answer{rec.Code, rec.Header(), rec.Body.Bytes()}
}

var keys atomic.Int64

func freshKey() string { return fmt.Sprintf("key-%016d", keys.Add(1)) }

type spec = map[string]any

func ref(uid string) spec { return spec{"resourceUid": uid} }

func (n *node) create(form, name string, s any) answer {
	n.t.Helper()
	return n.do("POST", root+"/resources", spec{"form": form, "space": "default", "name": name, "spec": s}, "Idempotency-Key", freshKey())
}

// made creates, waits for success and returns the UID.
func (n *node) made(form, name string, s any) string {
	n.t.Helper()
	return n.succeeded(n.create(form, name, s))
}

func (n *node) succeeded(a answer) string {
	n.t.Helper()
	op := n.ended(a)
	if op.text(n.t, "status") != "succeeded" {
		n.t.Fatalf("operation ended %s", op.body)
	}
	return op.text(n.t, "resourceUid")
}

// ended polls the Operation of an accepted mutation until it is terminal.
func (n *node) ended(a answer) answer {
	n.t.Helper()
	if a.status != 200 && a.status != 202 {
		n.t.Fatalf("not accepted: %d %s", a.status, a.body)
	}
	id := a.text(n.t, "id")
	var op answer
	n.poll(func() bool {
		op = n.do("GET", root+"/operations/"+id, nil)
		s := op.text(n.t, "status")
		return s == "succeeded" || s == "failed"
	})
	return op
}

// poll asks until done, which is all that a client of the API can do, for half a minute at most.
func (n *node) poll(done func() bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	for !done() {
		if !pause(ctx, time.Millisecond) {
			n.t.Fatal("what was waited for does not come")
		}
	}
}

func (n *node) get(uid string) answer { n.t.Helper(); return n.do("GET", root+"/resources/"+uid, nil) }

func (n *node) generation(uid string) string {
	n.t.Helper()
	g, _ := n.get(uid).member(n.t, "generation").(float64)
	return strconv.Itoa(int(g))
}

func (n *node) put(uid string, s any) answer {
	n.t.Helper()
	return n.do("PUT", root+"/resources/"+uid, spec{"spec": s}, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", n.generation(uid))
}

func (n *node) del(uid string) answer {
	n.t.Helper()
	return n.do("DELETE", root+"/resources/"+uid, nil, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", n.generation(uid))
}

// upload stores bytes on the side channel and returns their digest and URL.
func (n *node) upload(content string) (sum, url string) {
	n.t.Helper()
	h := sha256.Sum256([]byte(content))
	sum = hex.EncodeToString(h[:])
	a := n.do("PUT", "/artifacts/sha256/"+sum, content, "Content-Type", "application/octet-stream")
	if a.status != 200 && a.status != 201 {
		n.t.Fatalf("upload: %d %s", a.status, a.body)
	}
	return sum, origin + "/artifacts/sha256/" + sum
}

// bundle uploads a manifest of one file and returns the spec of an artifact Form.
func (n *node) bundle(entrypoint, path, mediaType, content string) spec {
	n.t.Helper()
	sum, url := n.upload(content)
	m := spec{"files": []spec{{"path": path, "url": url, "sha256": sum, "mediaType": mediaType}}}
	if entrypoint != "" {
		m["entrypoint"] = entrypoint
	}
	raw, err := json.Marshal(m)
	if err != nil {
		n.t.Fatal(err)
	}
	sum, url = n.upload(string(raw))
	return spec{"artifact": spec{"url": url, "sha256": sum}}
}

const jsModule = "application/javascript+module"

// code makes a WorkerBundle whose main module exports the handlers given.
func (n *node) code(name string, handlers ...string) string {
	n.t.Helper()
	return n.made(form.WorkerBundleURL, name, n.bundle("main.js", "main.js", jsModule, "exports "+strings.Join(handlers, " ")+" "+name))
}

// version makes a bundle and a version of it.
func (n *node) version(worker, name string, handlers ...string) string {
	n.t.Helper()
	if handlers == nil {
		handlers = []string{}
	}
	return n.made(form.WorkerVersionURL, name, spec{
		"worker": ref(worker), "bundle": ref(n.code(name+".code", handlers...)), "handlers": handlers,
	})
}

func weighted(worker string, shares ...any) spec {
	var versions []spec
	for i := 0; i < len(shares); i += 2 {
		versions = append(versions, spec{"workerVersion": ref(shares[i].(string)), "weight": shares[i+1]})
	}
	return spec{"worker": ref(worker), "versions": versions}
}
