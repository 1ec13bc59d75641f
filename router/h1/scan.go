package h1

import (
	"bytes"
	"errors"
)

// Why a head is refused. Each is one row of node-surface §7.
var (
	ErrBad             = errors.New("malformed request")
	ErrTargetTooLong   = errors.New("request target too long")
	ErrFieldsTooLarge  = errors.New("header fields too large")
	ErrNotImplemented  = errors.New("method or upgrade not implemented")
	errLineTerminator  = bad("a line ends without CR LF")
	errFirstByte       = bad("not a request line")
	errSeveralEmpty    = bad("several empty lines before the request line")
	errRequestLine     = bad("request line")
	errVersion         = bad("protocol version")
	errTarget          = bad("request target")
	errFieldName       = bad("field name")
	errFieldValue      = bad("field value")
	errHost            = bad("no, several or malformed host")
	errHostMismatch    = bad("target and host disagree")
	errFraming         = bad("ambiguous or unknown body framing")
	errChunk           = bad("chunked body")
	errTrailerTooLarge = bad("trailer too large")
)

// bad makes an error that is ErrBad to its callers and says more in a log.
func bad(what string) error { return &badError{what} }

type badError struct{ what string }

func (e *badError) Error() string        { return ErrBad.Error() + ": " + e.what }
func (e *badError) Is(target error) bool { return target == ErrBad }

// Limits bounds a request head.
type Limits struct {
	Target     int // bytes of the request target
	Fields     int // number of header fields
	FieldBytes int // bytes of all header lines together, with their line ends
}

// lineExtra is what a request line may hold besides its target: method, version, spaces and line end.
const lineExtra = 64

// MaxHead returns the size of the largest head that the limits let through.
func (l Limits) MaxHead() int { return 2 + l.Target + lineExtra + l.FieldBytes + 2 }

// Scanner looks for the end of one request head while its bytes arrive. The zero value is ready for a head; it keeps only
// positions, so the buffer may move between calls.
type Scanner struct {
	seen    int  // bytes already looked at
	line    int  // where the current line starts
	fields  int  // where the header lines start, 0 before the request line ended
	count   int  // header lines so far
	skipped bool // an empty line came before the request line
}

// Scan looks at b, which holds all bytes of the head so far (and perhaps more). It returns the head's length, blank line
// included, 0 while it is not complete, or ErrBad, ErrTargetTooLong or ErrFieldsTooLarge as soon as the head can only be
// refused.
func (s *Scanner) Scan(b []byte, lim Limits) (int, error) {
	for {
		if s.fields == 0 && s.line < len(b) && !isToken(b[s.line]) && b[s.line] != '\r' && b[s.line] != '\n' {
			return 0, errFirstByte // a TLS hello, say: do not wait for a line end that never comes
		}
		i := bytes.IndexByte(b[s.seen:], '\n')
		if i < 0 {
			s.seen = len(b)
			return 0, s.over(len(b), lim)
		}
		end := s.seen + i
		if end == s.line || b[end-1] != '\r' {
			return 0, errLineTerminator
		}
		if err := s.over(end+1, lim); err != nil {
			return 0, err
		}
		empty := end-1 == s.line
		s.seen, s.line = end+1, end+1
		switch {
		case s.fields == 0 && empty:
			if s.skipped {
				return 0, errSeveralEmpty
			}
			s.skipped = true // RFC 9112 §2.2: some clients end a body with one line end too many
		case s.fields == 0:
			s.fields = end + 1
		case empty:
			return end + 1, nil
		default:
			if s.count++; s.count > lim.Fields {
				return 0, ErrFieldsTooLarge
			}
		}
	}
}

// over reports whether the head, which reaches at least to n, is larger than the limits.
func (s *Scanner) over(n int, lim Limits) error {
	switch {
	case s.fields == 0 && n-s.line > lim.Target+lineExtra:
		return ErrTargetTooLong
	case s.fields > 0 && n-s.fields > lim.FieldBytes+2:
		return ErrFieldsTooLarge
	}
	return nil
}
