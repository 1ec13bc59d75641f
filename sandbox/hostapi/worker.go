package hostapi

import (
	"edged/sandbox/engine"
	"edged/sandbox/hostapi/webcrypto"
)

// Outcome makes the result of work that has ended into a value of the guest, and says whether it is a success. It is
// called on the goroutine that runs the guest.
type Outcome func(in *engine.Instance) (v engine.Value, ok bool)

// Worker does what takes long beside the guest, which meanwhile holds nobody up. Whoever owns an instance puts an
// implementation into its User; without one the work is done at once.
type Worker interface {
	// Work begins do on a goroutine of its own and returns the number of the operation, which the guest is told the
	// outcome of. do gets everything it needs by value: it must not touch the instance or its memory. It asks stop every
	// fraction of a millisecond, and when that is true it returns at once, whatever it returns. ok is false, and nothing
	// begun, if too many operations are open.
	Work(do func(stop func() bool) Outcome) (id int32, ok bool)
}

// work does what may take long, and returns its value or the number of the operation that will bring it.
func work(in *engine.Instance, do func(stop webcrypto.Stop) ([]byte, error)) engine.Value {
	w, ok := in.User.(Worker)
	if !ok {
		return bytesOrThrow(in)(do(in.Overdue))
	}
	id, ok := w.Work(func(stop func() bool) Outcome {
		b, err := do(stop)
		return func(in *engine.Instance) (engine.Value, bool) {
			if err != nil {
				return failureValue(in, err), false
			}
			return in.NewBytes(b), true
		}
	})
	if !ok {
		return in.ThrowRange("too many operations are open")
	}
	return engine.Int(id)
}
