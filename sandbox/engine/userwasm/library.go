package userwasm

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"edged/internal/fault"
	"edged/sandbox/wasmpass"
)

// Bounds of what scripts compile at run time; modules of the bundle have those of the bundle.
const (
	maxRuntimeModule = 4 << 20  // bytes of one
	maxRuntimeBytes  = 16 << 20 // of all that a version compiled
	maxRuntimeCount  = 64
)

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst

var (
	// errInvalid is wrapped by the error of a module that is not valid or asks for too much.
	errInvalid = errors.New("the module is not valid")
	errClosed  = fault.New(fault.Unavailable, "userwasm.Library", "the library is closed")
)

// Library holds the modules of one version, compiled. They are kept until Close: a module is compiled once, however often
// scripts ask for it. Safe for concurrent use.
type Library struct {
	compiler *Compiler

	mu      sync.Mutex // guards the fields below
	runtime wazero.Runtime
	holders *holders
	modules map[[sha256.Size]byte]*entry
	count   int // of modules that scripts compiled
	bytes   int
	users   int // the owner, and compilations under way
	closed  bool
}

// entry is a module that is compiled or on its way.
type entry struct {
	done   chan struct{} // closed when the fields below are set
	module *Module
	err    error
}

// holders are the modules that hold what instances share: each is instantiated once per memory, table or global.
type holders struct {
	memory, funcs, externs, globals wazero.CompiledModule
}

// NewLibrary returns an empty Library.
func NewLibrary(c *Compiler) *Library {
	return &Library{compiler: c, modules: map[[sha256.Size]byte]*entry{}, users: 1}
}

// Close frees the compiled code as soon as nothing is being compiled. No instance may use it any more. Idempotent.
func (l *Library) Close() {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if !again {
		l.leave()
	}
}

func (l *Library) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	if l.users == 0 && l.runtime != nil {
		_ = l.runtime.Close(context.Background()) // memory only: nothing can fail
		l.runtime = nil
	}
}

// begin returns the entry of a module and starts to compile it if nobody has. bundled says that the bytes are a file of
// the bundle, which must not change; else they are copied.
func (l *Library) begin(b []byte, bundled bool) (*entry, error) {
	sum := sha256.Sum256(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.modules[sum]; e != nil {
		return e, nil
	}
	switch {
	case l.closed:
		return nil, errClosed
	case bundled:
	case len(b) > maxRuntimeModule:
		return nil, fmt.Errorf("%w: %d bytes; the most that can be compiled at run time is %d", errInvalid, len(b), maxRuntimeModule)
	case l.count >= maxRuntimeCount || l.bytes+len(b) > maxRuntimeBytes:
		return nil, fmt.Errorf("%w: the worker has compiled too many different modules at run time (%d, %d bytes)", errInvalid, l.count, l.bytes)
	default:
		b = append([]byte(nil), b...)
		l.count++
		l.bytes += len(b)
	}
	if err := l.openLocked(); err != nil {
		return nil, err
	}
	e := &entry{done: make(chan struct{})}
	l.modules[sum] = e
	l.users++
	go l.compile(e, b, len(l.modules))
	return e, nil
}

// openLocked makes the runtime when it is first needed. The holders are compiled and instantiated once, alone, as wazero needs it.
func (l *Library) openLocked() error {
	if l.runtime != nil {
		return nil
	}
	ctx := context.Background()
	cfg := wazero.NewRuntimeConfig().WithMemoryLimitPages(65536).WithCoreFeatures(features)
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	h := &holders{}
	for _, x := range []struct {
		to   *wazero.CompiledModule
		code []byte
	}{
		{&h.memory, wasmpass.MemoryHolder()}, {&h.globals, wasmpass.GlobalHolder()},
		{&h.funcs, wasmpass.TableHolder(wasmpass.TypeFuncref, maxEntries)}, {&h.externs, wasmpass.TableHolder(wasmpass.TypeExternref, maxEntries)},
	} {
		compiled, err := rt.CompileModule(ctx, x.code)
		if err != nil {
			return errors.Join(fault.Wrap(fault.Internal, "userwasm.Library", err), rt.Close(ctx))
		}
		m, err := rt.InstantiateModule(ctx, compiled, plain())
		if err != nil {
			return errors.Join(fault.Wrap(fault.Internal, "userwasm.Library", err), rt.Close(ctx))
		}
		_ = m.Close(ctx)
		*x.to = compiled
	}
	l.runtime, l.holders = rt, h
	return nil
}

// plain configures an instance that has no name and starts nothing. Its source of randomness cannot be reached; the one that it would
// get takes longer to make than all the rest.
func plain() wazero.ModuleConfig {
	return wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
}

// compile runs on a goroutine of its own: whoever waits may give up, the work cannot.
func (l *Library) compile(e *entry, b []byte, number int) {
	defer l.leave()
	defer close(e.done)
	l.compiler.slots <- struct{}{}
	defer func() { <-l.compiler.slots }()
	defer func() {
		if r := recover(); r != nil { // a module that the compiler cannot bear costs its worker, not the node
			e.module, e.err = nil, fmt.Errorf("%w: it cannot be compiled", errInvalid)
		}
	}()
	e.module, e.err = l.newModule(b, number)
}
