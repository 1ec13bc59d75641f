package engine

import (
	"encoding/binary"

	"edged/sandbox/engine/abi"
	"edged/sandbox/event"
)

// maxCallArgs bounds the arguments of one call.
const maxCallArgs = maxHostArgs

// Call calls a function. fn, this and args are borrowed; the result is the caller's. An error is a *ScriptError for an
// exception, else why the instance failed (Err). The promise jobs that the call left are not run.
func (in *Instance) Call(fn, this Value, args ...Value) (Value, error) {
	v := in.TryCall(fn, this, args...)
	if v.IsException() || in.failure != nil {
		return Exception, in.thrown()
	}
	return v, nil
}

// TryCall is Call for a host function that passes an exception on: it returns Exception and leaves it pending.
func (in *Instance) TryCall(fn, this Value, args ...Value) Value {
	argv := in.putArgs(args)
	v := in.opVal(abi.Call, in.cx(), uint64(fn), uint64(this), uint64(len(args)), uint64(argv))
	in.dropArgs(argv)
	return v
}

// Construct calls a constructor, as Call does a function.
func (in *Instance) Construct(ctor Value, args ...Value) (Value, error) {
	v := in.construct(ctor, args)
	if v.IsException() || in.failure != nil {
		return Exception, in.thrown()
	}
	return v, nil
}

func (in *Instance) construct(ctor Value, args []Value) Value {
	argv := in.putArgs(args)
	v := in.opVal(abi.CallConstructor, in.cx(), uint64(ctor), uint64(len(args)), uint64(argv))
	in.dropArgs(argv)
	return v
}

// putArgs lays out an argument vector that stays as it is until the call returns, whatever is called inside of it.
func (in *Instance) putArgs(args []Value) uint32 {
	if len(args) == 0 {
		return in.known.scratch
	}
	n := uint32(len(args)) * 8
	argv := in.known.scratch + scratchOut + uint32(in.depth)*maxCallArgs*8
	if in.depth >= scratchDepth || len(args) > maxCallArgs {
		argv = in.malloc(n)
	}
	dst, ok := in.bytesAt(argv, n)
	if !ok || argv == 0 {
		in.fail(event.ErrMemory)
		return 0
	}
	for i, a := range args {
		binary.LittleEndian.PutUint64(dst[i*8:], uint64(a))
	}
	return argv
}

func (in *Instance) dropArgs(argv uint32) {
	if argv-in.known.scratch >= scratchBytes && in.failure == nil {
		in.free(argv)
	}
}

// RunJobs runs promise jobs until none is left or limit of them ran, and returns how many did. A job that throws
// (what queueMicrotask runs may) ends it with a *ScriptError; call again to go on with the rest.
func (in *Instance) RunJobs(limit int) (ran int, err error) {
	for ran < limit {
		if idle, known := in.idle(); idle && known {
			return ran, nil
		}
		switch n := in.opInt(abi.ExecutePendingJob, uint64(in.known.runtime), uint64(in.known.scratch)); {
		case in.failure != nil:
			return ran, in.failure
		case n == 0:
			return ran, nil
		case n < 0:
			return ran + 1, in.thrown()
		}
		ran++
	}
	return ran, nil
}

// JobsPending reports whether promise jobs wait to be run.
func (in *Instance) JobsPending() bool {
	if idle, known := in.idle(); known {
		return !idle
	}
	return in.opInt(abi.IsJobPending, uint64(in.known.runtime)) > 0
}

// PromiseState is what a promise has come to.
type PromiseState int32

// The states.
const (
	NotPromise PromiseState = -1
	Pending    PromiseState = 0
	Fulfilled  PromiseState = 1
	Rejected   PromiseState = 2
)

// PromiseState looks at v without running any code.
func (in *Instance) PromiseState(v Value) PromiseState {
	if !v.IsObject() || in.failure != nil {
		return NotPromise
	}
	if s, _, ok := in.promise(v); ok {
		return s
	}
	s := PromiseState(in.opInt(abi.PromiseState, in.cx(), uint64(v)))
	if s < Pending || s > Rejected {
		return NotPromise
	}
	return s
}

// PromiseResult returns the value or the reason of a settled promise, owned by the caller; Undefined for anything else.
// The engine itself looks what v is.
func (in *Instance) PromiseResult(v Value) Value {
	if !v.IsObject() || in.failure != nil {
		return Undefined
	}
	if s, result, ok := in.promise(v); ok && s != Pending && s != NotPromise {
		return in.Dup(result)
	}
	return in.opVal(abi.PromiseResult, in.cx(), uint64(v))
}

// MarkHandled keeps a rejected promise from being reported as unhandled.
func (in *Instance) MarkHandled(promise Value) {
	if in.PromiseState(promise) != NotPromise {
		in.op(abi.PromiseMarkAsHandled, in.cx(), uint64(promise))
	}
}
