package objects

import (
	"context"
	"errors"

	"edged/internal/fault"
)

// The contract's words (objects §3). Wrong types and unordered parts are plain Invalid: the facade makes a TypeError of them.
var (
	ErrInvalidKey     = fault.Name(fault.Invalid, "invalid_key", 128)             // not 1 to 979 bytes of UTF-8
	ErrInvalidBody    = fault.Name(fault.Invalid, "invalid_body", 129)            // of another length than declared, or it failed
	ErrValueTooLarge  = fault.Name(fault.TooLarge, "value_too_large", 130)        // over 300 MiB in a put, over 5 GiB in all parts
	ErrPrecondition   = fault.Name(fault.Conflict, "precondition_failed", 131)    // ifMatch or ifNoneMatch does not hold
	ErrRange          = fault.Name(fault.Invalid, "range_not_satisfiable", 132)   // the range begins at or behind the end
	ErrInvalidCursor  = fault.Name(fault.Invalid, "invalid_cursor", 133)          // not from this store, or for another listing
	ErrUploadNotFound = fault.Name(fault.NotFound, "upload_not_found", 134)       // completed, aborted, discarded or of another key
	ErrInvalidPart    = fault.Name(fault.Invalid, "invalid_part", 135)            // unknown, stale, too small or of unequal length
	ErrUnavailable    = fault.Name(fault.Unavailable, "backend_unavailable", 136) // cannot be done now; nothing was acknowledged
)

const firstWire, lastWire = 128, 143

// unavailable gives a failure below the door the contract's word, unless it has one. A caller that gave up is told so.
func unavailable(op string, err error) error {
	if err == nil {
		return nil
	}
	if n := fault.NamedOf(err); n != nil && n.Wire() >= firstWire && n.Wire() <= lastWire {
		return err
	}
	switch code := fault.CodeOf(err); {
	case code == fault.Invalid || code == fault.Conflict:
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(code, op, err)
	}
	if d := fault.Detail(err); d != "" {
		return ErrUnavailable.New(op, d)
	}
	return ErrUnavailable.Wrap(op, err)
}

// missing is the answer about a bucket that is not here.
func missing(op, uid string) error {
	return ErrUnavailable.Newf(op, "bucket %s is not served here", uid)
}
