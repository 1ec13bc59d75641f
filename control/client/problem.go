package client

import (
	"fmt"

	"edged/internal/fault"
)

// Problem is a refusal in the node's own words (host-api §11). errors.As finds it in what the calls return; fault.CodeOf
// gives its kind.
type Problem struct {
	Status      int    `json:"status"`
	Code        string `json:"code"`
	Title       string `json:"title"`
	Detail      string `json:"detail"`
	OperationID string `json:"operationId"`
}

// Error returns the code and, where there is one, the sentence.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return fmt.Sprintf("%d %s", p.Status, p.Code)
	}
	return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail)
}

// OperationError says that an accepted Operation failed, stands still until someone acts, or had not ended when the time for it was
// over. errors.As finds it in what Wait returns.
type OperationError struct{ Operation *Operation }

// Error returns what the Operation says of itself.
func (e *OperationError) Error() string {
	op := e.Operation
	if op.Error == nil {
		return fmt.Sprintf("operation %s is %s", op.ID, op.Status)
	}
	return fmt.Sprintf("operation %s is %s: %s: %s", op.ID, op.Status, op.Error.Code, op.Error.Message)
}

// kind is the fault code of an HTTP status.
func kind(status int) fault.Code {
	switch status {
	case 404, 410:
		return fault.NotFound
	case 401, 403:
		return fault.Denied
	case 409, 428:
		return fault.Conflict
	case 413:
		return fault.TooLarge
	case 429:
		return fault.Limited
	case 502, 503:
		return fault.Unavailable
	case 504:
		return fault.Timeout
	}
	if status >= 500 {
		return fault.Internal
	}
	return fault.Invalid
}
