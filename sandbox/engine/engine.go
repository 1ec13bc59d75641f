package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
)

// HostFunc is a Go function that JavaScript calls. args are borrowed: whoever wants to keep one dups it. The result is
// owned by the guest. To throw, return what one of the Throw methods gave. It runs on the goroutine that runs the
// guest, may call back into it, and may unwind by panic when the guest is stopped inside such a call: locks and leases
// held across calls into the guest need a defer. Missing arguments are undefined: len(args) is at least Argc.
type HostFunc func(in *Instance, args []Value) Value

// Host is one member of the object `host` that the prelude receives. Its position in Options.Hosts is its number in
// stored images: the list is append-only.
type Host struct {
	Name string
	Argc int // declared number of arguments, at most 16
	Fn   HostFunc
}

// Options configure an Engine.
type Options struct {
	Wasm           []byte        // required: the engine's module, as `make engine` writes it
	HostEntry      uint32        // required: table index of the fast host entry, from the engine's manifest
	CacheDir       string        // for compiled code; created with mode 0700. "" keeps none
	MaxMemoryBytes int64         // upper bound of one guest memory; 0 means 192 MiB, at most 4 GiB - 64 KiB
	StackBytes     int64         // JavaScript stack; 0 means 512 KiB, which is also the most
	Grace          time.Duration // from the soft stop of a guest to the hard one; 0 means 20 ms
	Hosts          []Host        // host functions, append-only
	Reset          ResetMethod   // 0 means the best that this machine has

	// Companion makes what runs beside an instance, when that is made; nil: nothing does.
	Companion func(in *Instance) Companion
}

const (
	pageBytes       = 64 << 10 // of WebAssembly
	maxMemoryPages  = 65535
	maxStackBytes   = 512 << 10
	maxHostArgs     = 16
	defaultMemory   = 192 << 20
	defaultGrace    = 20 * time.Millisecond
	defaultCPU      = time.Second // budget of a guest that nobody armed
	moduleFeatures  = api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst
	privateDirMode  = 0o700
	otherPermission = 0o077
)

// Engine is the compiled JavaScript engine. It is safe for concurrent use.
type Engine struct {
	opt      Options
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	cache    wazero.CompilationCache
	digest   [sha256.Size]byte // of Options.Wasm and the names of the host functions: what an Image depends on
	pages    uint32
	layout   stringLayout
	arrays   bool // arrays are laid out as array.go says
	objects  objectLayout
	molds    bool // a mold tells all that can happen to a value
	inside   runtimeLayout
	arenas   bool // blocks of guest memory are laid out as arena.go says
	reset    ResetMethod
	table    pageTable
}

// New compiles the engine and runs it once, so that later instances may be made from any goroutine. Errors: Invalid for
// bad options or a module without the expected exports, Internal otherwise.
func New(ctx context.Context, opt Options) (*Engine, error) {
	if err := opt.fill(); err != nil {
		return nil, fault.Wrap(fault.Invalid, "engine.New", err)
	}
	e := &Engine{opt: opt, pages: uint32(opt.MaxMemoryBytes / pageBytes), digest: digestOf(&opt)}
	if err := e.compile(ctx); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, "engine.New", err), e.Close())
	}
	if err := e.tryOut(); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, "engine.New", err), e.Close())
	}
	return e, nil
}

// Close frees the compiled code. Every instance must be closed before.
func (e *Engine) Close() error {
	ctx := context.Background()
	errs := []error{e.table.close()}
	if e.runtime != nil {
		errs = append(errs, e.runtime.Close(ctx))
	}
	if e.cache != nil {
		errs = append(errs, e.cache.Close(ctx))
	}
	return errors.Join(errs...)
}

// Digest names the engine in hexadecimal: images of one digest run on every engine of that digest and on no other.
func (e *Engine) Digest() string { return hex.EncodeToString(e.digest[:]) }

// ResetMethod returns how instances are reset on this machine.
func (e *Engine) ResetMethod() ResetMethod { return e.reset }

