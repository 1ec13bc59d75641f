package queue

import (
	"edged/internal/fault"
	"edged/queue/lease"
)

// The contract's words of the producer's side (queue §3). ErrInvalidBody is for the binding, which alone knows of what type a
// body was.
var (
	ErrTooLarge    = fault.Name(fault.TooLarge, "message_too_large", 160)      // a body over MaxBody
	ErrBatch       = fault.Name(fault.TooLarge, "batch_too_large", 161)        // more than MaxBatch messages
	ErrInvalidBody = fault.Name(fault.Invalid, "invalid_body", 162)            // neither bytes nor a string
	ErrUnavailable = fault.Name(fault.Unavailable, "backend_unavailable", 166) // not stored, or not known to be; a retry may help
)

// The contract's words of the consumer's side (queue §5).
var (
	ErrSettled        = lease.ErrSettled
	ErrUnknownMessage = lease.ErrUnknownMessage
	ErrUnknownBatch   = lease.ErrUnknownBatch
)

// missing is the answer about a queue that this store does not hold, or holds under another epoch: whoever asks has a stale
// picture or a newer one, and may be right in a moment.
func missing(op, uid string) error {
	return ErrUnavailable.Newf(op, "queue %s is not served here", uid)
}
