// Package event holds the plain types in which a request reaches a worker and its answer comes back.
//
//	event.go     Request, Body, Response
//	occasion.go  Scheduled, Batch: what else a worker is called for
//	receipt.go   Receipt, Invocation: what one has cost, for those who watch
//	errors.go    how an invocation can fail
//
// Invariants: no type of the HTTP front or of the sandbox's engine appears here, so that another front or another
// entrance (a service call) needs no change further in.
//
// Not here: running anything.
package event

import (
	"io"
	"time"

	"edged/internal/trace"
)

// Request is one HTTP request as a worker sees it. Every slice belongs to whoever fills it and must stay unchanged
// until Serve has returned; Body may be read until the exchange ended (its owner closes it then).
type Request struct {
	Method []byte // a token, as sent; the front has checked it
	URL    []byte // absolute: scheme, host, path and query as the client sent them, not normalised
	// Header is packed: name '\n' value '\n' for every field, in order of arrival, repeated fields kept. Names are
	// lower-case tokens; values are raw bytes without CR, LF and NUL. Edged-* fields are already gone.
	Header []byte
	Body   Body  // nil: there is no body, and the worker's request.body is null
	Length int64 // declared length of Body, -1 if unknown; 0 without Body
	// Arrived is when the front had the request's head; zero where no front was asked.
	Arrived time.Time

	Trace *trace.Span // whose step this request is; nil while nothing is traced. Its owner ends it, maybe before the invocation is over
}

// Body is a request body as it arrives. One goroutine reads at a time; Close may be called by another.
type Body interface {
	// TryRead copies bytes that are already here, without waiting. It returns 0, nil when there are none yet and
	// io.EOF (with or after the last bytes) at the end.
	TryRead(p []byte) (int, error)
	// Read waits for at least one byte. At the end it returns io.EOF; a body that was cut short, that outgrew the
	// limit or whose client left gives another error.
	Read(p []byte) (int, error)
	// Close tells the sender that nobody reads on; pending and later reads fail. Idempotent.
	Close() error
}

// Response is filled by Serve. Its owner may reuse it after Reset.
type Response struct {
	Status int
	Header []byte // packed as in Request; names lower-case, values without CR, LF and NUL
	Null   bool   // the response has a null body (differs from an empty one across a service call)
	Body   []byte // the whole body if Stream is nil; appended to, so that its capacity is reused
	// Stream, if not nil, is the body as the worker produces it: Read waits, gives io.EOF at the normal end and another
	// error when the body failed (the peer must then see a cut body). Close cancels the worker's stream and must be
	// called exactly once, also after an error; another goroutine may call it while Read waits, and Read then fails.
	Stream io.ReadCloser
	Length int64  // the length that the worker declared for Stream, -1 if none; len(Body) without Stream
	Origin Origin // how warm the sandbox was, for trusted diagnostics
	// Receipt, if the caller has set it, is filled by Serve: final if the invocation is over then, else as it stood at the head.
	Receipt *Receipt
}

// Reset makes r ready for another exchange and keeps its buffers.
func (r *Response) Reset() {
	*r = Response{Header: r.Header[:0], Body: r.Body[:0], Length: -1}
}

// Origin says where the sandbox of an invocation came from (node-surface §7, Edged-Sandbox).
type Origin uint8

// The origins.
const (
	Cold Origin = iota // made for this invocation
	Warm               // a live sandbox that held another image before
	Hot                // a ready sandbox of this very version
)

// String returns the origin as the header value has it.
func (o Origin) String() string {
	switch o {
	case Hot:
		return "hot"
	case Warm:
		return "warm"
	}
	return "cold"
}
