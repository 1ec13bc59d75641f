package kv

import (
	"edged/internal/fault"
)

// The contract's words (kv §3).
var (
	ErrInvalidKey       = fault.Name(fault.Invalid, "invalid_key", 112)             // not 1 to 467 bytes of UTF-8
	ErrValueTooLarge    = fault.Name(fault.TooLarge, "value_too_large", 113)        // over 26214400 bytes
	ErrMetadataTooLarge = fault.Name(fault.TooLarge, "metadata_too_large", 114)     // over one of the metadata limits
	ErrInvalidCursor    = fault.Name(fault.Invalid, "invalid_cursor", 115)          // not from this store, or for another listing
	ErrUnavailable      = fault.Name(fault.Unavailable, "backend_unavailable", 116) // cannot be done now; nothing was acknowledged
)

// unavailable gives any failure below the door the contract's word; the cause is for the log.
func unavailable(op string, err error) error {
	if err == nil {
		return nil
	}
	if n := fault.NamedOf(err); n != nil && n.Wire() >= 112 && n.Wire() <= 127 {
		return err
	}
	if d := fault.Detail(err); d != "" {
		return ErrUnavailable.New(op, d)
	}
	return ErrUnavailable.Wrap(op, err)
}
