package event

import "edged/internal/fault"

// How an invocation can end without an answer. The names are the coarse classes of node-surface §7.
var (
	ErrWorker      = fault.Name(fault.Internal, "worker_error", 32)    // uncaught error, or not a Response
	ErrCPU         = fault.Name(fault.Timeout, "cpu_exceeded", 33)     // over --max-cpu
	ErrWall        = fault.Name(fault.Timeout, "wall_exceeded", 34)    // over --max-wall before the head
	ErrMemory      = fault.Name(fault.Limited, "memory_exceeded", 35)  // over --max-memory
	ErrNotServing  = fault.Name(fault.Unavailable, "not_serving", 36)  // the version cannot run
	ErrOverloaded  = fault.Name(fault.Limited, "overloaded", 37)       // no room for another invocation now
	ErrDraining    = fault.Name(fault.Unavailable, "draining", 38)     // the node is stopping
	ErrBodyTooBig  = fault.Name(fault.TooLarge, "body_too_large", 39)  // a body outgrew the limit while it arrived
	ErrBodyAborted = fault.Name(fault.Canceled, "request_aborted", 40) // the sender of a body left or lied about its length
)
