package feed

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"edged/control/artifact"
	"edged/control/plan"
)

// node is one follower with all that hangs on it, that can be stopped and started again on its disk.
type node struct {
	t         testing.TB
	net       *fabric
	name, dir string
	upstreams func() []Upstream
	filter    func(member string) *Filter

	files *artifact.Store
	store *plan.Store
	srv   *Server
	f     *Follower
	stop  func()

	mu    sync.Mutex
	plan  *plan.Plan // as Use was told
	epoch uint64
	sure  int // calls of Confirmed
}

func upstream(name string, voter bool) Upstream {
	return Upstream{Member: name, URL: "http://" + name + ":1", Voter: voter}
}

func fixed(us ...Upstream) func() []Upstream { return func() []Upstream { return us } }

func newNode(t testing.TB, net *fabric, name string, upstreams func() []Upstream) *node {
	return &node{t: t, net: net, name: name, dir: t.TempDir(), upstreams: upstreams, plan: plan.New()}
}

// start opens the node's files and begins to follow.
func (n *node) start() {
	n.t.Helper()
	n.files, n.store = openFiles(n.t, filepath.Join(n.dir, "files")), openPlan(n.t, filepath.Join(n.dir, "plan"))
	n.srv = newServer(n.t, ServerOptions{Filter: n.filter})
	client := n.net.client(n.name)
	fetcher, err := NewFetcher(FetcherOptions{Client: client, Files: n.files, Members: n.upstreams})
	if err != nil {
		n.t.Fatal(err)
	}
	n.f, err = NewFollower(FollowerOptions{Client: client, Upstreams: n.upstreams, Store: n.store, Files: n.files, Fetcher: fetcher, Server: n.srv, Use: n.use, Confirmed: n.confirmed})
	if err != nil {
		n.t.Fatal(err)
	}
	last := plan.New()
	last.Apply(n.f.LastPlan())
	n.mu.Lock()
	if n.f.mark.Epoch < n.epoch || n.f.mark.Epoch == n.epoch && last.Index < n.plan.Index {
		n.t.Errorf("%s starts from epoch %d index %d, it served %d, %d", n.name, n.f.mark.Epoch, last.Index, n.epoch, n.plan.Index)
	}
	n.plan, n.epoch = last, n.f.mark.Epoch
	n.mu.Unlock()
	n.checkFiles()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = n.f.Run(ctx) })
	mux := http.NewServeMux()
	mux.Handle("/plan/v1/", n.srv.Handler())
	mux.Handle("/blob/v1/", Blobs(n.files))
	unserve := n.net.serve(n.name, mux)
	n.stop = func() {
		cancel()
		unserve()
		run.Wait()
		client.CloseIdleConnections()
		if err := n.store.Close(); err != nil {
			n.t.Error(err)
		}
		if err := n.files.Close(); err != nil {
			n.t.Error(err)
		}
		n.stop = nil
	}
}

// use is what a node does with a delta, and the oracle: within an epoch the index never falls, no older epoch comes after a newer one,
// and the files of everything that is deployed are here.
func (n *node) use(d *plan.Delta) {
	n.mu.Lock()
	epoch := n.f.mark.Epoch // Use is called by the goroutine that owns it
	if epoch < n.epoch || epoch == n.epoch && d.Index < n.plan.Index {
		n.t.Errorf("%s takes epoch %d index %d into use after %d, %d", n.name, epoch, d.Index, n.epoch, n.plan.Index)
	}
	n.epoch = epoch
	n.plan.Apply(d)
	n.mu.Unlock()
	n.checkFiles()
}

func (n *node) confirmed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sure++
}

func (n *node) checkFiles() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan.Index%4 == 0 { // what is not pinned goes; files have the time of the machine, not of the bubble
		if _, err := n.files.Sweep(context.Background(), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			n.t.Error(err)
		}
	}
	for _, w := range n.plan.Workers {
		for _, f := range filesOf(n.plan, w.UID) {
			if !n.files.Has(f.digest, f.size) {
				n.t.Errorf("%s serves index %d without a file of worker %s", n.name, n.plan.Index, w.UID)
			}
		}
	}
}

// equals reports whether the node serves want, as far as a filter lets it through.
func (n *node) equals(want *plan.Plan, f *Filter) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	expect := plan.New()
	d := want.Delta()
	if f != nil {
		d = f.pass(d)
	}
	expect.Apply(d)
	got := *n.plan
	got.Index = expect.Index // a node may be ahead by what changed nothing
	if n.plan.Index > expect.Index || !reflect.DeepEqual(&got, expect) {
		return fmt.Errorf("%s serves another plan than the source: index %d, want %d: %+v", n.name, n.plan.Index, expect.Index, got.To(expect))
	}
	return nil
}

// index returns the index that is in use.
func (n *node) index() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.plan.Index
}

// handler is what a voter serves.
func handler(s *Server, files *artifact.Store) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/plan/v1/", s.Handler())
	mux.Handle("/blob/v1/", Blobs(files))
	return mux
}

func publish(t testing.TB, s *Server, epoch uint64, d *plan.Delta) {
	t.Helper()
	if err := s.Publish(epoch, false, d); err != nil {
		t.Fatal(err)
	}
}
