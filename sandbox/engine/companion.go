package engine

import (
	"fmt"
	"math"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
)

// Companion is what runs beside a guest, on its goroutine, and has state of its own that belongs to the instance: the
// WebAssembly modules that a worker brought. The instance tells it when that state is over.
type Companion interface {
	// Call runs the function that NewFunction made with this number. args are borrowed.
	Call(number uint32, args []Value) Value
	// Restored says that the instance is its image again, another one perhaps: what was made since is void.
	Restored()
	// Save describes the state for a snapshot. What it returns is the image's Extra.
	Save() ([]byte, error)
	// Close frees everything.
	Close()
}

// maxCompanionArgs bounds the arguments of a companion's function.
const maxCompanionArgs = 1000

// MaxFunctions is how many functions a companion can have: the engine keeps their numbers in 15 bits.
func (in *Instance) MaxFunctions() int { return 1<<15 - 1 - len(in.engine.opt.Hosts) }

// Companion returns the instance's companion, nil if Options has none.
func (in *Instance) Companion() Companion { return in.companion }

// NewFunction returns a function of JavaScript that calls the companion with number, below MaxFunctions. It has a name and
// a length and is no constructor.
func (in *Instance) NewFunction(number uint32, name string, length int) Value {
	if number >= uint32(in.MaxFunctions()) {
		return in.ThrowRange("too many functions")
	}
	return in.opVal(abi.NewCFunction2, in.cx(), uint64(in.engine.opt.HostEntry), uint64(in.name(name)),
		uint64(length), abi.CFuncMagic, uint64(number)+uint64(len(in.engine.opt.Hosts)))
}

// callCompanion is hostFast for a number beyond the host functions.
func (in *Instance) callCompanion(number, argc, argv uint32) Value {
	if in.companion == nil {
		return in.ThrowType("no such host function")
	}
	n := min(argc, maxCompanionArgs)
	raw, ok := in.bytesAt(argv, n*8)
	if !ok {
		return in.ThrowType("bad arguments")
	}
	var few [16]Value
	args := few[:0]
	if n > uint32(len(few)) {
		args = make([]Value, 0, n)
	}
	for ; len(raw) > 0; raw = raw[8:] {
		args = append(args, Value(le64(raw)))
	}
	return in.companion.Call(number, args)
}

// Alloc returns the address of n bytes of guest memory, 0 if there is none. What they hold is not defined.
func (in *Instance) Alloc(n uint32) uint32 { return in.malloc(n) }

// Release gives back what Alloc gave.
func (in *Instance) Release(p uint32) { in.free(p) }

// Window returns the guest's bytes [p, p+n) as a view whose place in this process never changes as long as the instance
// exists; false if they are not all inside its memory.
func (in *Instance) Window(p, n uint32) ([]byte, bool) { return in.bytesAt(p, n) }

// NewWindow returns an ArrayBuffer over the guest's bytes [p, p+n), which must outlive it, Exception if there is no memory
// for it.
func (in *Instance) NewWindow(p, n uint32) Value {
	if _, ok := in.bytesAt(p, n); !ok {
		return in.ThrowRange("the window lies outside the memory")
	}
	return in.opVal(abi.NewArrayBuffer, in.cx(), uint64(p), uint64(n), 0, 0, 0)
}

// Detach detaches an ArrayBuffer that NewWindow made.
func (in *Instance) Detach(buffer Value) {
	in.op(abi.DetachArrayBuffer, in.cx(), uint64(buffer))
}

// ToInt32 converts as the language does, running what the value's class says; false if that threw.
func (in *Instance) ToInt32(v Value) (int32, bool) {
	if v.IsInt() {
		return int32(uint32(v)), true
	}
	if in.opInt(abi.ToInt32, in.cx(), uint64(in.known.scratch), uint64(v)) != 0 {
		return 0, false
	}
	n, ok := in.u32At(in.known.scratch)
	return int32(n), ok
}

// ToFloat64 is like ToInt32.
func (in *Instance) ToFloat64(v Value) (float64, bool) {
	if f, ok := v.Float(); ok {
		return f, true
	}
	if in.opInt(abi.ToFloat64, in.cx(), uint64(in.known.scratch), uint64(v)) != 0 {
		return 0, false
	}
	n, ok := in.u64At(in.known.scratch)
	return math.Float64frombits(n), ok
}

// ToBigInt64 is like ToInt32, for a BigInt; it is cut off to 64 bits.
func (in *Instance) ToBigInt64(v Value) (int64, bool) {
	if in.opInt(abi.ToBigInt64, in.cx(), uint64(in.known.scratch), uint64(v)) != 0 {
		return 0, false
	}
	n, ok := in.u64At(in.known.scratch)
	return int64(n), ok
}

// Checkpoint is called now and then by what runs beside the guest on its goroutine. It unwinds by panic if the guest has to
// end.
func (in *Instance) Checkpoint() {
	if in.poll() != 0 {
		in.fail(in.limits.stop)
		panic(errUnwind)
	}
}

// Unwind goes on unwinding if the instance has failed: for a companion whose own call came back with an error.
func (in *Instance) Unwind() {
	if in.failure != nil {
		panic(errUnwind)
	}
}

// Panicked is what a companion does with a panic that it recovered: it unwinds further, and marks the instance broken
// unless it is the unwinding of a stop.
func (in *Instance) Panicked(r any) {
	if r == errUnwind {
		panic(errUnwind)
	}
	in.broken = true
	in.failure = fault.Wrap(fault.Internal, "engine.companion", fmt.Errorf("panic: %v", r))
	panic(errUnwind)
}

// Extra is what the companion of the instance that was snapshotted saved. The caller must not change it.
func (img *Image) Extra() []byte { return img.extra }

// Decoded returns what decode makes of Extra; it is called once per image.
func (img *Image) Decoded(decode func(extra []byte) any) any {
	img.decode.Do(func() { img.decoded = decode(img.extra) })
	return img.decoded
}
