package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/control/artifact"
	"edged/control/plan"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(beatReaders); url != "" {
		readBeats(url)
		return
	}
	testkit.Main(m)
}

// fabric is a network in memory: every node has one address, its name, and links between two can be cut.
type fabric struct {
	mu     sync.Mutex
	listen map[string]*port
	cut    map[[2]string]bool
	silent map[[2]string]bool       // what is sent there is lost, and nobody learns of it
	delay  map[string]time.Duration // before each piece that a node sends
	conns  map[*wire]struct{}
	dials  []time.Time
}

type port struct {
	name string
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

// wire is one end of a connection, known by the name of the other node.
type wire struct {
	net.Conn
	f        *fabric
	from, to string // who dialled whom
	peer     string
}

type name string

func (n name) Network() string { return "mem" }
func (n name) String() string  { return string(n) }

func (w *wire) RemoteAddr() net.Addr { return name(w.peer) }

func (w *wire) Write(b []byte) (int, error) {
	w.f.mu.Lock()
	silent, delay := w.f.silent[link(w.from, w.to)], time.Duration(0)
	if w.peer == w.from {
		delay = w.f.delay[w.to]
	}
	w.f.mu.Unlock()
	if silent {
		return len(b), nil
	}
	if delay > 0 {
		<-time.After(delay) // in virtual time
	}
	return w.Conn.Write(b)
}

func newFabric() *fabric {
	return &fabric{listen: map[string]*port{}, cut: map[[2]string]bool{}, silent: map[[2]string]bool{}, delay: map[string]time.Duration{}, conns: map[*wire]struct{}{}}
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.in:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *port) Addr() net.Addr { return name(p.name) }

func link(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

func (f *fabric) dial(ctx context.Context, from, to string) (net.Conn, error) {
	f.mu.Lock()
	p, cut, silent := f.listen[to], f.cut[link(from, to)], f.silent[link(from, to)]
	f.dials = append(f.dials, time.Now())
	f.mu.Unlock()
	if p == nil || cut {
		return nil, errors.New("no way")
	}
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a, b := net.Pipe()
	w := &wire{Conn: a, f: f, from: from, to: to, peer: to}
	f.mu.Lock()
	f.conns[w] = struct{}{}
	f.mu.Unlock()
	select {
	case p.in <- &wire{Conn: b, f: f, from: from, to: to, peer: from}:
		return w, nil
	case <-p.done:
	case <-ctx.Done():
	}
	w.Close()
	return nil, errors.New("no answer")
}

func (w *wire) Close() error {
	w.f.mu.Lock()
	delete(w.f.conns, w)
	w.f.mu.Unlock()
	return w.Conn.Close()
}

// setCut cuts or mends all links for which pick says so; what runs over one that is cut ends.
func (f *fabric) setCut(cut bool, links ...[2]string) {
	f.mu.Lock()
	var broken []*wire
	for _, l := range links {
		f.cut[l] = cut
	}
	for w := range f.conns {
		if f.cut[link(w.from, w.to)] {
			broken = append(broken, w)
		}
	}
	f.mu.Unlock()
	for _, w := range broken {
		w.Close()
	}
}

// setSilent loses what is sent over links from now on.
func (f *fabric) setSilent(links ...[2]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range links {
		f.silent[l] = true
	}
}

func (f *fabric) setDelay(node string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay[node] = d
}

// serve listens for a node; stop ends it with all its connections.
func (f *fabric) serve(node string, h http.Handler) (stop func()) {
	p := &port{name: node, in: make(chan net.Conn), done: make(chan struct{})}
	f.mu.Lock()
	f.listen[node] = p
	f.mu.Unlock()
	s := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(p) }() // ends with stop
	return func() {
		f.mu.Lock()
		delete(f.listen, node)
		f.mu.Unlock()
		_ = s.Close()
		<-ended
	}
}

func (f *fabric) client(node string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		to, _, _ := net.SplitHostPort(addr)
		return f.dial(ctx, node, to)
	}}}
}

func caller(r *http.Request) string { return r.RemoteAddr }

