package binding

import (
	"context"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// ErrServiceUnavailable: no active deployment, a version that cannot run, or a node that cannot dispatch
// (service-binding §2).
var ErrServiceUnavailable = fault.Name(fault.Unavailable, "backend_unavailable", 192)

// Service is the HTTP route of one worker (service-binding §1).
type Service interface {
	// Serve runs the route of the worker's active deployment, assets included, as sandbox.Version.Serve runs a handler.
	// A failed handler is one of event's errors; event.ErrBodyTooBig refuses a request before the callee runs.
	Serve(ctx context.Context, req *event.Request, res *event.Response) error
}
