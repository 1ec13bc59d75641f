package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
	"edged/sandbox/event"
	"edged/sandbox/modgraph"
	"edged/sandbox/prelude"
)

// The guest's entries, in the order in which 90-dispatch.js lists them.
const (
	entryAdopt = iota
	entrySeal
	entryPrepare
	entryEnv
	entryScheduled
	entryQueue
	entryFollow
	entryFinish
	entryWaits
	entryEnd
	entrySettle
	entryGone
	entryTimer
	entryPumpRead
	entryPumpTake
	entryPumpCancel
	entryDescribe
	entryRejection
	entryImported
	numFunctions
	entryResponse = iota - 1 // no function, but the sample of a Response
	entrySamples             // it and others, to be kept
	numEntries
)

// What a version's image has besides.
const (
	entryHandler = numEntries + iota // fetch, or undefined
	entryTarget                      // its this
	entryReady                       // what holds all that the first invocation begins with
	entryParts                       // the parts of it, as ready numbers them
)

// entries are functions of the prelude. They mean the same in every clone of an image.
type entries []engine.Value

const opLoad = "sandbox.load"

// heapReserve is what the JavaScript heap leaves of a sandbox's memory to the engine: the stack and its own data.
const heapReserve = 2 << 20

// preludeCPU bounds a loop that is a bug of ours.
const preludeCPU = time.Minute

// reuseGCBytes is the heap at which a sandbox that is reused first collects cycles. One that is reset never does.
const reuseGCBytes = 8 << 20

// Inspect evaluates a bundle's main module in a limited sandbox of its own, without env, bindings or network, keeps
// nothing of it, and returns which handlers it exports (of fetch, scheduled, queue, in this order). When they are not
// the declared ones, exported is returned along with ErrHandler. Errors, in this precedence: unsupported_media_type and
// module_not_found for the bundle itself, then what loading meets first (module_not_found, unsupported_media_type,
// module_syntax_error, module_evaluation_error or a limit), then handler_not_exported. Ends by the limits of one
// invocation, or when ctx is done.
func (s *Sandbox) Inspect(ctx context.Context, graph Graph, declared []string) (exported []string, err error) {
	g, err := modgraph.New(graph.Entrypoint, graph.Modules)
	if err != nil {
		return nil, err
	}
	library := userwasm.NewLibrary(s.compiler)
	defer library.Close()
	b, err := s.load(ctx, Spec{Handlers: declared}, g, library)
	if b != nil {
		exported = b.exported
		b.close()
	}
	return exported, err
}

// loaded is an instance whose main module was evaluated.
type loaded struct {
	guest    *guest
	entries  entries
	exported []string
}

func (b *loaded) close() {
	b.guest.leave()
	b.guest.endWork()
	b.guest.in.Close()
}

// load evaluates a graph. It returns the instance, entered, also along with an ErrHandler.
func (s *Sandbox) load(ctx context.Context, spec Spec, graph *modgraph.Graph, library *userwasm.Library) (*loaded, error) {
	select {
	case s.builds <- struct{}{}:
		defer func() { <-s.builds }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.CodeOf(ctx.Err()), opLoad, context.Cause(ctx))
	}
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	in, err := s.engine.Clone(base)
	if err != nil {
		return nil, err
	}
	// A version of its own: stopping the load must not stop the version that it is for.
	v := &Version{box: s, spec: spec, entries: base.Roots(), library: library,
		loader: loader{graph, base.Roots()[entryImported]}, maps: maps{graph: graph}, silent: spec.UID == "", kill: make(chan struct{})}
	g := newGuest(s, in, event.Cold)
	g.version = v
	b := &loaded{guest: g, entries: v.entries}
	v.first = g // where stop finds it
	defer context.AfterFunc(ctx, v.stop)()
	if err = g.evaluate(ctx, graph); err == nil {
		err = b.adopt(spec.Handlers)
	}
	if err != nil && !errors.Is(err, modgraph.ErrHandler) {
		b.close()
		if ctx.Err() != nil {
			err = fault.Wrap(fault.CodeOf(ctx.Err()), opLoad, context.Cause(ctx))
		}
		return nil, err
	}
	return b, err
}

// evaluate runs the main module to the end of its top-level awaits. Timers run meanwhile.
func (g *guest) evaluate(ctx context.Context, graph *modgraph.Graph) (err error) {
	var more bool
	defer g.recoverTo(&more, &err)
	src, err := graph.Load(graph.Entrypoint())
	if err != nil {
		return err
	}
	g.begin(ctx, time.Now().Add(g.box.opt.MaxWall))
	g.gone = nil // stop ends a load
	if err := g.enter(); err != nil {
		return err
	}
	mod, err := g.in.EvalModule(graph.Entrypoint(), src)
	if err != nil {
		return g.loadError(err)
	}
	g.promise, g.followed = mod.Promise, true
	if _, err := g.await(); err != nil {
		return g.loadError(err)
	}
	g.namespace = mod.Namespace
	return nil
}

// loadError names what kept a module from being loaded.
func (g *guest) loadError(err error) error {
	var script *engine.ScriptError
	switch {
	case g.in.Err() != nil:
		return limitError(g.in.Err())
	case errors.Is(err, engine.ErrSyntax) && errors.As(err, &script):
		return modgraph.ErrSyntax.New(opLoad, g.oneLine(script))
	case errors.Is(err, errUncaught) && g.thrown != nil:
		return modgraph.ErrEvaluation.New(opLoad, g.oneLine(g.thrown))
	case errors.As(err, &script):
		return modgraph.ErrEvaluation.New(opLoad, g.oneLine(script))
	case errors.Is(err, errStuck):
		return modgraph.ErrEvaluation.New(opLoad, "a top-level await waits for something that can never happen")
	}
	return limitError(err)
}

