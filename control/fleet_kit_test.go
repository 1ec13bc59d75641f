package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"edged/control/artifact"
	"edged/control/form"
)

// beat is the heartbeat of voters in tests: long enough for a busy machine, short enough to see elections.
const beat = 300 * time.Millisecond

// fleet is a few voters of one log over wires that tests can cut.
type fleet struct {
	t     testing.TB
	wires *wires
	token string
	key   []byte // node key file of all
	nodes map[string]*member
	names []string

	beat   time.Duration                 // of members that are added
	change func(name string, o *Options) // alters options; may be nil
}

// member is a node of a fleet that can be stopped and started again.
type member struct {
	*node
	name   string
	fakes  fakes
	joined bool
	beat   time.Duration
	up     bool
	gate   sync.RWMutex // held for reading by clients beside the test while they ask it, for writing while it starts or stops
}

func newFleet(t testing.TB, change func(string, *Options)) *fleet {
	return &fleet{t: t, wires: newWires(), nodes: map[string]*member{}, beat: beat, change: change}
}

// startFleet founds a log on n-1 and makes the others voters of it.
func startFleet(t testing.TB, voters int, change func(string, *Options)) *fleet {
	t.Helper()
	f := newFleet(t, change)
	f.found(t.TempDir())
	for i := 2; i <= voters; i++ {
		f.grow(fmt.Sprintf("n-%d", i))
	}
	return f
}

func (f *fleet) found(dir string) *member {
	f.t.Helper()
	m := f.add("n-1", dir, false)
	f.start(m)
	f.poll(func() bool { return f.leads(m) })
	raw, err := os.ReadFile(filepath.Join(m.dir, tokenFile))
	if err != nil {
		f.t.Fatal(err)
	}
	f.token = strings.TrimSpace(string(raw))
	m.token = f.token
	if f.key, err = os.ReadFile(filepath.Join(m.dir, keyFile)); err != nil {
		f.t.Fatal(err)
	}
	return m
}

func (f *fleet) add(name, dir string, joined bool) *member {
	m := &member{node: &node{t: f.t, dir: dir}, name: name, joined: joined, fakes: newFakes(), beat: f.beat}
	f.nodes[name] = m
	f.names = append(f.names, name)
	return m
}

// grow starts a member and makes it a voter.
func (f *fleet) grow(name string) *member {
	f.t.Helper()
	m := f.join(name)
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := f.leader().c.AddVoter(ctx, name)
		if err == nil {
			break
		}
		if !pause(ctx, 10*time.Millisecond) {
			f.t.Fatal(err)
		}
	}
	f.poll(m.c.Ready)
	return m
}

// join starts a member that is no voter yet.
func (f *fleet) join(name string) *member {
	f.t.Helper()
	m := f.add(name, f.t.TempDir(), true)
	if err := os.WriteFile(filepath.Join(m.dir, keyFile), f.key, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.start(m)
	return m
}

// start runs a member, also again.
func (f *fleet) start(m *member) {
	f.t.Helper()
	raftListener, httpListener := f.wires.listen(m.name, "raft"), f.wires.listen(m.name, "http")
	client := f.wires.client(m.name)
	opt := Options{
		Dir: m.dir, NodeID: m.name, ControlOrigin: origin, EndpointDomain: "edge.localhost", Zones: []Zone{{Name: "*"}}, SweepEvery: time.Hour,
		Inspect: exportsByText, OnPlan: m.onPlan,
		Fleet: &FleetOptions{
			Joined: m.joined, Listener: raftListener, Client: client, heartbeat: m.beat,
			Dial: func(to string, timeout time.Duration) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				return f.wires.dial(ctx, m.name, to, "raft")
			},
			Caller:  func(r *http.Request) string { return r.Header.Get(callerHeader) },
			Serving: func() []string { return slices.Clone(f.names) },
			Origins: func() []string { return []string{origin} },
		},
	}
	if m.joined { // what was uploaded by way of the founder's origin is this one's too
		opt.ControlOrigin = "https://" + m.name + ".example.test"
	}
	m.fakes.into(&opt)
	if f.change != nil {
		f.change(m.name, &opt)
	}
	c, err := open(opt, form.Builtin())
	if err != nil {
		f.t.Fatal(err)
	}
	m.gate.Lock()
	defer m.gate.Unlock()
	m.mu.Lock()
	m.c, m.booted, m.plan, m.token = c, copyOf(c.last), copyOf(c.last), f.token
	m.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle(peerRoot, c.PeerHandler())
	mux.HandleFunc("/blob/v1/", func(w http.ResponseWriter, r *http.Request) { serveBlob(c, w, r) })
	server := &http.Server{Handler: mux}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { _ = server.Serve(httpListener); done <- nil }() // ends with Close
	go func() { done <- c.Run(ctx) }()                          // ends with ctx; stop waits
	m.up = true
	m.stop = sync.OnceFunc(func() {
		m.gate.Lock()
		defer m.gate.Unlock()
		m.up = false
		cancel()
		_ = server.Close()
		for range 2 {
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				f.t.Errorf("%s: %v", m.name, err)
			}
		}
		if err := c.Close(); err != nil {
			f.t.Error(err)
		}
		client.CloseIdleConnections()
		client.Transport.(plainly).CloseIdleConnections()
	})
	f.t.Cleanup(m.stop)
}

