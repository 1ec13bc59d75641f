// Package fault is the one vocabulary of errors: every error that leaves a room carries a Code, its
// kind, and where the contract has a word of its own also that name.
//
//	fault.go   codes, names, construction
//	ask.go     what callers ask of an error: code, name, the text that may be shown
//
// Invariants: codes and wire numbers are append-only and never reused. The detail of an error may be
// shown to whoever made the request; its cause is for the log alone.
//
// Not here: how a protocol renders an error. HTTP fronts and the guest boundary do that themselves.
package fault

import "fmt"

// Code is the kind of an error: it decides HTTP status, metric label and whether a retry may help.
// The zero value is no error.
type Code uint8

// The codes. Append only; a golden test pins names and numbers.
const (
	Internal    Code = 1  // whatever nobody foresaw; its text never leaves the node
	Invalid     Code = 2  // the request is wrong and stays wrong
	NotFound    Code = 3  // the thing does not exist, or not for this caller
	TooLarge    Code = 4  // over a documented size limit
	Limited     Code = 5  // over a rate, queue or resource limit now
	Denied      Code = 6  // the caller is known and may not
	Conflict    Code = 7  // the state forbids it
	Unavailable Code = 8  // cannot be done now; a retry may help
	Timeout     Code = 9  // a deadline passed
	Canceled    Code = 10 // the caller gave up
)

var codes = [...]struct {
	name   string
	status int
	retry  bool
}{
	0:           {"ok", 200, false},
	Internal:    {"internal", 500, false},
	Invalid:     {"invalid", 400, false},
	NotFound:    {"not_found", 404, false},
	TooLarge:    {"too_large", 413, false},
	Limited:     {"limited", 429, true},
	Denied:      {"denied", 403, false},
	Conflict:    {"conflict", 409, false},
	Unavailable: {"unavailable", 503, true},
	Timeout:     {"timeout", 504, true},
	Canceled:    {"canceled", 499, false},
}

// String returns the code's stable name, fit for a metric label.
func (c Code) String() string { return c.row().name }

// HTTPStatus returns the status that fits the code where no more specific rule exists.
func (c Code) HTTPStatus() int { return c.row().status }

// Retryable reports whether the same call may succeed later unchanged.
func (c Code) Retryable() bool { return c.row().retry }

func (c Code) row() *struct {
	name   string
	status int
	retry  bool
} {
	if int(c) >= len(codes) {
		c = Internal
	}
	return &codes[c]
}

// Codes returns every code in order, for metrics that are made once per code.
func Codes() []Code {
	out := make([]Code, 0, len(codes)-1)
	for c := Internal; int(c) < len(codes); c++ {
		out = append(out, c)
	}
	return out
}

// What an operator can do about a failure, as log lines say it in their attribute do.
const (
	ReportBug = "report it with this line: it is a bug of edged"
	CheckDisk = "check the disk of the data directory: free space, and the kernel's log for errors"
)

// A Named is a contract's own word for an error, with the code and the wire number it stands for. It is itself an
// error, so that hot paths can return it as it is and callers can ask errors.Is(err, name). Immutable;
// safe for concurrent use.
type Named struct {
	code Code
	name string
	wire uint32
}

// Name declares a named error. A room declares its names once, as package variables; wire numbers are 16 or above
// (below are the plain codes) and unique in the program.
func Name(code Code, name string, wire uint32) *Named {
	return &Named{code: code, name: name, wire: wire}
}

// Error returns the name.
func (n *Named) Error() string { return n.name }

// Code returns the kind that the name stands for.
func (n *Named) Code() Code { return n.code }

// Wire returns the number by which the guest boundary knows the name.
func (n *Named) Wire() uint32 { return n.wire }

// New returns an error of this name. op says where, like "objects.Put"; detail is a sentence the caller may read.
func (n *Named) New(op, detail string) error {
	return &fault{code: n.code, named: n, op: op, detail: detail}
}

// Newf is New with a formatted detail.
func (n *Named) Newf(op, format string, args ...any) error {
	return n.New(op, fmt.Sprintf(format, args...))
}

// Wrap returns an error of this name whose cause is kept for the log.
func (n *Named) Wrap(op string, cause error) error {
	return &fault{code: n.code, named: n, op: op, cause: cause}
}

// New returns an error of the given code without a contract name. detail may be shown to the caller.
func New(code Code, op, detail string) error { return &fault{code: code, op: op, detail: detail} }

// Newf is New with a formatted detail.
func Newf(code Code, op, format string, args ...any) error {
	return New(code, op, fmt.Sprintf(format, args...))
}

// Wrap gives cause a code at a room's edge. A nil cause gives nil. The cause is for the log only.
func Wrap(code Code, op string, cause error) error {
	if cause == nil {
		return nil
	}
	return &fault{code: code, op: op, cause: cause}
}

type fault struct {
	code   Code
	named  *Named
	op     string
	detail string
	cause  error
}

// Error renders everything known, for logs.
func (f *fault) Error() string {
	s := f.op + ": "
	if f.named != nil {
		s += f.named.name
	} else {
		s += f.code.String()
	}
	if f.detail != "" {
		s += ": " + f.detail
	}
	if f.cause != nil {
		s += ": " + f.cause.Error()
	}
	return s
}

// Unwrap lets errors.Is and errors.As see the name and the cause.
func (f *fault) Unwrap() []error {
	var out []error
	if f.named != nil {
		out = append(out, f.named)
	}
	if f.cause != nil {
		out = append(out, f.cause)
	}
	return out
}