// limitError says that it was the load that met a limit.
func limitError(err error) error {
	for _, n := range []*fault.Named{event.ErrCPU, event.ErrWall, event.ErrMemory} {
		if errors.Is(err, n) {
			return n.New(opLoad, "the modules did not finish loading within the limit")
		}
	}
	return err
}

// oneLine is an error and where it happened, for the author of the bundle.
func (g *guest) oneLine(e *engine.ScriptError) string {
	s := strings.TrimPrefix(e.Error(), "uncaught ")
	if at, _, _ := strings.Cut(strings.TrimSpace(g.version.maps.rewrite(e.Stack)), "\n"); at != "" {
		s += " (" + strings.TrimSpace(at) + ")"
	}
	const most = 1024
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// adopt finds the handlers in the default export and holds them against the declared ones.
func (b *loaded) adopt(declared []string) error {
	g := b.guest
	if err := g.enter(); err != nil {
		return limitError(err)
	}
	v, err := g.in.Call(b.entries[entryAdopt], engine.Undefined, g.namespace)
	if err != nil {
		return g.loadError(err)
	}
	names, ok := g.in.String(v)
	if !ok {
		return modgraph.ErrHandler.New(opLoad, "the default export of the main module is missing or is not a plain object")
	}
	if names != "" {
		b.exported = strings.Split(names, ",")
	}
	for _, h := range declared {
		if !slices.Contains(b.exported, h) {
			return modgraph.ErrHandler.Newf(opLoad, "the handler %q is declared and is not a function of the default export", h)
		}
	}
	for _, h := range b.exported {
		if !slices.Contains(declared, h) {
			return modgraph.ErrHandler.Newf(opLoad, "the default export has a handler %q that is not declared", h)
		}
	}
	return nil
}

// build makes the image of a version from its modules.
func (s *Sandbox) build(ctx context.Context, spec Spec, graph *modgraph.Graph, library *userwasm.Library) (*engine.Image, error) {
	b, err := s.load(ctx, spec, graph, library)
	if b != nil {
		defer b.close()
	}
	if err != nil {
		return nil, err
	}
	g := b.guest
	g.in.Arm(s.opt.MaxCPU) // collecting what the modules left must not fail for what they used up
	g.in.Resume()
	g.in.Free(g.promise)
	g.in.Free(g.namespace)
	g.in.Pack()
	var rooms [numRooms]engine.Value
	for i := range rooms {
		rooms[i] = newRoom(g.in, i)
	}
	list, err := g.in.Call(b.entries[entrySeal], engine.Undefined, rooms[:]...)
	if err != nil {
		return nil, g.loadError(err)
	}
	roots := append(slices.Clip(b.entries), sealed(g.in, list, rooms)...)
	g.in.Free(list)
	if err := g.jobs(); err != nil {
		return nil, g.loadError(err)
	}
	g.in.Arm(s.opt.MaxCPU) // the user's code is over; what follows is ours and not to fail for what that used up
	return g.in.Snapshot(s.snapshotOptions(roots))
}

func (s *Sandbox) snapshotOptions(roots []engine.Value) engine.SnapshotOptions {
	opt := engine.SnapshotOptions{MemoryBytes: s.opt.MaxMemoryBytes, HeapLimit: s.opt.MaxMemoryBytes - heapReserve, Roots: roots}
	if s.opt.Isolation == IsolateWorker {
		opt.GCThreshold = reuseGCBytes
	}
	return opt
}

// base returns the image with which every load begins: the prelude was evaluated in it, and nothing else.
func (s *Sandbox) base() (*engine.Image, error) {
	s.baseOnce.Do(func() { s.baseImage, s.baseErr = s.makeBase() })
	return s.baseImage, s.baseErr
}

// compilePrelude compiles in an instance of its own, which takes the garbage with it.
func (s *Sandbox) compilePrelude() (engine.Bytecode, error) {
	in, err := s.engine.NewInstance()
	if err != nil {
		return engine.Bytecode{}, err
	}
	defer in.Close()
	in.Arm(preludeCPU)
	return in.Compile([]byte(prelude.Source()), "prelude.js")
}

func (s *Sandbox) makeBase() (*engine.Image, error) {
	code, err := s.compilePrelude()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, opLoad, fmt.Errorf("compile the prelude: %w", err))
	}
	in, err := s.engine.NewInstance()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	v := &Version{box: s, silent: true, library: userwasm.NewLibrary(s.compiler), kill: make(chan struct{})}
	g := newGuest(s, in, event.Cold)
	g.version = v
	in.Arm(preludeCPU)
	fn, err := in.Run(code)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, opLoad, fmt.Errorf("prelude: %w", err))
	}
	list, err := in.Call(fn, engine.Undefined, in.Host())
	if err != nil {
		return nil, fault.Wrap(fault.Internal, opLoad, fmt.Errorf("prelude: %w", err))
	}
	roots := make([]engine.Value, numEntries)
	for i := range roots {
		if roots[i] = in.GetIndex(list, uint32(i)); in.IsFunction(roots[i]) != (i < numFunctions) {
			return nil, fault.Newf(fault.Internal, opLoad, "prelude: entry %d is not what it should be", i)
		}
	}
	in.Free(fn)
	in.Free(list)
	opt := s.snapshotOptions(roots)
	opt.MemoryBytes = 0
	return in.Snapshot(opt)
}
