package operator

import (
	"errors"
	"net/http"

	"edged/control/rfc9457"
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
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	rfc9457.Problem{Status: status, Code: code, Detail: detail}.Write(w)
}
