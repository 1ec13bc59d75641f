package node

import (
	"time"

	"edged/control/form"
	"edged/control/operator"
)

// cronRoom is what operators do with schedules.
func (n *Node) cronRoom() operator.Room {
	return operator.Room{Name: "cron", Routes: []operator.Route{
		{Name: "trigger", Method: "POST", Path: "triggers/{uid}/trigger", Changes: true, Serve: ofForm(form.CronTriggerURL, n.cronTrigger)},
	}}
}

// cronTrigger fires a trigger as if this minute matched.
func (n *Node) cronTrigger(c *operator.Call) error {
	m, err := n.cron.Trigger(c.Context(), c.Target.UID)
	if err != nil {
		return err
	}
	return c.JSON(map[string]string{"minute": time.UnixMilli(m.Minute).UTC().Format(time.RFC3339)})
}
