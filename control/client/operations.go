package client

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"edged/internal/fault"
)

// Operation is the progress of one accepted mutation (host-api §7).
type Operation struct {
	ID            string `json:"id"`
	ResourceUID   string `json:"resourceUid"`
	Action        string `json:"action"`
	Generation    int64  `json:"generation"`
	Status        string `json:"status"`
	Effect        string `json:"effect"`
	CreatedAt     string `json:"createdAt"`
	UpdatedAt     string `json:"updatedAt"`
	RetainUntil   string `json:"retainUntil"`
	InputRequired *struct {
		Names  []string `json:"names"`
		Reason string   `json:"reason"`
	} `json:"inputRequired,omitempty"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`

	retryAfter time.Duration // what the answer that brought it asked for
}

// Terminal reports whether the Operation has ended, well or not.
func (o *Operation) Terminal() bool { return o.Status == "succeeded" || o.Status == "failed" }

// check refuses an Operation that this program cannot follow.
func (o *Operation) check() error {
	switch o.Status {
	case "queued", "running", "waiting_input", "reconciling", "succeeded", "failed":
		if o.ID != "" {
			return nil
		}
	}
	return fault.Newf(fault.Internal, "client.Operation", "the node answered with an Operation %.64q of unknown status %.64q", o.ID, o.Status)
}

// Operation returns the Operation with this id.
func (c *Client) Operation(ctx context.Context, id string) (*Operation, error) {
	root, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	op := new(Operation)
	r, err := c.call(ctx, request{method: "GET", url: root + "/operations/" + url.PathEscape(id), repeat: true}, op)
	if err != nil {
		return nil, err
	}
	op.retryAfter = r.retryAfter
	return op, op.check()
}

// Wait follows an Operation until it has succeeded and returns it as it then is. An Operation that failed, or that waits
// for private inputs, ends the wait with an *OperationError. Between looks it waits as long as the node asked for, else
// from 100 ms up to 2 s. ctx bounds it; an *OperationError tells then too how far it had come.
func (c *Client) Wait(ctx context.Context, op *Operation) (*Operation, error) {
	pause := 100 * time.Millisecond
	for {
		switch op.Status {
		case "succeeded":
			return op, nil
		case "failed":
			return op, fault.Wrap(fault.Conflict, "client.Wait", &OperationError{op})
		case "waiting_input":
			return op, fault.Wrap(fault.Invalid, "client.Wait", &OperationError{op})
		}
		wait := op.retryAfter
		if wait == 0 {
			wait = pause
			pause = min(2*pause, 2*time.Second)
		}
		err := sleep(ctx, wait)
		var next *Operation
		if err == nil {
			next, err = c.Operation(ctx, op.ID)
		}
		if err != nil && ctx.Err() != nil {
			return op, fault.Wrap(fault.CodeOf(err), "client.Wait", fmt.Errorf("%w; %w", err, &OperationError{op}))
		}
		if err != nil {
			return op, err
		}
		op = next
	}
}
