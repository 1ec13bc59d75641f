package lease

import "edged/internal/fault"

// The contract's words for a settlement that is refused (queue §5).
var (
	ErrSettled        = fault.Name(fault.Conflict, "already_settled", 163) // the message has its outcome
	ErrUnknownMessage = fault.Name(fault.NotFound, "unknown_message", 164) // no message of this batch has that id
	ErrUnknownBatch   = fault.Name(fault.NotFound, "unknown_batch", 165)   // the batch has ended
)
