//go:build faultpoints

package control

import (
	"time"

	"edged/control/operator"
	"edged/control/state"
)

// testRoutes are the operators' calls of builds that test crashes: one takes a record out of band (REL-10).
func (c *Control) testRoutes() []operator.Route {
	return []operator.Route{{Name: "vanish", Method: "POST", Path: "vanish/{uid}", Changes: true, Serve: func(call *operator.Call) error {
		_, err := c.submit(&state.Command{Kind: state.Vanish, At: time.Now().UnixMilli(), UID: call.Value("uid")})
		if err != nil {
			return err
		}
		return call.JSON(struct{}{})
	}}}
}
