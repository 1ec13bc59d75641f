package facade

import (
	"context"
	"slices"

	"edged/internal/fault"
	"edged/internal/trace"
	"edged/sandbox/binding"
	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// Caller is the invocation that runs in an instance, as its User.
type Caller interface {
	// Binding returns the binding with this number, nil if the running version has none.
	Binding(number int32) *binding.Binding
	// Batch returns the batch that the queue handler was given, nil once it has settled.
	Batch() *event.Batch
	// Hold counts n bytes that were copied out of the guest for a call; false if they are too many. Start lets go of them.
	Hold(n int) bool
	// Trace is the invocation's step in a trace, nil while nothing is traced.
	Trace() *trace.Span
	// Start has work done beside the guest and returns the number of the operation, or an exception if too many are
	// open. by is the binding whose door is called, nil for none. ctx is done when the invocation is over; room is for the result. settle is called with the guest again; what it
	// returns is the result, or the reason if ok is false. held are the bytes that Hold counted for it.
	Start(by *binding.Binding, held int, work func(ctx context.Context, room Room) (settle Settle)) engine.Value
}

// Room bounds the results that lie in the node's memory until their guests take them.
type Room interface {
	// Read has read done, which returns the size of what it brought. If there is no room for that, forget is called, and
	// it is read again when there is some. read must change nothing.
	Read(ctx context.Context, read func() (n int, err error), forget func()) error
	// Take waits for room for a result of n bytes that is there already.
	Take(ctx context.Context, n int) error
}

// Settle makes the result of a call a value in the guest.
type Settle func(in *engine.Instance) (v engine.Value, ok bool)

// of returns the door of a binding; false for a number that the prelude never passes.
func of(in *engine.Instance, number engine.Value) (*binding.Binding, Caller, bool) {
	c := in.User.(Caller)
	n, ok := number.Int()
	if !ok {
		return nil, c, false
	}
	b := c.Binding(n)
	return b, c, b != nil
}

// badCall is the one answer to a call that the prelude never makes.
func badCall(in *engine.Instance) engine.Value {
	return in.ThrowType("host: wrong arguments")
}

// start is Start for a call of b's door, nil for none, that holds some bytes: do calls the door and returns what makes its result a value.
func start(in *engine.Instance, c Caller, b *binding.Binding, m *Method, held int, do func(ctx context.Context, room Room) (func(in *engine.Instance) engine.Value, error)) engine.Value {
	if !c.Hold(held) {
		return in.Throw(m.Reason(in, errHeld))
	}
	span := m.begin(c.Trace(), b)
	return c.Start(b, held, func(ctx context.Context, room Room) Settle {
		result, err := do(trace.With(ctx, span), room)
		span.End(err)
		return func(in *engine.Instance) (engine.Value, bool) {
			if err != nil {
				return m.Reason(in, err), false
			}
			return result(in), true
		}
	})
}

// begin begins the step of a call within that of its invocation. It says which binding was called, never with what.
func (m *Method) begin(within *trace.Span, b *binding.Binding) *trace.Span {
	if within == nil {
		return nil
	}
	return Begin(within, m.Span(), b)
}

// Begin begins the step of a host call of this name.
func Begin(within *trace.Span, name string, b *binding.Binding) *trace.Span {
	span := within.Child(trace.Client, name)
	if b != nil {
		span.Set("edged.binding", b.Name)
	}
	return span
}

var errHeld = fault.New(fault.Limited, "facade.start", "too many bytes are held by calls that are open")

// nothing makes undefined of a call without a result.
func nothing(*engine.Instance) engine.Value { return engine.Undefined }

// Reason is how a guest sees a door's error. The guest is there.
func (m *Method) Reason(in *engine.Instance, err error) engine.Value {
	name, text := fault.NameOf(err), fault.Detail(err)
	switch {
	case fault.NamedOf(err) != nil && slices.Contains(m.Errors, name):
		if text == "" {
			text = name
		}
		return in.NewError(name, text)
	case fault.CodeOf(err) == fault.Invalid:
		return in.NewTypeError(text)
	}
	return in.NewError(unavailable, "the call could not be done now")
}

const unavailable = "backend_unavailable"
