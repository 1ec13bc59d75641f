package router

import (
	"errors"

	"edged/internal/fault"
	"edged/router/h1"
	"edged/sandbox/event"
)

// refusal is one host-made error response (node-surface §7). Immutable.
type refusal struct {
	status     int
	code       string
	retryAfter bool
	closes     bool // the request cannot be read to its end, or must not be
}

var (
	refBadRequest     = &refusal{status: 400, code: "bad_request", closes: true}
	refUnknownHost    = &refusal{status: 404, code: "unknown_host"}
	refNotFound       = &refusal{status: 404, code: "not_found"}
	refNotImplemented = &refusal{status: 501, code: "not_implemented", closes: true}
	refBodyTooLarge   = &refusal{status: 413, code: "body_too_large", closes: true}
	refURLTooLong     = &refusal{status: 414, code: "url_too_long", closes: true}
	refHeadersLarge   = &refusal{status: 431, code: "headers_too_large", closes: true}
	refMisdirected    = &refusal{status: 421, code: "misdirected"}
	refWorkerError    = &refusal{status: 500, code: "worker_error"}
	refCPU            = &refusal{status: 500, code: "cpu_exceeded"}
	refWall           = &refusal{status: 500, code: "wall_exceeded"}
	refMemory         = &refusal{status: 500, code: "memory_exceeded"}
	refNotServing     = &refusal{status: 503, code: "not_serving"}
	refNotStarted     = &refusal{status: 503, code: "not_serving"} // the version refused before anything happened
	refOverloaded     = &refusal{status: 503, code: "overloaded", retryAfter: true}
	refDraining       = &refusal{status: 503, code: "draining", retryAfter: true, closes: true}

	// refusals lists them all, for metrics.
	refusals = []*refusal{refBadRequest, refUnknownHost, refNotFound, refNotImplemented, refBodyTooLarge, refURLTooLong,
		refHeadersLarge, refMisdirected, refWorkerError, refCPU, refWall, refMemory, refNotServing, refNotStarted, refOverloaded, refDraining}
)

// refuseHead turns an error of package h1 into its row.
func refuseHead(err error) *refusal {
	switch {
	case errors.Is(err, h1.ErrTargetTooLong):
		return refURLTooLong
	case errors.Is(err, h1.ErrFieldsTooLarge):
		return refHeadersLarge
	case errors.Is(err, h1.ErrNotImplemented):
		return refNotImplemented
	}
	return refBadRequest
}

// refuseInvocation turns an invocation's error into its row, for a client that is still there.
func refuseInvocation(err error) *refusal {
	switch fault.NamedOf(err) {
	case event.ErrCPU:
		return refCPU
	case event.ErrWall:
		return refWall
	case event.ErrMemory:
		return refMemory
	case event.ErrNotServing:
		return refNotStarted
	case event.ErrOverloaded:
		return refOverloaded
	case event.ErrDraining:
		return refDraining
	case event.ErrBodyTooBig:
		return refBodyTooLarge
	case event.ErrBodyAborted:
		return refBadRequest // the client is there, so it lied about its body or stalled
	}
	if fault.CodeOf(err) == fault.Canceled {
		return refNotServing // the version was taken away
	}
	return refWorkerError
}