// openFiles opens a store whose index is in memory: only the files are on the disk.
func openFiles(t testing.TB, dir string) *artifact.Store {
	t.Helper()
	s, err := artifact.Open(artifact.Options{Dir: dir, FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openPlan(t testing.TB, dir string) *plan.Store {
	t.Helper()
	s, err := plan.OpenStore(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newServer(t testing.TB, opt ServerOptions) *Server {
	t.Helper()
	if opt.Caller == nil {
		opt.Caller = caller
	}
	s, err := NewServer(opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// source makes plans at random, with real files, as a control state would.
type source struct {
	rnd   *rand.Rand
	files *artifact.Store
	plan  *plan.Plan
	n     int
}

func (s *source) file(t testing.TB, size int) plan.File {
	t.Helper()
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(s.rnd.Uint32())
	}
	sum := sha256.Sum256(body)
	if err := s.files.Take(t.Context(), sum, int64(size), bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	return plan.File{Path: "main.js", MediaType: "text/javascript", SHA256: hex.EncodeToString(sum[:]), Size: int64(size)}
}

func (s *source) next(kind string) string { s.n++; return fmt.Sprintf("%s%d", kind, s.n) }

// deploy gives a worker a new version.
func (s *source) deploy(t testing.TB, worker string) *plan.Delta {
	t.Helper()
	b := &plan.Bundle{Resource: s.next("b"), SHA256: "m", Entrypoint: "main.js", Files: []plan.File{s.file(t, 100+s.rnd.IntN(2000))}}
	v := &plan.Version{UID: s.next("v"), Worker: worker, Ready: true, Bundle: b.Resource}
	d := &plan.Delta{}
	d.Bundles.Put, d.Versions.Put = []*plan.Bundle{b}, []*plan.Version{v}
	d.Workers.Put = []*plan.Worker{{UID: worker, Name: worker, Weights: []plan.Weight{{Version: v.UID, Weight: 10000}}}}
	return d
}

// change returns the next change of the plan and applies it.
func (s *source) change(t testing.TB) *plan.Delta {
	t.Helper()
	var workers []string
	for i := range 12 {
		if uid := fmt.Sprintf("w%d", i); s.plan.Workers[uid] != nil {
			workers = append(workers, uid)
		}
	}
	d := &plan.Delta{}
	switch pick := s.rnd.IntN(6); {
	case pick < 3 || len(workers) == 0:
		uid := fmt.Sprintf("w%d", s.rnd.IntN(12))
		d = s.deploy(t, uid)
		d.Hosts.Put = []*plan.Host{{Name: uid + ".test", Worker: uid, Resource: s.next("h")}}
	case pick == 3:
		uid := workers[s.rnd.IntN(len(workers))]
		d.Workers.Gone, d.Hosts.Gone = []string{uid}, []string{uid + ".test"}
		for _, w := range s.plan.Workers[uid].Weights {
			d.Versions.Gone = append(d.Versions.Gone, w.Version)
			d.Bundles.Gone = append(d.Bundles.Gone, s.plan.Versions[w.Version].Bundle)
		}
	default:
		uid := fmt.Sprintf("c%d", s.rnd.IntN(4))
		if s.plan.Crons[uid] != nil && pick == 4 {
			d.Crons.Gone, d.Consumers.Gone = []string{uid}, []string{uid}
		} else {
			gen := uint64(s.rnd.Uint32())
			d.Crons.Put, d.Consumers.Put = []*plan.Cron{{UID: uid, Generation: gen}}, []*plan.Consumer{{UID: uid, Generation: gen}}
		}
	}
	d.Index = s.plan.Index + 1 + uint64(s.rnd.IntN(3))
	s.plan.Apply(d)
	return d
}

// newSource makes a source with files of its own below a directory of the test.
func newSource(t testing.TB, rnd *rand.Rand) *source {
	files := openFiles(t, filepath.Join(t.TempDir(), "files"))
	t.Cleanup(func() { _ = files.Close() })
	return &source{rnd: rnd, files: files, plan: plan.New()}
}
