package sandbox

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
	"edged/sandbox/engine/wasm"
	"edged/sandbox/hostapi/codec"
)

// Sandbox is the room: one compiled engine, and every version that is open. Safe for concurrent use.
type Sandbox struct {
	opt      Options
	engine   *engine.Engine
	turns    *turns        // who runs
	builds   chan struct{} // holds a token per load: they are long and few
	workers  chan struct{} // holds a token per piece of work beside a guest
	bodies   sync.Pool     // *[]byte of bodyBufferBytes: 64 KiB per request with a body would keep the collector busy
	encoders codec.Pool    // of compression streams
	held     held          // by host calls
	compiler *userwasm.Compiler

	baseOnce  sync.Once     // guards the next two
	baseImage *engine.Image // the prelude, evaluated when it is first needed
	baseErr   error

	mu       sync.Mutex            // guards the fields below; taken after no version's lock
	versions map[*Version]struct{} // open ones
	spare    []*guest              // whole, without a version; the least recently used first
	live     int                   // guests that exist
	tight    bool                  // no more are made than can run at once
	closed   bool
}

// New compiles the engine (a fraction of a second, a few milliseconds with a filled CacheDir). Errors: Invalid for bad
// options, Unavailable when this program was built without its engine, Internal otherwise.
func New(opt Options) (*Sandbox, error) {
	if err := opt.fill(); err != nil {
		return nil, fault.Wrap(fault.Invalid, "sandbox.New", err)
	}
	module, manifest, err := wasm.Engine()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "sandbox.New", err)
	}
	s := &Sandbox{
		opt:      opt,
		turns:    newTurns(opt.MaxRunning, opt.MaxBrief),
		builds:   make(chan struct{}, 2),
		workers:  make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		versions: make(map[*Version]struct{}),
		compiler: userwasm.NewCompiler(),
	}
	s.held.init(&s.opt)
	s.bodies.New = func() any { b := make([]byte, bodyBufferBytes); return &b }
	s.engine, err = engine.New(context.Background(), engine.Options{
		Wasm:           module,
		HostEntry:      manifest.HostEntry,
		CacheDir:       opt.CacheDir,
		MaxMemoryBytes: opt.MaxMemoryBytes,
		Hosts:          hostTable(),
		Companion:      userwasm.New,
	})
	if err != nil {
		return nil, err
	}
	if err := s.openStore(); err != nil {
		return nil, errors.Join(err, s.engine.Close())
	}
	opt.Metrics.observe(s)
	return s, nil
}

// Run gives back the memory of sandboxes that have had no work for MaxResident, closes those that had none for MaxIdle, and
// keeps the image store within its size, until ctx is done. Invocations do not need it.
func (s *Sandbox) Run(ctx context.Context) error {
	tick := time.NewTicker(max(s.opt.MaxIdle/4, time.Millisecond))
	defer tick.Stop()
	rest := time.NewTicker(max(s.opt.MaxResident/2, time.Millisecond))
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-tick.C:
			s.trim(now.Add(-s.opt.MaxIdle))
			s.trimStore()
		case now := <-rest.C:
			s.pageOut(now.Add(-s.opt.MaxResident))
		}
	}
}

// Close stops every invocation, waits for it to end, and frees the engine. Versions are of no use any more.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	versions, spare := s.versionsLocked(), s.spare
	s.spare = nil
	s.mu.Unlock()
	for _, g := range spare {
		s.discard(g)
	}
	for _, v := range versions {
		v.retire()
		v.stop()
	}
	for _, v := range versions {
		<-v.empty
		s.forget(v)
	}
	s.baseOnce.Do(func() { s.baseErr = errShutdown })
	if s.baseImage != nil {
		s.baseImage.Close()
	}
	return s.engine.Close()
}

// Instances returns how many sandboxes exist and how many of them have no version. For gauges and benchmarks.
func (s *Sandbox) Instances() (live, spare int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live, len(s.spare)
}

func (s *Sandbox) versionsLocked() []*Version {
	out := make([]*Version, 0, len(s.versions))
	for v := range s.versions {
		out = append(out, v)
	}
	return out
}

// admit makes v known, so that Close finds it.
func (s *Sandbox) admit(v *Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errShutdown
	}
	s.versions[v] = struct{}{}
	return nil
}

// forget drops a version whose invocations have ended. Idempotent.
func (s *Sandbox) forget(v *Version) {
	s.mu.Lock()
	_, known := s.versions[v]
	delete(s.versions, v)
	s.mu.Unlock()
	if known {
		v.image.Close()
		v.library.Close()
	}
}
