package control

import (
	"sync"
	"time"

	"edged/control/api"
	"edged/control/form"
	"edged/control/operator"
	"edged/control/state"
	"edged/internal/fault"
)

// homeTenant is the tenant of the bootstrap principal, whose operators work on the whole node.
const homeTenant = api.HomeTenant

// maxSpaces bounds the Spaces of one token.
const maxSpaces = 64

// useGrain is how coarse the time of a token's last use is: a token in constant use costs one command in so long.
const useGrain = 5 * time.Minute

type tokenJSON struct {
	ID        string     `json:"id"`
	Tenant    string     `json:"tenant"`
	Principal string     `json:"principal"`
	Role      state.Role `json:"role"`
	Spaces    []string   `json:"spaces"`
	CreatedAt string     `json:"createdAt"`
	UsedAt    *string    `json:"usedAt"`
	Secret    string     `json:"token,omitempty"`
}

func viewToken(t *state.Token, secret string) tokenJSON {
	v := tokenJSON{t.ID, t.Tenant, t.Principal, t.Role, t.Spaces, state.Time(t.CreatedAt), nil, secret}
	if v.Spaces == nil {
		v.Spaces = []string{}
	}
	if t.UsedAt != 0 {
		at := state.Time(t.UsedAt)
		v.UsedAt = &at
	}
	return v
}

// managed refuses a caller that may not manage the principals of a tenant. That needs every Space of it.
func managed(c *operator.Call, tenant string) error {
	if !c.Caller.May(tenant) {
		return fault.New(fault.Denied, "control.tokens", "only operators of a whole tenant manage its principals")
	}
	return nil
}

func (c *Control) listTokens(call *operator.Call) error {
	if err := managed(call, call.Caller.Tenant); err != nil {
		return err
	}
	out := struct {
		Items []tokenJSON `json:"items"`
	}{Items: []tokenJSON{}}
	for _, t := range c.state.Tokens() {
		if call.Caller.May(t.Tenant) {
			out.Items = append(out.Items, viewToken(t, ""))
		}
	}
	return call.JSON(out)
}

func (c *Control) createToken(call *operator.Call) error {
	var in struct {
		Tenant    string     `json:"tenant"`
		Principal string     `json:"principal"`
		Role      state.Role `json:"role"`
		Spaces    []string   `json:"spaces"`
	}
	if err := call.Decode(&in); err != nil {
		return err
	}
	bad := func(what string) error { return fault.New(fault.Invalid, "control.tokens", what) }
	switch {
	case !form.IsName(in.Tenant) || !form.IsName(in.Principal) || !in.Role.Valid():
		return bad("tenant, principal and role (reader, editor or operator) are needed")
	case len(in.Spaces) > maxSpaces:
		return bad("there are too many spaces")
	}
	for _, space := range in.Spaces {
		if !form.IsName(space) {
			return bad("a name in spaces is malformed")
		}
	}
	call.About(in.Tenant, "", in.Principal)
	if err := managed(call, in.Tenant); err != nil {
		return err
	}
	secret := newSecret()
	t := &state.Token{ID: "t-" + randomID(), Hash: state.TokenHash(secret), Tenant: in.Tenant, Principal: in.Principal, Role: in.Role,
		Spaces: in.Spaces, CreatedAt: time.Now().UnixMilli()}
	if _, err := c.submit(&state.Command{Kind: state.AddToken, Actor: actorOf(call.Caller), Token: t}); err != nil {
		return err
	}
	return call.JSON(viewToken(t, secret))
}

func (c *Control) revokeToken(call *operator.Call) error {
	if err := managed(call, call.Caller.Tenant); err != nil {
		return err
	}
	t := c.state.Token(call.Value("id"))
	if t == nil || !call.Caller.May(t.Tenant) {
		return fault.New(fault.NotFound, "control.tokens", "no such token")
	}
	call.About(t.Tenant, t.ID, t.Principal)
	if _, err := c.submit(&state.Command{Kind: state.RemoveToken, Actor: actorOf(call.Caller), Token: &state.Token{ID: t.ID}}); err != nil {
		return err
	}
	return call.JSON(viewToken(t, ""))
}

func actorOf(c *operator.Caller) state.Actor {
	return state.Actor{Token: c.Token, Tenant: c.Tenant, Principal: c.Principal, Role: state.Operator, Spaces: c.Spaces}
}

// uses remembers which tokens were used, until it is written down. The zero value is ready.
type uses struct {
	mu   sync.Mutex
	last map[string]int64 // by token id, Unix ms
}

func (u *uses) note(token string) {
	now := time.Now().UnixMilli()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]int64{}
	}
	u.last[token] = now
}

// take empties what was noted.
func (u *uses) take() map[string]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = nil
	return last
}

// flushUses writes the last use of tokens down, all in one command, and only where it tells something new.
func (c *Control) flushUses() {
	used := map[string]int64{}
	for id, at := range c.used.take() {
		if t := c.state.Token(id); t != nil && at-t.UsedAt >= useGrain.Milliseconds() {
			used[id] = at
		}
	}
	if len(used) > 0 {
		c.tell(&state.Command{Kind: state.UseTokens, Used: used})
	}
}
