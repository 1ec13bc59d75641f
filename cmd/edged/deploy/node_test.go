package deploy

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/cmd/edged/manifest"
	"edged/control"
	"edged/control/client"
)

// testNode is the real control room behind a TLS listener; only the sandbox is not there: every bundle exports what its
// version declares, but for handlers that the test took away.
type testNode struct {
	t      *testing.T
	client *client.Client

	mu        sync.Mutex
	mutations []string                       // method and path of every request that may change something
	intercept func(*http.Request) bool       // true answers 503 in the node's place
	inspect   func(control.Inspection) error // nil agrees
}

func startNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{t: t}
	server := httptest.NewUnstartedServer(nil)
	origin := "https://" + server.Listener.Addr().String()
	dir := t.TempDir()
	c, err := control.Open(control.Options{
		Dir: dir, ControlOrigin: origin, EndpointDomain: "edge.localhost", Zones: []control.Zone{{Name: "*"}}, ServiceBindings: true,
		Stores: map[string]control.Store{"kv": &memory{}, "sql": &memory{}, "queue": &memory{}},
		Inspect: func(_ context.Context, in control.Inspection) ([]string, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.inspect != nil {
				return nil, n.inspect(in)
			}
			return in.Handlers, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()       // ends with ctx; the cleanup waits
	tick := time.NewTicker(time.Millisecond) // the room has no event for this
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !c.Ready(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("control is not ready")
		}
	}
	server.Config.Handler = n.watch(c.Handler())
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		cancel()
		<-done
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := os.ReadFile(filepath.Join(dir, "control.token"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	n.client, err = client.New(client.Options{URL: origin, Roots: roots, Token: strings.TrimSpace(string(token)), Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.client.Close)
	return n
}

func (n *testNode) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		stop := n.intercept != nil && n.intercept(r)
		if mutates(r) {
			n.mutations = append(n.mutations, r.Method+" "+r.URL.Path)
		}
		n.mu.Unlock()
		if stop {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(impatient{w}, r)
	})
}

// memory is a store that only knows what exists.
type memory struct{ uids sync.Map }

// Create, Delete and Exists are control.Store's.
func (m *memory) Create(_ context.Context, r control.StoreRequest) error {
	m.uids.Store(r.UID, true)
	return nil
}
func (m *memory) Delete(_ context.Context, r control.StoreRequest) error {
	m.uids.Delete(r.UID)
	return nil
}
func (m *memory) Exists(_ context.Context, uid string) (bool, error) {
	_, ok := m.uids.Load(uid)
	return ok, nil
}

// mutates reports whether a request may change something; a preview may not.
func mutates(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(r.URL.Path, "/previews")
}

// impatient takes Retry-After, which is at least a second, out of answers: tests look again sooner.
type impatient struct{ http.ResponseWriter }

func (w impatient) WriteHeader(status int) {
	w.Header().Del("Retry-After")
	w.ResponseWriter.WriteHeader(status)
}

// took returns the mutating requests since it was last asked.
func (n *testNode) took() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.mutations
	n.mutations = nil
	return out
}

func (n *testNode) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// deploy runs one deploy of the manifest in dir.
func (n *testNode) deploy(dir string, opt Options) (*Report, error) {
	n.t.Helper()
	m, err := manifest.Load(dir)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	opt.Client = n.client
	return Run(ctx, opt, m)
}

func (n *testNode) mustDeploy(dir string, opt Options) *Report {
	n.t.Helper()
	r, err := n.deploy(dir, opt)
	if err != nil {
		n.t.Fatalf("deploy: %v", err)
	}
	return r
}

// read returns the Resource of a name in the default Space.
func (n *testNode) read(name string) *client.Resource {
	n.t.Helper()
	r, ok, err := n.client.Lookup(n.t.Context(), "default", name)
	if err != nil || !ok {
		n.t.Fatalf("%s: found %t, %v", name, ok, err)
	}
	return r
}

func load(t *testing.T, dir string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