func (o *Options) fill() error {
	if o.MaxMemoryBytes == 0 {
		o.MaxMemoryBytes = defaultMemory
	}
	if o.StackBytes == 0 {
		o.StackBytes = maxStackBytes
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	var errs []error
	if len(o.Wasm) == 0 {
		errs = append(errs, errors.New("no engine module"))
	}
	if o.HostEntry == 0 {
		errs = append(errs, errors.New("no table index of the host entry"))
	}
	if o.MaxMemoryBytes < 4<<20 || o.MaxMemoryBytes > maxMemoryPages*pageBytes {
		errs = append(errs, fmt.Errorf("memory of %d bytes is not between 4 MiB and 4 GiB", o.MaxMemoryBytes))
	}
	if o.StackBytes < 64<<10 || o.StackBytes > maxStackBytes {
		errs = append(errs, fmt.Errorf("stack of %d bytes is not between 64 and 512 KiB", o.StackBytes))
	}
	if o.Grace < 0 {
		errs = append(errs, errors.New("grace is negative"))
	}
	for i, h := range o.Hosts {
		if h.Name == "" || h.Fn == nil || h.Argc < 0 || h.Argc > maxHostArgs {
			errs = append(errs, fmt.Errorf("host function %d (%q) is incomplete or takes over %d arguments", i, h.Name, maxHostArgs))
		}
	}
	return errors.Join(errs...)
}

// digestOf covers the host table too: an image holds numbers into it.
func digestOf(o *Options) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(o.Wasm)
	for _, f := range o.Hosts {
		fmt.Fprintf(h, "%s/%d\n", f.Name, f.Argc)
	}
	fmt.Fprintf(h, "stack %d", o.StackBytes)
	h.Sum(sum[:0])
	return sum
}

func (e *Engine) compile(ctx context.Context) error {
	cfg := wazero.NewRuntimeConfig().WithMemoryLimitPages(e.pages).WithCoreFeatures(moduleFeatures)
	if e.opt.CacheDir != "" {
		if err := privateDir(e.opt.CacheDir); err != nil {
			return err
		}
		cache, err := wazero.NewCompilationCacheWithDir(e.opt.CacheDir)
		if err != nil {
			return fmt.Errorf("open the code cache: %w", err)
		}
		e.cache = cache
		cfg = cfg.WithCompilationCache(cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	if err := e.defineImports(ctx); err != nil {
		return fmt.Errorf("define imports: %w", err)
	}
	compiled, err := e.runtime.CompileModule(ctx, e.opt.Wasm)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	e.compiled = compiled
	return checkExports(compiled)
}

// tryOut instantiates for the first time, alone, as wazero needs it, and measures what the build and the machine are like.
func (e *Engine) tryOut() error {
	_ = e.table.open() // without it the methods that need it fail, and the next one is taken
	in, err := e.NewInstance()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := e.learnStrings(in); err != nil {
		return err
	}
	if err := e.learnArrays(in); err != nil {
		return err
	}
	if err := e.learnObjects(in); err != nil {
		return err
	}
	if err := e.learnMolds(in); err != nil {
		return err
	}
	if err := e.learnRuntime(in); err != nil {
		return err
	}
	e.learnArenas(in)
	img, err := in.Snapshot(SnapshotOptions{MemoryBytes: e.opt.MaxMemoryBytes})
	if err != nil {
		return err
	}
	defer img.Close()
	clone, err := e.Clone(img)
	if err != nil {
		return err
	}
	defer clone.Close()
	return e.chooseReset(clone)
}

// checkExports looks only for what this package calls by name; the build tool has checked all the rest with its types.
func checkExports(m wazero.CompiledModule) error {
	if m.ExportedFunctions()[abi.Dispatcher] == nil {
		return fmt.Errorf("the module lacks the export %q", abi.Dispatcher)
	}
	return nil
}

// The cache holds code that this process will execute: nobody else may write there.
func privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the code cache: %w", err)
	}
	if err := os.Mkdir(dir, privateDirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the code cache: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the code cache: %w", err)
	}
	if !st.IsDir() || st.Mode().Perm()&otherPermission != 0 {
		return fmt.Errorf("the code cache %s must be a directory that only its owner can use, mode 0700", dir)
	}
	return nil
}
