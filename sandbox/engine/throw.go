package engine

import (
	"edged/sandbox/engine/abi"
	"edged/sandbox/event"
)

// ScriptError is an exception of JavaScript that nobody caught. It is an event.ErrWorker. Its texts come from the guest:
// they are for the worker's own log, never for a client.
type ScriptError struct {
	Name    string // of an Error, like "TypeError"; "" for other values
	Message string // of an Error, else the value as text
	Stack   string
}

// Error renders it in one line.
func (e *ScriptError) Error() string {
	if e.Name == "" {
		return "uncaught: " + e.Message
	}
	return "uncaught " + e.Name + ": " + e.Message
}

// Unwrap makes it an event.ErrWorker.
func (e *ScriptError) Unwrap() error { return event.ErrWorker }

// maxErrorText bounds each text of a ScriptError.
const maxErrorText = 16 << 10

type errorKind int

const (
	kindError errorKind = iota
	kindType
	kindRange
	kindSyntax
	kindDOM
	nErrorKinds
)

var errorNames = [nErrorKinds]string{"Error", "TypeError", "RangeError", "SyntaxError", "DOMException"}

// ThrowType throws a TypeError and returns Exception, which the host function returns in turn.
func (in *Instance) ThrowType(msg string) Value { return in.throwNew(kindType, "", msg) }

// ThrowRange throws a RangeError.
func (in *Instance) ThrowRange(msg string) Value { return in.throwNew(kindRange, "", msg) }

// ThrowError throws an Error; a name that is not "" becomes its own property `name`.
func (in *Instance) ThrowError(name, msg string) Value { return in.throwNew(kindError, name, msg) }

// ThrowDOM throws a DOMException of the given name, such as "DataCloneError".
func (in *Instance) ThrowDOM(name, msg string) Value { return in.throwNew(kindDOM, name, msg) }

// Throw throws v, whose ownership passes to the guest.
func (in *Instance) Throw(v Value) Value { return in.opVal(abi.Throw, in.cx(), uint64(v)) }

// NewTypeError returns a TypeError without throwing it: a reason for a rejection.
func (in *Instance) NewTypeError(msg string) Value { return in.newError(kindType, "", msg) }

// NewError returns an Error without throwing it; a name that is not "" becomes its own property `name`.
func (in *Instance) NewError(name, msg string) Value { return in.newError(kindError, name, msg) }

// NewDOMException returns a DOMException without throwing it.
func (in *Instance) NewDOMException(name, msg string) Value { return in.newError(kindDOM, name, msg) }

func (in *Instance) throwNew(k errorKind, name, msg string) Value {
	v := in.newError(k, name, msg)
	if v.IsException() {
		return v
	}
	return in.Throw(v)
}

// newError calls the constructor that was captured before any user code ran.
func (in *Instance) newError(k errorKind, name, msg string) Value {
	args := []Value{in.NewString([]byte(msg))}
	if k == kindDOM {
		args = append(args, in.NewString([]byte(name)))
	}
	v := in.construct(in.known.errors[k], args)
	for _, a := range args {
		in.Free(a)
	}
	if name != "" && k != kindDOM && !v.IsException() {
		in.define(v, "name", in.NewString([]byte(name)))
	}
	return v
}

// thrown turns the pending exception into an error, or the reason why the guest was stopped.
func (in *Instance) thrown() error {
	if in.failure != nil {
		return in.failure
	}
	if in.limits.stop != nil {
		if in.depth == 0 {
			in.fail(in.limits.stop)
		}
		return in.limits.stop
	}
	v := in.opVal(abi.GetException, in.cx())
	err := in.Describe(v)
	in.Free(v)
	return err
}

// Describe renders a thrown value or the reason of a rejection. It may run getters of the guest, within its limits. A
// value that stands for exhausted memory gives event.ErrMemory, and the instance is failed.
func (in *Instance) Describe(v Value) error {
	e := &ScriptError{}
	switch {
	case in.failure != nil:
		return in.failure
	case v.IsObject() && in.isError(v):
		e.Name = in.propText(v, "name")
		e.Message = in.propText(v, "message")
		e.Stack = in.propText(v, "stack")
	default:
		e.Message = in.Text(v)
	}
	if in.failure != nil {
		return in.failure
	}
	if in.isOutOfMemory(v, e) {
		in.fail(event.ErrMemory)
		return in.failure
	}
	return e
}

// isError reports whether v has name, message and stack. A DOMException is no Error to the engine.
func (in *Instance) isError(v Value) bool {
	if in.opInt(abi.IsError, uint64(v)) > 0 {
		return true
	}
	is := in.opInt(abi.IsInstanceOf, in.cx(), uint64(v), uint64(in.known.errors[kindDOM]))
	if is < 0 {
		in.swallow()
	}
	return is > 0
}

// isOutOfMemory recognises the engine's own exceptions for it, which scripts cannot catch.
func (in *Instance) isOutOfMemory(v Value, e *ScriptError) bool {
	return e.Name == "InternalError" && (e.Message == "out of memory" || e.Message == "string too long") &&
		in.opInt(abi.IsUncatchableError, uint64(v)) > 0
}

// propText reads a property as text; whatever goes wrong in there is swallowed.
func (in *Instance) propText(o Value, name string) string {
	v := in.GetProp(o, name)
	if v.IsException() {
		in.swallow()
		return ""
	}
	defer in.Free(v)
	if v.IsUndefined() {
		return ""
	}
	return in.Text(v)
}

// swallow drops the pending exception.
func (in *Instance) swallow() {
	if in.failure == nil {
		in.Free(in.opVal(abi.GetException, in.cx()))
	}
}
