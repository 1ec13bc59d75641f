package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
	"edged/sandbox/event"
)

// NewInstance makes a guest from nothing: a JavaScript context with the language's own globals and, reachable through
// Host, the host functions. Errors: Unavailable without memory, Internal otherwise.
func (e *Engine) NewInstance() (*Instance, error) {
	in, err := e.blank()
	if err != nil {
		return nil, err
	}
	in.loaded = map[string]uint32{}
	if err := in.boot(); err != nil {
		in.Close()
		return nil, fault.Wrap(fault.Internal, "engine.NewInstance", err)
	}
	return in, nil
}

func (in *Instance) boot() error {
	in.op(abi.Initialize)
	in.malloc(bootPad)
	if in.opInt(abi.QjsInit) != 0 || in.failure != nil {
		return errors.Join(errors.New("the engine does not start"), in.failure)
	}
	in.known.runtime = in.opPtr(abi.QjsGetRuntimePtr)
	in.known.context = in.opPtr(abi.QjsGetContextPtr)
	in.op(abi.QjsSetInterruptHandler, 1)
	in.op(abi.QjsSetModuleLoader, 1)
	in.op(abi.QjsSetPromiseRejectionHandler, 1)
	in.op(abi.QjsSetMaxStackSize, uint64(in.engine.opt.StackBytes))
	if !in.makeDesk() {
		return errors.New("the engine has no memory for its buffers")
	}
	if err := in.captureErrors(); err != nil {
		return err
	}
	return in.makeHost()
}

// captureErrors keeps the constructors as they are before any user code could replace them.
func (in *Instance) captureErrors() error {
	g := in.Global()
	defer in.Free(g)
	for k, name := range errorNames {
		in.known.errors[k] = in.GetProp(g, name)
		if !in.IsFunction(in.known.errors[k]) {
			return fmt.Errorf("the engine has no %s", name)
		}
	}
	return in.failure
}

// makeHost builds the object of host functions: C functions whose number leads straight to hostFast.
func (in *Instance) makeHost() error {
	in.known.host = in.NewObject()
	for i, h := range in.engine.opt.Hosts {
		f := in.opVal(abi.NewCFunction2, in.cx(), uint64(in.engine.opt.HostEntry), uint64(in.name(h.Name)),
			uint64(h.Argc), abi.CFuncMagic, uint64(i))
		if f.IsException() || !in.SetProp(in.known.host, h.Name, f) {
			return fmt.Errorf("make host function %q: %w", h.Name, in.thrown())
		}
	}
	return in.failure
}

const (
	evalScript   = 0
	evalModule   = 1
	evalCompiled = 1 << 5 // compile, do not run
)

// Eval runs a classic script and returns its completion value, owned by the caller. Errors as of Call; a SyntaxError is a
// *ScriptError.
func (in *Instance) Eval(src []byte, file string) (Value, error) {
	v := in.eval(src, file, evalScript)
	if v.IsException() || in.failure != nil {
		return Exception, in.thrown()
	}
	return v, nil
}

func (in *Instance) eval(src []byte, file string, flags uint64) Value {
	p, f := in.put(src), in.put([]byte(file))
	if p == 0 || f == 0 {
		in.fail(event.ErrMemory)
	}
	v := in.opVal(abi.Eval, in.cx(), uint64(p), uint64(len(src)), uint64(f), flags)
	if in.failure == nil {
		in.free(p)
		in.free(f)
	}
	return v
}

// SnapshotOptions say what becomes of a built instance.
type SnapshotOptions struct {
	MemoryBytes int64   // size of the guest's memory in every clone: at least this. Growing past it makes Reset fail
	HeapLimit   int64   // SetMemoryLimit of every clone; 0 means none
	GCThreshold int64   // heap size at which the cycle collector first runs; 0 means never before HeapLimit
	Roots       []Value // values that clones need; Image.Roots returns them. They stay referenced
}

// Snapshot collects garbage (unless Pack did), grows the memory to its final size, wipes the buffers and copies what is left into an
// Image. The instance is good for nothing but Close afterwards. Pending jobs stay in the image: run them, or count on
// them, before.
func (in *Instance) Snapshot(opt SnapshotOptions) (*Image, error) {
	const op = "engine.Snapshot"
	if in.depth != 0 {
		return nil, fault.New(fault.Internal, op, "called from inside the guest")
	}
	if !in.packed {
		in.op(abi.RunGC, uint64(in.known.runtime))
	}
	in.op(abi.QjsSetMemoryLimit, 0)
	in.growTo(opt.MemoryBytes)
	in.op(abi.QjsSetMemoryLimit, uint64(max(opt.HeapLimit, 0)))
	threshold := opt.GCThreshold
	if threshold <= 0 {
		threshold = 1<<31 - 1
	}
	in.op(abi.QjsSetGcThreshold, uint64(threshold))
	if in.failure != nil {
		return nil, fault.Wrap(fault.CodeOf(in.failure), op, in.failure)
	}
	for _, block := range [][2]uint32{{in.known.scratch, scratchBytes}, {in.known.io, ioBytes}} {
		if b, ok := in.bytesAt(block[0], block[1]); ok {
			clear(b)
		}
	}
	var extra []byte
	if in.companion != nil {
		var err error
		if extra, err = in.companion.Save(); err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), op, err)
		}
		if len(extra) > maxImageExtra {
			return nil, event.ErrMemory.New(op, "what the companion saves is too large")
		}
	}
	img, err := in.engine.capture(in, opt.Roots)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, op, err)
	}
	img.extra = extra
	in.fail(errSnapped)
	return img, nil
}

var errSnapped = fault.New(fault.Internal, "engine.instance", "used after Snapshot")

// growTo makes the allocator own the memory that requests will need, so that no clone has to grow: WebAssembly memory
// never shrinks.
func (in *Instance) growTo(n int64) {
	n = min(n, in.engine.opt.MaxMemoryBytes)
	const slack = 2 * pageBytes // the allocator's own bookkeeping, and its rounding
	if missing := n - int64(len(in.mem.view())) - slack; missing > 0 {
		in.free(in.malloc(uint32(missing)))
	}
}

// stackTop is where the C stack of this build begins; it grows down to 0. What lies below the pointer is never read again.
const stackTop = 1 << 20

// deadStack returns the end of the pages that hold nothing but dead stack, 0 if the stack is not where we know it.
func (in *Instance) deadStack() uint64 {
	if sp := in.sp.Get(); sp <= stackTop {
		return sp &^ uint64(pageSize-1)
	}
	return 0
}

func (in *Instance) setCounters(sp uint64) {
	in.sp.Set(sp)
	in.fuel.Set(uint64(uint32(abi.Countdown)))
}

// reseed gives Math.random a state of its own: all clones would share the image's otherwise.
func (in *Instance) reseed() {
	b, ok := in.bytesAt(in.known.context+abi.RandomState, 8)
	if ok {
		binary.LittleEndian.PutUint64(b, randomState())
	}
}
