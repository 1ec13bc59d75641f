package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
	"edged/sandbox/event"
)

// maxDepth bounds how often Go and the guest may call into each other on top of each other. Only a chain of imports
// comes near it: each module is compiled inside the resolution of the one that imports it.
const maxDepth = 600

// maxHostDepth is how deep a host function may be called. Each level holds a native stack of its own.
const maxHostDepth = 64

// Instance is one guest: its own memory, its own JavaScript context. It belongs to one goroutine at a time; only
// Interrupt may be called by others. Once Err is not nil every method returns at once.
type Instance struct {
	// User is whatever the owner wants its host functions to find: the current invocation.
	User any
	// Loader finds modules for imports; nil: every import fails. It is asked after the snapshot too, for import().
	Loader Loader
	// OnRejection is told when a promise is rejected without a handler, and (handled) when it gets one later. Both
	// values are borrowed. It must not call into the guest. nil ignores them.
	OnRejection func(promise, reason Value, handled bool)
	// Yield, if not nil, is called at a poll of a guest that has run for some milliseconds: it may let others run first. It
	// stops the clock with Pause while it waits, and starts it with Resume.
	Yield func()

	engine  *Engine
	image   *Image
	module  api.Module
	mem     *memory
	sp      api.MutableGlobal
	fuel    api.MutableGlobal
	mark    api.MutableGlobal // says that the bytecode interpreter polls
	ctx     callContext
	frames  []*frame // one per nesting depth
	depth   int
	failure error // sticky; nothing runs any more
	broken  bool  // the failure is our own bug: Reset refuses

	known   known
	packed  bool              // Pack was called
	loaded  map[string]uint32 // modules compiled since the snapshot
	modErr  error             // first error of a module callback since the last evaluation started
	limits  limits
	watch   watching
	stopped atomic.Pointer[stopCause]
	stats   Stats
	closed  bool

	companion Companion
}

// known are the guest addresses that a host needs; they are the same in every clone of an image.
type known struct {
	runtime, context uint32
	scratch          uint32 // out-parameters, then arguments
	io               uint32 // strings and bytes on their way in
	host             Value  // the object whose members are the host functions
	errors           [nErrorKinds]Value
}

const (
	scratchOut   = 64 // bytes for out-parameters at the start of the scratch block
	scratchDepth = 8  // nesting depths that have an argument vector in it: a callee may read its vector until it returns
	scratchBytes = scratchOut + scratchDepth*maxHostArgs*8
	ioBytes      = 64 << 10
)

// frame is what one nesting depth needs, made once: wazero forbids re-entering an api.Function.
type frame struct {
	fn    api.Function
	stack [1 + dispatchArgs]uint64
	args  [maxHostArgs]Value
}

// callContext carries the instance to the functions that the guest calls.
type callContext struct {
	context.Context
	in *Instance
}

func instanceOf(ctx context.Context) *Instance { return ctx.(*callContext).in }

// errUnwind travels through guest frames when an inner call found the instance failed.
var errUnwind = errors.New("the guest was stopped")

// dispatchArgs is how many arguments the dispatcher hands on.
const dispatchArgs = 6

// blank instantiates the module on a memory of its own, without running anything in it.
func (e *Engine) blank() (*Instance, error) {
	mem, err := newMemory(uint64(e.opt.MaxMemoryBytes))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "engine.instance", err)
	}
	in := &Instance{engine: e, mem: mem, limits: limits{budget: defaultCPU}}
	in.ctx = callContext{context.Background(), in}
	ctx := experimental.WithMemoryAllocator(&in.ctx, experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory { return mem }))
	mod, err := e.runtime.InstantiateModule(ctx, e.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		mem.Free()
		return nil, fault.Wrap(fault.Internal, "engine.instance", err)
	}
	in.module = mod
	var ok [3]bool
	in.sp, ok[0] = mod.ExportedGlobal(abi.StackPointer).(api.MutableGlobal)
	in.fuel, ok[1] = mod.ExportedGlobal(abi.Counter).(api.MutableGlobal)
	in.mark, ok[2] = mod.ExportedGlobal(abi.Mark).(api.MutableGlobal)
	if !ok[0] || !ok[1] || !ok[2] {
		in.Close()
		return nil, fault.New(fault.Internal, "engine.instance", "the module lacks its mutable globals")
	}
	if e.opt.Companion != nil {
		in.companion = e.opt.Companion(in)
	}
	return in, nil
}

// Close frees the guest. Idempotent. Calling it from a host function is a bug, and panics as one.
func (in *Instance) Close() {
	if in.closed {
		return
	}
	if in.depth > 0 {
		panic("engine: Close while the guest runs")
	}
	in.endWatch()
	in.closed = true
	in.fail(errClosed)
	if in.companion != nil {
		in.companion.Close()
	}
	in.module.Close(context.Background()) // frees the memory; it has nothing else that could fail
	if in.image != nil {
		in.image.release()
		in.image = nil
	}
}

