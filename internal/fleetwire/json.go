package fleetwire

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"edged/internal/fault"
)

const maxError = 4 << 10 // bytes of an error document

// ReadJSON reads the one JSON document that r consists of into v, at most limit bytes of it: more is TooLarge, anything else
// than one document Invalid, and a reader that fails Unavailable. Members that v does not know are passed over: a newer edged
// may have written them.
func ReadJSON(r io.Reader, limit int64, v any) error {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return fault.Wrap(fault.Unavailable, "fleetwire.ReadJSON", err)
	case int64(len(b)) > limit:
		return fault.Newf(fault.TooLarge, "fleetwire.ReadJSON", "the document is longer than %d bytes", limit)
	case json.Unmarshal(b, v) != nil:
		return fault.New(fault.Invalid, "fleetwire.ReadJSON", "the document is malformed")
	}
	return nil
}

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

type errorJSON struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// WriteError answers with an error's status, code and detail. Its cause stays here.
func WriteError(w http.ResponseWriter, err error) {
	code := fault.CodeOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code.HTTPStatus())
	json.NewEncoder(w).Encode(errorJSON{code.String(), fault.Detail(err)}) // a client that has gone needs no answer
}

// ReadError returns the error that an answer of the given status carries, with op as its place. What WriteError did not write
// is Unavailable. The text of a peer is bounded and printable.
func ReadError(op string, status int, body io.Reader) error {
	var e errorJSON
	if err := ReadJSON(body, maxError, &e); err == nil {
		for _, c := range fault.Codes() {
			if c.String() == e.Code {
				return fault.New(c, op, printable(e.Detail))
			}
		}
	}
	return fault.Newf(fault.Unavailable, op, "the other node answered with status %d", status)
}

func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 1<<10)]
}
