package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"edged/internal/fault"
)

var errMediaType = fault.New(fault.Invalid, "operator.Decode", "the body must be application/json")

// codes are the Problem codes of errors that have no name of their own, those of host-api §11 where it has one.
var codes = map[fault.Code]string{
	fault.Invalid: "invalid_request", fault.NotFound: "not_found", fault.TooLarge: "request_too_large", fault.Limited: "rate_limited",
	fault.Denied: "forbidden", fault.Conflict: "conflict", fault.Unavailable: "temporarily_unavailable",
	fault.Timeout: "temporarily_unavailable", fault.Canceled: "temporarily_unavailable",
}

// Code returns status and Problem code of an error.
func Code(err error) (status int, code string) {
	c := fault.CodeOf(err)
	switch {
	case err == nil:
		return http.StatusOK, ""
	case c == fault.Internal:
		return http.StatusInternalServerError, "internal_error"
	case errors.Is(err, errMediaType):
		return http.StatusUnsupportedMediaType, "unsupported_media_type"
	case c == fault.Timeout || c == fault.Canceled:
		return http.StatusServiceUnavailable, codes[c]
	case fault.NamedOf(err) != nil:
		return c.HTTPStatus(), fault.NameOf(err)
	}
	return c.HTTPStatus(), codes[c]
}

// writeProblem answers with an error (RFC 9457, host-api §11).
func writeProblem(w http.ResponseWriter, err error) {
	status, code := Code(err)
	detail := ""
	if status != http.StatusInternalServerError {
		detail = fault.Detail(err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // strings and a number always render
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
		Detail string `json:"detail,omitempty"`
	}{"about:blank", http.StatusText(status), status, code, detail})
	h := w.Header()
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that left is told nothing
}