func serveBlob(c *Control, w http.ResponseWriter, r *http.Request) {
	d, ok := artifact.ParseDigest(strings.TrimPrefix(r.URL.Path, "/blob/v1/"))
	blob, err := c.Artifacts().Open(d)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	defer blob.Close()
	http.ServeContent(w, r, "", time.Time{}, blob)
}

func (f *fleet) poll(done func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	for !done() {
		if !pause(ctx, 2*time.Millisecond) {
			for _, name := range f.names {
				if m := f.nodes[name]; m.up {
					f.t.Logf("%s: %v leads in term %d, knows %q, applied %d, ready %v", name, m.c.raft.Load(), m.c.leading.Load(), m.c.leader(), m.c.machine.applied.at(), m.c.Ready())
				}
			}
			f.t.Fatal("what was waited for does not come")
		}
	}
}

func (f *fleet) leads(m *member) bool {
	return m.up && m.c.leading.Load() != 0 && m.c.raft.Load() != nil && m.c.raft.Load().State() == raft.Leader
}

// leader waits until one member of those given, or of all, leads and can prove it.
func (f *fleet) leader(of ...*member) (leader *member) {
	f.t.Helper()
	f.poll(func() bool {
		for _, name := range f.names {
			m := f.nodes[name]
			if (len(of) == 0 || slices.Contains(of, m)) && f.leads(m) && m.c.confirm(f.t.Context()) == nil {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

// others returns all members but one, in the order in which they came.
func (f *fleet) others(but *member) (out []*member) {
	for _, name := range f.names {
		if f.nodes[name] != but {
			out = append(out, f.nodes[name])
		}
	}
	return out
}

// settled asks until the answer is no 503, with the same key: what a client does whose leader went away.
func (m *member) settled(do func() answer) answer {
	m.t.Helper()
	var a answer
	m.poll(func() bool { a = do(); return a.status != http.StatusServiceUnavailable })
	return a
}

// sure creates a Resource, whatever happens meanwhile, and returns its UID.
func (m *member) sure(formURL, name string, s any) string {
	m.t.Helper()
	key := freshKey()
	a := m.settled(func() answer {
		return m.do("POST", root+"/resources", spec{"form": formURL, "space": "default", "name": name, "spec": s}, "Idempotency-Key", key)
	})
	if a.status != 200 && a.status != 202 {
		m.t.Fatalf("not accepted: %d %s", a.status, a.body)
	}
	return m.end(a)
}

// end waits for the Operation of an accepted mutation, whatever happens meanwhile, and returns the UID of its Resource.
func (m *member) end(a answer) string {
	m.t.Helper()
	id := a.text(m.t, "id")
	var op answer
	m.poll(func() bool {
		op = m.do("GET", root+"/operations/"+id, nil)
		return op.status == 200 && slices.Contains([]string{"succeeded", "failed"}, op.text(m.t, "status"))
	})
	if op.text(m.t, "status") != "succeeded" {
		m.t.Fatalf("operation ended %s", op.body)
	}
	return op.text(m.t, "resourceUid")
}
