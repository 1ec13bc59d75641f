package client

import (
	"context"
	"encoding/json"
	"net/http"

	"edged/internal/fault"
)

// Preview is a mutation whose refusal is asked for beforehand (host-api §10): a create with Input, an update with UID,
// Generation and Input, or a delete with UID and Generation.
type Preview struct {
	Action     string // create, update or delete
	UID        string
	Generation int64
	Input      any // Create, or Spec and PrivateInputs of an update
}

// Objection is why a mutation would be refused now.
type Objection struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Preview asks what a mutation would be refused for; none is advice only, the mutation itself is judged anew. Nothing is
// changed or kept. The error is that of a question that could not be asked.
func (c *Client) Preview(ctx context.Context, p Preview) ([]Objection, error) {
	const op = "client.Preview"
	root, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"action": p.Action}
	if p.Action != "create" {
		doc["uid"], doc["expectedGeneration"] = p.UID, p.Generation
	}
	if p.Action != "delete" {
		doc["input"] = p.Input
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, err)
	}
	var answer struct {
		Valid  *bool       `json:"valid"`
		Errors []Objection `json:"errors"`
	}
	req := request{method: http.MethodPost, url: root + "/previews", body: body, mediaType: "application/json", repeat: true}
	if _, err := c.call(ctx, req, &answer); err != nil {
		return nil, err
	}
	if answer.Valid == nil || *answer.Valid != (len(answer.Errors) == 0) {
		return nil, fault.New(fault.Internal, op, "the node answered a preview with something else")
	}
	return answer.Errors, nil
}

// Update is the body of an update, for a Preview of it.
type Update struct {
	Spec          any               `json:"spec"`
	PrivateInputs map[string]string `json:"privateInputs,omitempty"`
}
