package api

import (
	"bytes"
	"encoding/json"
	"log/slog"

	"edged/control/jsonraw"
	"edged/control/state"
)

// Private are the values of private inputs by name, in clear. They live as long as their request and print as nothing.
type Private map[string]string

// String hides the values.
func (Private) String() string { return "[private]" }

// GoString hides the values.
func (Private) GoString() string { return "[private]" }

// LogValue hides the values.
func (Private) LogValue() slog.Value { return slog.StringValue("[private]") }

// privateInputs reads name to string, without coercion. The result is not nil.
func privateInputs(raw []byte) (Private, *problem) {
	if jsonraw.KindOf(raw) != jsonraw.Object {
		return nil, malformed("member privateInputs must be an object")
	}
	values := Private{}
	for name, value := range jsonraw.Members(raw) {
		text, ok := jsonraw.Text(value)
		if !ok {
			return nil, malformed("a private input must be a string")
		}
		values[name] = text
	}
	return values, nil
}

// withoutValues returns a request document as it counts for its fingerprint: with the names of private inputs and without
// their values, since a plain digest of a short value gives it away. Other documents are returned as they are.
func withoutValues(body []byte, values Private) []byte {
	if values == nil {
		return body
	}
	names := make(map[string]bool, len(values))
	for name := range values {
		names[name] = true
	}
	out := bytes.NewBuffer(make([]byte, 0, len(body)))
	sep := byte('{')
	for name, raw := range jsonraw.Members(body) {
		out.WriteByte(sep)
		out.Write(text(name))
		out.WriteByte(':')
		if name == "privateInputs" {
			raw = text(names)
		}
		out.Write(raw)
		sep = ','
	}
	out.WriteByte('}')
	return out.Bytes()
}

// text renders strings and booleans, which cannot fail.
func text(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("api: " + err.Error())
	}
	return raw
}

// replenish is R10: the private inputs of the original request once more. It is no new intent: no key, no generation.
func (c *call) replenish() *problem {
	cmd := &state.Command{Kind: state.Replenish, Actor: c.actor, Operation: c.id}
	c.cmd = cmd
	if _, p := c.query(); p != nil {
		return p
	}
	body, p := c.document()
	if p != nil {
		return p
	}
	if jsonraw.KindOf(body) != jsonraw.Object {
		return malformed("the body must be an object")
	}
	var values Private
	for name, raw := range jsonraw.Members(body) {
		if name != "privateInputs" {
			return malformed("unknown member in the request")
		}
		if values, p = privateInputs(raw); p != nil {
			return p
		}
	}
	if values == nil {
		return malformed("member privateInputs is missing")
	}
	out, err := c.opt.Replenish(c.r.Context(), cmd, values)
	switch {
	case err != nil:
		return c.refused(err)
	case out.Refusal != nil:
		return fromVerdict(out.Refusal)
	}
	writeJSON(c.w, 200, viewOperation(out.Operation))
	return nil
}