var errClosed = fault.New(fault.Internal, "engine.instance", "used after Close")

// Err returns why the instance stopped working, nil while it works. It is one of event.ErrCPU, event.ErrMemory, the
// cause given to Interrupt, event.ErrWorker for a trap, or an Internal fault.
func (in *Instance) Err() error { return in.failure }

func (in *Instance) fail(err error) {
	if in.failure == nil {
		in.failure = err
	}
}

// Image returns the image that Reset goes back to, nil for an instance that was not cloned.
func (in *Instance) Image() *Image { return in.image }

// op calls one export of the guest. The result is 0 or Exception once the instance failed. Below the outermost call a
// failure unwinds all guest frames instead of returning.
func (in *Instance) op(o abi.Op, args ...uint64) uint64 {
	if in.failure != nil || in.depth >= maxDepth {
		return in.refuse()
	}
	if !in.watch.on {
		in.unseen()
	}
	f := in.frame(in.depth)
	f.stack[0] = uint64(o)
	copy(f.stack[1:], args)
	in.depth++
	err := f.fn.CallWithStack(&in.ctx, f.stack[:])
	in.depth--
	if err != nil {
		return in.trapped(err)
	}
	if in.depth == 0 {
		in.settle()
	}
	return f.stack[0]
}

func (in *Instance) frame(depth int) *frame {
	for len(in.frames) <= depth {
		in.frames = append(in.frames, &frame{})
	}
	f := in.frames[depth]
	if f.fn == nil {
		f.fn = in.module.ExportedFunction(abi.Dispatcher)
	}
	return f
}

func (in *Instance) refuse() uint64 {
	if in.failure == nil {
		in.fail(event.ErrWorker.New("engine.call", "host functions and the guest call each other too deeply"))
	}
	if in.depth > 0 {
		panic(errUnwind)
	}
	return uint64(Exception)
}

// trapped handles a call that did not return. A hard stop and a bug in a host function have named themselves before they
// unwound the guest; what is left is a trap of the guest itself.
func (in *Instance) trapped(err error) uint64 {
	if in.failure == nil {
		in.failure = event.ErrWorker.Wrap("engine.call", err)
	}
	if in.depth > 0 {
		panic(errUnwind)
	}
	in.settle()
	return uint64(Exception)
}

// settle runs when the outermost call is over: a stopped guest may not go on, even if it came back normally.
func (in *Instance) settle() {
	if in.limits.lazy {
		in.Pause()
	}
	if in.limits.stop != nil {
		in.fail(in.limits.stop)
	}
}

// The dispatcher passes everything as 64 bits.

func (in *Instance) opPtr(o abi.Op, args ...uint64) uint32 { return uint32(in.op(o, args...)) }
func (in *Instance) opInt(o abi.Op, args ...uint64) int32  { return int32(in.op(o, args...)) }
func (in *Instance) opVal(o abi.Op, args ...uint64) Value  { return Value(in.op(o, args...)) }

func (in *Instance) cx() uint64 { return uint64(in.known.context) }

// bytesAt returns the guest's bytes [p, p+n), a view, or false if that is not all inside its memory.
func (in *Instance) bytesAt(p, n uint32) ([]byte, bool) {
	m := in.mem.view()
	if uint64(p)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[p : uint64(p)+uint64(n) : uint64(p)+uint64(n)], true
}

func (in *Instance) u32At(p uint32) (uint32, bool) {
	b, ok := in.bytesAt(p, 4)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

func (in *Instance) u64At(p uint32) (uint64, bool) {
	b, ok := in.bytesAt(p, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func (in *Instance) putU64(p uint32, v uint64) bool {
	b, ok := in.bytesAt(p, 8)
	if ok {
		binary.LittleEndian.PutUint64(b, v)
	}
	return ok
}

// malloc returns guest memory, 0 if there is none.
func (in *Instance) malloc(n uint32) uint32 { return in.opPtr(abi.Malloc, uint64(n)) }

func (in *Instance) free(p uint32) {
	if p != 0 {
		in.op(abi.Free, uint64(p))
	}
}

// put copies b and a NUL behind it into guest memory of its own, 0 if there is none.
func (in *Instance) put(b []byte) uint32 {
	if uint64(len(b)) >= uint64(in.engine.opt.MaxMemoryBytes) {
		return 0
	}
	p := in.malloc(uint32(len(b)) + 1)
	if p == 0 {
		return 0
	}
	dst, ok := in.bytesAt(p, uint32(len(b))+1)
	if !ok {
		return 0
	}
	dst[copy(dst, b)] = 0
	return p
}
