package fault

import (
	"context"
	"errors"
)

// CodeOf returns the code an error carries: 0 for nil, Timeout or Canceled for a context's error, Internal for a stranger.
func CodeOf(err error) Code {
	if err == nil {
		return 0
	}
	var f *fault
	if errors.As(err, &f) {
		return f.code
	}
	var n *Named
	if errors.As(err, &n) {
		return n.code
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Internal
}

// NamedOf returns the contract's name an error carries, nil if it has none.
func NamedOf(err error) *Named {
	var n *Named
	if errors.As(err, &n) {
		return n
	}
	return nil
}

// NameOf returns the contract's word for the error, or its code's name where it has none; "" for nil.
func NameOf(err error) string {
	if err == nil {
		return ""
	}
	if n := NamedOf(err); n != nil {
		return n.name
	}
	return CodeOf(err).String()
}

// Detail returns the sentence that may be shown to the caller, "" where there is none. It never holds a cause.
func Detail(err error) string {
	var f *fault
	if errors.As(err, &f) && f.code != Internal {
		return f.detail
	}
	return ""
}
