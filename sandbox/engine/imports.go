package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
)

// errno values of WASI that the guest is given: it has no files, and a log that leads nowhere.
const (
	wasiOK     = 0
	wasiBadF   = 8
	wasiNoSys  = 52
	wasiFault  = 21
	wasiMaxIOV = 1024
)

// hostFn is a function that the guest imports: parameters in, result out through the same stack.
type hostFn = func(in *Instance, stack []uint64)

var (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// defineImports makes all that the guest can reach outside its memory.
func (e *Engine) defineImports(ctx context.Context) error {
	env := e.runtime.NewHostModuleBuilder(abi.HostModule)
	define(env, abi.HostFast, e.hostFast, params(i32, i64, i32, i32, i32), params(i64))
	define(env, abi.InterruptFn, func(in *Instance, s []uint64) { s[0] = in.poll() }, nil, params(i32))
	define(env, "host_get_timezone_offset", func(_ *Instance, s []uint64) { s[0] = 0 }, params(i32, i32), params(i32))
	define(env, "host_promise_rejection", guestRejection, params(i32, i32, i32), nil)
	define(env, "host_module_normalize", guestNormalize, params(i32, i32), params(i32))
	define(env, "host_module_load", guestLoad, params(i32, i32), params(i32))
	define(env, "host_call", func(*Instance, []uint64) { panic(errNamedCall) }, params(i32, i32, i32, i32, i32), params(i32))
	if _, err := env.Instantiate(ctx); err != nil {
		return fmt.Errorf("module %s: %w", abi.HostModule, err)
	}
	wasi := e.runtime.NewHostModuleBuilder(abi.WASIModule)
	define(wasi, "clock_time_get", guestClock, params(i32, i64, i32), params(i32))
	define(wasi, "random_get", guestRandom, params(i32, i32), params(i32))
	define(wasi, "fd_write", guestWrite, params(i32, i32, i32, i32), params(i32))
	define(wasi, "fd_close", answer(wasiBadF), params(i32), params(i32))
	define(wasi, "fd_fdstat_get", answer(wasiBadF), params(i32, i32), params(i32))
	define(wasi, "fd_seek", answer(wasiNoSys), params(i32, i64, i32, i32), params(i32))
	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("module %s: %w", abi.WASIModule, err)
	}
	return nil
}

// errNamedCall: we never make a function that the engine would call by name.
var errNamedCall = fault.New(fault.Internal, "engine.import", "host_call is not in use")

func params(t ...api.ValueType) []api.ValueType { return t }

func answer(errno uint64) hostFn { return func(_ *Instance, s []uint64) { s[0] = errno } }

// define exports f to the guest. A panic of f that is not ours is a bug in this program: it marks the instance broken
// and unwinds the guest, so that it costs one invocation and not the node.
func define(b wazero.HostModuleBuilder, name string, f hostFn, p, r []api.ValueType) {
	guarded := func(ctx context.Context, _ api.Module, stack []uint64) {
		in := instanceOf(ctx)
		defer in.guard()
		f(in, stack)
	}
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(guarded), p, r).Export(name)
}

// guard ends every Go function that the guest called.
func (in *Instance) guard() {
	switch r := recover(); r {
	case nil:
	case errUnwind:
		panic(errUnwind)
	default:
		in.broken = true
		in.failure = fault.Wrap(fault.Internal, "engine.host", fmt.Errorf("panic: %v", r))
		panic(errUnwind)
	}
}

// hostFast is where every host function of JavaScript arrives: (context, this, argc, argv, number) -> value. All of it
// is a claim.
func (e *Engine) hostFast(in *Instance, s []uint64) {
	argc, argv, number := uint32(s[2]), uint32(s[3]), uint32(s[4])
	if number >= uint32(len(e.opt.Hosts)) {
		if in.depth > maxHostDepth {
			s[0] = uint64(in.ThrowRange("Maximum call stack size exceeded"))
			return
		}
		s[0] = uint64(in.callCompanion(number-uint32(len(e.opt.Hosts)), argc, argv))
		in.afterHost()
		return
	}
	if in.depth > maxHostDepth {
		s[0] = uint64(in.ThrowRange("Maximum call stack size exceeded"))
		return
	}
	h := &e.opt.Hosts[number]
	f := in.frame(in.depth)
	n := min(argc, maxHostArgs)
	raw, ok := in.bytesAt(argv, n*8)
	if !ok {
		s[0] = uint64(in.ThrowType("bad arguments"))
		return
	}
	for i := range n {
		f.args[i] = Value(le64(raw[i*8:]))
	}
	for ; n < uint32(h.Argc); n++ {
		f.args[n] = Undefined
	}
	s[0] = uint64(h.Fn(in, f.args[:n:n]))
	in.afterHost()
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// guestRejection gets boxed values, which are ours to free.
func guestRejection(in *Instance, s []uint64) {
	promise, ok1 := in.u64At(uint32(s[0]))
	reason, ok2 := in.u64At(uint32(s[1]))
	if ok1 && ok2 && in.OnRejection != nil {
		in.OnRejection(Value(promise), Value(reason), uint32(s[2]) != 0)
	}
	in.op(abi.QjsFreeValue, s[0])
	in.op(abi.QjsFreeValue, s[1])
}

func guestClock(in *Instance, s []uint64) {
	var now int64
	switch uint32(s[0]) {
	case 0:
		now = time.Now().UnixNano()
	default: // runs only forward, also from an image to the process that loads it later
		now = epoch.UnixNano() + int64(clock())
	}
	if !in.putU64(uint32(s[2]), uint64(now)) {
		s[0] = wasiFault
		return
	}
	s[0] = wasiOK
}

func guestRandom(in *Instance, s []uint64) {
	b, ok := in.bytesAt(uint32(s[0]), uint32(s[1]))
	if !ok {
		s[0] = wasiFault
		return
	}
	rand.Read(b) // never fails
	s[0] = wasiOK
}

// guestWrite swallows what the C library prints (assertion texts); a trap that follows tells enough.
func guestWrite(in *Instance, s []uint64) {
	iovs, n, out := uint32(s[1]), uint32(s[2]), uint32(s[3])
	if fd := uint32(s[0]); fd != 1 && fd != 2 {
		s[0] = wasiBadF
		return
	}
	var total uint32
	for i := range min(n, wasiMaxIOV) {
		size, ok := in.u32At(iovs + i*8 + 4)
		if !ok {
			s[0] = wasiFault
			return
		}
		total += size
	}
	dst, ok := in.bytesAt(out, 4)
	if !ok {
		s[0] = wasiFault
		return
	}
	dst[0], dst[1], dst[2], dst[3] = byte(total), byte(total>>8), byte(total>>16), byte(total>>24)
	s[0] = wasiOK
}
