package api

import (
	"encoding/json"
	"net/http"

	"edged/control/jsonraw"
	"edged/control/state"
)

// preview is R11: what a mutation would be refused for now, if for anything. Envelope and authorization are judged as for
// the mutation itself and answered with ordinary Problems.
func (c *call) preview() *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	body, p := c.document()
	if p != nil {
		return p
	}
	cmd := &state.Command{Actor: c.actor, Lane: lane}
	values, p := previewed(body, cmd)
	if p != nil {
		return p
	}
	denied, out, err := c.opt.Preview(c.r.Context(), cmd, values)
	switch {
	case err != nil:
		return c.refused(err)
	case denied != nil:
		return fromVerdict(denied)
	}
	answer := struct {
		Valid  bool        `json:"valid"`
		Errors []errorJSON `json:"errors"`
	}{out.Refusal == nil, []errorJSON{}}
	if v := out.Refusal; v != nil {
		answer.Errors = append(answer.Errors, errorJSON{wireCode(v.Seed), v.Detail()})
	}
	writeJSON(c.w, http.StatusOK, answer)
	return nil
}

// previewed reads the request document of a preview (host-api §10).
func previewed(body []byte, cmd *state.Command) (values Private, p *problem) {
	if jsonraw.KindOf(body) != jsonraw.Object {
		return nil, malformed("the body must be an object")
	}
	members := map[string]json.RawMessage{}
	for name, raw := range jsonraw.Members(body) {
		members[name] = raw
	}
	action, _ := jsonraw.Text(members["action"])
	needed := []string{"action"}
	switch action {
	case "create":
		cmd.Kind, needed = state.CreateResource, append(needed, "input")
	case "update":
		cmd.Kind, needed = state.UpdateResource, append(needed, "uid", "expectedGeneration", "input")
	case "delete":
		cmd.Kind, needed = state.DeleteResource, append(needed, "uid", "expectedGeneration")
	default:
		return nil, malformed("member action must be create, update or delete")
	}
	for _, name := range needed {
		if members[name] == nil {
			return nil, malformed("member " + name + " is missing")
		}
	}
	if len(members) != len(needed) {
		return nil, malformed("unknown member in the request")
	}
	if raw, ok := members["uid"]; ok {
		if cmd.UID, ok = jsonraw.Text(raw); !ok {
			return nil, malformed("member uid is malformed")
		}
		if cmd.Expected, p = generation(members["expectedGeneration"]); p != nil {
			return nil, p
		}
	}
	if raw, ok := members["input"]; ok {
		return envelope(raw, cmd.Kind == state.CreateResource, cmd)
	}
	return nil, nil
}

func generation(raw []byte) (uint64, *problem) {
	n, ok := jsonraw.Integer(raw)
	if !ok || n < 0 || n > state.MaxCounter {
		return 0, malformed("member expectedGeneration must be an integer from 0 to 9007199254740991")
	}
	return uint64(n), nil
}
