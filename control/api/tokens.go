package api

import (
	"encoding/json"
	"net/http"

	"edged/control/form"
	"edged/control/jsonraw"
	"edged/control/state"
)

// homeTenant is the tenant of the bootstrap principal. Its operators with all Spaces manage the principals of every
// tenant; other operators those of their own.
const homeTenant = "default"

// maxSpaces bounds the Spaces of one token.
const maxSpaces = 64

type tokenJSON struct {
	ID        string     `json:"id"`
	Tenant    string     `json:"tenant"`
	Principal string     `json:"principal"`
	Role      state.Role `json:"role"`
	Spaces    []string   `json:"spaces"`
	CreatedAt string     `json:"createdAt"`
	Secret    string     `json:"token,omitempty"`
}

func viewToken(t *state.Token, secret string) tokenJSON {
	spaces := t.Spaces
	if spaces == nil {
		spaces = []string{}
	}
	return tokenJSON{t.ID, t.Tenant, t.Principal, t.Role, spaces, state.Time(t.CreatedAt), secret}
}

// manages says whether the actor may manage principals of a tenant.
func manages(a *state.Actor, tenant string) bool {
	return a.Role == state.Operator && len(a.Spaces) == 0 && (a.Tenant == homeTenant || a.Tenant == tenant)
}

func (c *call) tokens() *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	if c.r.Method == http.MethodPost {
		return c.createToken()
	}
	if !manages(&c.actor, c.actor.Tenant) {
		return operatorOnly
	}
	out := struct {
		Items []tokenJSON `json:"items"`
	}{Items: []tokenJSON{}}
	for _, t := range c.opt.State.Tokens() {
		if manages(&c.actor, t.Tenant) {
			out.Items = append(out.Items, viewToken(t, ""))
		}
	}
	writeJSON(c.w, http.StatusOK, "application/json", out)
	return nil
}

func (c *call) createToken() *problem {
	body, p := c.document()
	if p != nil {
		return p
	}
	t, p := readToken(body)
	if p != nil {
		return p
	}
	if !manages(&c.actor, t.Tenant) {
		return operatorOnly
	}
	made, secret, err := c.opt.AddToken(c.r.Context(), t)
	if err != nil {
		return c.refused(err)
	}
	writeJSON(c.w, http.StatusOK, "application/json", viewToken(made, secret))
	return nil
}

func readToken(body []byte) (t state.Token, p *problem) {
	if jsonraw.KindOf(body) != jsonraw.Object {
		return t, malformed("the body must be an object")
	}
	for name, raw := range jsonraw.Members(body) {
		switch name {
		case "tenant":
			t.Tenant, p = member(name, raw, form.IsName)
		case "principal":
			t.Principal, p = member(name, raw, form.IsName)
		case "role":
			var role string
			role, p = member(name, raw, func(s string) bool { return state.Role(s).Valid() })
			t.Role = state.Role(role)
		case "spaces":
			t.Spaces, p = readSpaces(raw)
		default:
			p = malformed("unknown member in the request")
		}
		if p != nil {
			return t, p
		}
	}
	if t.Tenant == "" || t.Principal == "" || t.Role == "" {
		return t, malformed("tenant, principal and role are needed")
	}
	return t, nil
}

func readSpaces(raw json.RawMessage) ([]string, *problem) {
	if jsonraw.KindOf(raw) != jsonraw.Array {
		return nil, malformed("member spaces must be an array")
	}
	var out []string
	for item := range jsonraw.Items(raw) {
		space, p := member("spaces", item, form.IsName)
		if p != nil {
			return nil, p
		}
		if out = append(out, space); len(out) > maxSpaces {
			return nil, malformed("member spaces has too many entries")
		}
	}
	return out, nil
}

func (c *call) token() *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	if !manages(&c.actor, c.actor.Tenant) {
		return operatorOnly
	}
	for _, t := range c.opt.State.Tokens() {
		if t.ID != c.id || !manages(&c.actor, t.Tenant) {
			continue
		}
		if err := c.opt.RemoveToken(c.r.Context(), t.ID); err != nil {
			return c.refused(err)
		}
		writeJSON(c.w, http.StatusOK, "application/json", viewToken(t, ""))
		return nil
	}
	return &problem{status: http.StatusNotFound, code: "not_found", detail: "no such token"}
}
