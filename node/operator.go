package node

import (
	"edged/control/operator"
	"edged/internal/fault"
)

// operatorRooms are the operators' calls of the rooms that this node has.
func (n *Node) operatorRooms() []operator.Room {
	return []operator.Room{n.kvRoom(), n.sqlRoom(), n.queueRoom(), n.objectsRoom(), n.cronRoom(), n.workersRoom()}
}

// ofForm runs serve only for a Resource of the Form; every other looks as if it were not there.
func ofForm(formURL string, serve func(*operator.Call) error) func(*operator.Call) error {
	return func(c *operator.Call) error {
		if c.Target.Form != formURL {
			return fault.Newf(fault.NotFound, "node.operator", "%s is no Resource of the Form %s", c.Target.UID, formURL)
		}
		return serve(c)
	}
}
