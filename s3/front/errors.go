package front

import (
	"errors"
	"net/http"

	"github.com/versity/versitygw/s3err"

	"edged/control/client"
	"edged/internal/fault"
)

// unmapped refuses what the contract has no word for; what is a subject and its verb.
func unmapped(what string) s3err.APIError {
	return s3err.APIError{Code: "NotImplemented", Description: what + " not available in these buckets.", HTTPStatusCode: http.StatusNotImplemented}
}

var (
	errUnavailable = s3err.APIError{Code: "ServiceUnavailable", Description: "The node cannot do this now. Please try again.", HTTPStatusCode: http.StatusServiceUnavailable}
	errBucketState = s3err.APIError{Code: "InvalidBucketState", Description: "A worker still binds this bucket.", HTTPStatusCode: http.StatusConflict}
)

// told turns the error of a call of the node into one of S3. What a client cannot know is logged.
func (f *front) told(op string, err error) error {
	var already s3err.S3Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	var p *client.Problem
	if errors.As(err, &p) {
		switch p.Code {
		case "not_found":
			return s3err.GetAPIError(s3err.ErrNoSuchKey)
		case "invalid_key":
			return s3err.GetAPIError(s3err.ErrInvalidURI)
		case "invalid_body":
			return s3err.GetAPIError(s3err.ErrIncompleteBody)
		case "invalid_cursor":
			return s3err.APIError{Code: "InvalidArgument", Description: "The continuation token provided is incorrect", HTTPStatusCode: http.StatusBadRequest}
		case "invalid_part":
			return s3err.GetAPIError(s3err.ErrInvalidPart)
		case "upload_not_found":
			return s3err.GetAPIError(s3err.ErrNoSuchUpload)
		case "value_too_large":
			return s3err.GetAPIError(s3err.ErrEntityTooLarge)
		case "precondition_failed":
			return s3err.GetAPIError(s3err.ErrPreconditionFailed)
		case "range_not_satisfiable":
			return s3err.GetAPIError(s3err.ErrInvalidRange)
		case "dependency_conflict":
			return errBucketState
		case "rate_limited":
			return s3err.GetAPIError(s3err.ErrSlowDown)
		case "invalid_request":
			return s3err.APIError{Code: "InvalidRequest", Description: p.Detail, HTTPStatusCode: http.StatusBadRequest}
		}
	}
	f.opt.Log.Error("the node did not do what was asked", "call", op, "err", err)
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Timeout, fault.Canceled:
		return errUnavailable
	case fault.Denied:
		return s3err.GetAPIError(s3err.ErrAccessDenied)
	}
	return s3err.GetAPIError(s3err.ErrInternalError)
}

// isProblem reports whether the node refused with this code.
func isProblem(err error, code string) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Code == code
}
