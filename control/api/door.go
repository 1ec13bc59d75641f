package api

import (
	"edged/control/operator"
	"edged/control/state"
)

// HomeTenant is the tenant of the bootstrap principal. Its operators with all Spaces work on the whole node; other
// operators on their own tenant.
const HomeTenant = "default"

// operator lets an operator in at the operators' door.
func (c *call) operator() *problem {
	if c.actor.Role != state.Operator {
		return operatorsOnly
	}
	c.opt.Operator.Serve(c.w, c.r, &operator.Caller{
		Tenant: c.actor.Tenant, Principal: c.actor.Principal, Token: c.actor.Token, Spaces: c.actor.Spaces,
		Whole: c.actor.Tenant == HomeTenant && len(c.actor.Spaces) == 0,
	})
	return nil
}
