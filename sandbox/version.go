package sandbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
	"edged/sandbox/modgraph"
)

// Version is a worker version that can serve: an image, and the sandboxes that hold it. Safe for concurrent use.
type Version struct {
	box     *Sandbox
	spec    Spec
	image   *engine.Image
	entries entries           // constant addresses, the same in every sandbox of the image
	loader  engine.Loader     // finds modules for import() at run time
	library *userwasm.Library // its WebAssembly modules, compiled
	maps    maps              // for the stacks in its log
	rate    rate              // of its log
	env     []byte            // JSON of variables and secrets, nil if there are none
	bound   []byte            // JSON of [kind, name] of each binding, nil if there are none
	serves  bool              // fetch is among the handlers
	counts  *workerMetrics    // of its worker
	waits   []*waitMetrics    // of its bindings and, last, of fetch
	free    int64             // memory that a pristine sandbox has never used
	silent  bool              // logs nothing (Inspect)
	usual   atomic.Int64      // nanoseconds of CPU that an invocation takes (learn)

	queues queues // for a slot; the lock of the box's turns guards them

	kill  chan struct{} // closed when invocations must end now
	empty chan struct{} // closed when the version is retired and its last invocation has ended

	mu     sync.Mutex // guards the fields below; never held while a guest runs
	ready  []*guest   // the last one used is the warmest
	first  *guest     // guests at work
	active int        // invocations that were admitted and have not ended: those guests, and what waits for a slot
	killed bool

	retired atomic.Bool // takes no invocation any more; changed under mu, read anywhere
}

// Open builds the version's image, or loads the stored one, and returns the version ready to serve. The spec must not be
// changed afterwards. Errors: as of Inspect, Canceled or Timeout when ctx is done, ErrDraining after Close.
func (s *Sandbox) Open(ctx context.Context, spec Spec) (*Version, error) {
	if spec.UID == "" {
		return nil, fault.New(fault.Invalid, "sandbox.Open", "a version has a UID")
	}
	graph, err := modgraph.New(spec.Graph.Entrypoint, spec.Graph.Modules)
	if err != nil {
		return nil, err
	}
	env, bound, err := envOf(&spec)
	if err != nil {
		return nil, err
	}
	library := userwasm.NewLibrary(s.compiler)
	img, err := s.image(ctx, &spec, graph, library)
	if err != nil {
		library.Close()
		return nil, err
	}
	v := &Version{box: s, spec: spec, image: img, entries: img.Roots(), loader: loader{graph, img.Roots()[entryImported]}, library: library,
		env: env, bound: bound, maps: maps{graph: graph},
		serves: slices.Contains(spec.Handlers, "fetch"), counts: s.opt.Metrics.workers.Of(spec.Worker), kill: make(chan struct{}), empty: make(chan struct{}), free: img.Free()}
	for i := range spec.Bindings {
		v.waits = append(v.waits, v.counts.waits[waitKind(spec.Bindings[i].Kind())])
	}
	v.waits = append(v.waits, v.counts.waits[kindOutbound])
	if err := s.admit(v); err != nil {
		img.Close()
		library.Close()
		return nil, err
	}
	return v, nil
}

// Pool returns how many pristine sandboxes of the version wait for an invocation, and how many invocations go on, those included that
// wait for a slot.
func (v *Version) Pool() (ready, atWork int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.ready), v.active
}

// Retire ends the version: new invocations are refused from now on with event.ErrNotServing, running ones may go on until ctx is done and are
// stopped then. It returns when every invocation has physically ended, nil also if some had to be stopped. Idempotent.
func (v *Version) Retire(ctx context.Context) error {
	v.retire()
	select {
	case <-v.empty:
	case <-ctx.Done():
		v.stop()
		<-v.empty // a stopped invocation ends within a poll and the engine's grace
	}
	v.box.forget(v)
	return nil
}

// retire refuses new invocations and gives up the ready sandboxes.
func (v *Version) retire() {
	v.mu.Lock()
	if v.retired.Load() {
		v.mu.Unlock()
		return
	}
	v.retired.Store(true)
	ready := v.ready
	v.ready = nil
	if v.active == 0 {
		close(v.empty)
	}
	v.mu.Unlock()
	for _, g := range ready {
		v.box.giveSpare(g)
	}
}

// stop ends the invocations that are at work, whatever they do.
func (v *Version) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.killed {
		v.killed = true
		close(v.kill)
	}
	for g := v.first; g != nil; g = g.next {
		g.in.Interrupt(errShutdown)
	}
}
