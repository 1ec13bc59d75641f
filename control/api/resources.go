package api

import (
	"crypto/sha256"
	"net/http"
	"strconv"

	"edged/control/jsonraw"
	"edged/control/state"
)

// lane names this API in idempotency records.
const lane = "v2"

func (c *call) resources() *problem {
	if c.r.Method == http.MethodGet {
		return c.list()
	}
	return c.mutate(state.CreateResource)
}

func (c *call) resource() *problem {
	switch c.r.Method {
	case http.MethodPut:
		return c.mutate(state.UpdateResource)
	case http.MethodDelete:
		return c.mutate(state.DeleteResource)
	}
	return c.read()
}

func (c *call) read() *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	r, v := c.opt.State.Find(&c.actor, c.id)
	if v != nil {
		return fromVerdict(v)
	}
	c.w.Header().Set("ETag", `"`+strconv.FormatUint(r.Revision, 10)+`"`)
	writeBytes(c.w, http.StatusOK, "application/json", state.Representation(r))
	return nil
}

// mutate carries a create, update or delete through steps 5 to 7 and hands it on.
func (c *call) mutate(kind state.Kind) *problem {
	cmd := &state.Command{Kind: kind, Actor: c.actor, Lane: lane, UID: c.id}
	c.cmd = cmd
	if _, p := c.query(); p != nil {
		return p
	}
	var p *problem
	if cmd.Key, p = c.idempotencyKey(); p != nil {
		return p
	}
	if kind != state.CreateResource {
		if cmd.Expected, p = c.expectedGeneration(); p != nil {
			return p
		}
	}
	body, values, p := c.mutationBody(kind, cmd)
	if p != nil {
		return p
	}
	fence := strconv.FormatUint(cmd.Expected, 10)
	if kind == state.CreateResource { // it means nothing there, and is part of the request all the same
		for _, text := range c.r.Header.Values("Takoform-Expected-Generation") {
			fence += "\n" + text
		}
	}
	if cmd.Fingerprint, p = fingerprint(c.r.Method, c.rel, fence, withoutValues(body, values)); p != nil {
		return p
	}
	out, err := c.opt.Mutate(c.r.Context(), cmd, values)
	switch {
	case err != nil:
		return c.refused(err)
	case out.Refusal != nil:
		return fromVerdict(out.Refusal)
	}
	c.answer(out.Operation)
	return nil
}

func (c *call) mutationBody(kind state.Kind, cmd *state.Command) ([]byte, Private, *problem) {
	if kind == state.DeleteResource {
		return nil, nil, c.empty()
	}
	body, p := c.document()
	if p != nil {
		return nil, nil, p
	}
	values, p := envelope(body, kind == state.CreateResource, cmd)
	return body, values, p
}

// fingerprint is the identity of a request (host-api §7.4): method, path below the root, query (none is allowed), fence
// and JSON value. Values of private inputs are left out of it; they are compared by their marks.
func fingerprint(method, path, fence string, body []byte) ([]byte, *problem) {
	h := sha256.New()
	for _, part := range [...]string{method, path, fence} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	if body != nil {
		value, err := jsonraw.Fingerprint(body)
		if err != nil {
			return nil, malformed("a number in the body is out of range")
		}
		h.Write(value[:])
	}
	return h.Sum(nil), nil
}

// answer sends the Operation that a mutation led to: 200 exactly when it is terminal.
func (c *call) answer(op *state.Operation) {
	c.w.Header().Set("Location", c.opt.Origin+Root+"/operations/"+op.ID)
	status := http.StatusOK
	if !op.Status.Terminal() {
		status = http.StatusAccepted
		c.w.Header().Set("Retry-After", "1")
	}
	writeJSON(c.w, status, viewOperation(op))
}

func (c *call) operation() *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	op, v := c.opt.State.FindOperation(&c.actor, c.id)
	if v != nil {
		return fromVerdict(v)
	}
	writeJSON(c.w, http.StatusOK, viewOperation(op))
	return nil
}

type operationJSON struct {
	ID          string       `json:"id"`
	ResourceUID string       `json:"resourceUid"`
	Action      string       `json:"action"`
	Generation  uint64       `json:"generation"`
	Status      state.Status `json:"status"`
	Effect      state.Effect `json:"effect"`
	CreatedAt   string       `json:"createdAt"`
	UpdatedAt   string       `json:"updatedAt"`
	RetainUntil string       `json:"retainUntil"`
	Error       *errorJSON   `json:"error,omitempty"`
	Input       *inputJSON   `json:"inputRequired,omitempty"`
}

type inputJSON struct {
	Names  []string          `json:"names"`
	Reason state.InputReason `json:"reason"`
}

type errorJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func viewOperation(op *state.Operation) operationJSON {
	v := operationJSON{
		ID: op.ID, ResourceUID: op.Resource, Action: string(op.Action), Generation: op.Generation, Status: op.Status, Effect: op.Effect,
		CreatedAt: state.Time(op.CreatedAt), UpdatedAt: state.Time(op.UpdatedAt), RetainUntil: state.Time(op.RetainUntil),
	}
	if op.Seed != "" {
		v.Error = &errorJSON{wireCode(op.Seed), op.Message}
	}
	if op.Status == state.Waiting {
		v.Input = &inputJSON{op.Command.Inputs.Names, op.Reason}
	}
	return v
}
