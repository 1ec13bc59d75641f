package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sandbox/engine/wasm"
	"edged/sandbox/event"
)

// cacheDir keeps the compiled engine between the tests of one run.
var cacheDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sandbox-test")
	if err != nil {
		panic(err)
	}
	cacheDir = dir + "/code"
	testkit.Main(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func newBox(t testing.TB, opt Options) *Sandbox {
	t.Helper()
	if _, _, err := wasm.Engine(); err != nil {
		t.Skipf("needs the engine: %v", err)
	}
	opt.CacheDir = cacheDir
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if live, _ := s.Instances(); live != 0 {
			t.Errorf("%d sandboxes outlive Close", live)
		}
	})
	return s
}

func js(source string) Module {
	return Module{Path: "main.js", MediaType: "application/javascript+module", Bytes: []byte(source)}
}

func graphOf(source string, more ...Module) Graph {
	return Graph{Entrypoint: "main.js", Modules: append([]Module{js(source)}, more...)}
}

// fetcher is a main module whose fetch handler has this body.
func fetcher(body string) string {
	return "export default { async fetch(request, env, ctx) {" + body + "} }"
}

var lastUID int

func openVersion(t testing.TB, s *Sandbox, spec Spec) *Version {
	t.Helper()
	if spec.UID == "" {
		lastUID++
		spec.UID = "v-" + time.Duration(lastUID).String()
	}
	if spec.Handlers == nil {
		spec.Handlers = []string{"fetch"}
	}
	v, err := s.Open(context.Background(), spec)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return v
}

func openWorker(t testing.TB, s *Sandbox, source string) *Version {
	t.Helper()
	return openVersion(t, s, Spec{Graph: graphOf(source)})
}

func request() *event.Request {
	return &event.Request{Method: []byte("GET"), URL: []byte("http://worker.test/path?q=1"),
		Header: []byte("host\nworker.test\naccept\n*/*\n"), Length: 0}
}

// answer is a response, read to its end.
type answerT struct {
	status int
	header string
	body   string
	null   bool
	err    error // of the body
}

func collect(res *event.Response) answerT {
	a := answerT{status: res.Status, header: string(res.Header), null: res.Null, body: string(res.Body)}
	if res.Stream != nil {
		var b []byte
		b, a.err = io.ReadAll(res.Stream)
		a.body = string(b)
		res.Stream.Close()
	}
	return a
}

func serve(t testing.TB, v *Version, req *event.Request) answerT {
	t.Helper()
	var res event.Response
	if err := v.Serve(context.Background(), req, &res); err != nil {
		t.Fatalf("serve: %v", err)
	}
	return collect(&res)
}

func serveErr(v *Version) error {
	var res event.Response
	err := v.Serve(context.Background(), request(), &res)
	if res.Stream != nil {
		res.Stream.Close()
	}
	return err
}

// text serves a GET and returns the body.
func text(t testing.TB, v *Version) string {
	t.Helper()
	return serve(t, v, request()).body
}

// logs collects what workers log. The zero value is ready.
type logs struct {
	mu     sync.Mutex
	list   []Entry
	change chan struct{} // closed at the next entry; nil if nobody waits
}

func (l *logs) add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}

func (l *logs) String() string {
	s, _ := l.look()
	return s
}

// look returns the log as text, and a channel that is closed when it has grown.
func (l *logs) look() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, e := range l.list {
		b.WriteString(e.Level.String() + ": " + e.Text + "\n")
	}
	if l.change == nil {
		l.change = make(chan struct{})
	}
	return b.String(), l.change
}

// await waits until something is logged.
func (l *logs) await(t *testing.T, what string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		s, grown := l.look()
		if strings.Contains(s, what) {
			return
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("%q was never logged:\n%s", what, s)
		}
	}
}

func wantErr(t *testing.T, err error, want *fault.Named) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// idle waits until every invocation of v has ended. The version serves no more afterwards.
func idle(t *testing.T, v *Version) {
	t.Helper()
	if err := v.Retire(context.Background()); err != nil {
		t.Fatal(err)
	}
}
