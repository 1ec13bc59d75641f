package control

import (
	"fmt"
	"slices"
	"time"

	"edged/control/audit"
	"edged/control/operator"
	"edged/control/plan"
	"edged/control/state"
	"edged/internal/fault"
)

// fleetRoom is what operators do with the fleet.
func (c *Control) fleetRoom() operator.Room {
	return operator.Room{Name: "fleet", Routes: []operator.Route{
		{Name: "nodes", Method: "GET", Path: "nodes", Whole: true, Serve: c.listMembers},
		{Name: "invite", Method: "POST", Path: "invites", Body: operator.JSONBody, Changes: true, Whole: true, Serve: c.serveInvite},
		{Name: "drain", Method: "POST", Path: "nodes/{node}/drain", Body: operator.JSONBody, Changes: true, Whole: true, Serve: c.serveDrain},
		{Name: "add-control", Method: "POST", Path: "nodes/{node}/vote", Changes: true, Whole: true, Serve: c.serveAddControl},
		{Name: "remove", Method: "DELETE", Path: "nodes/{node}", Query: []string{"loseData"}, Changes: true, Whole: true, Serve: c.serveRemove},
	}}
}

// memberJSON is a member as operators see it.
type memberJSON struct {
	*plan.Member
	Joined  string `json:"joined"`
	Founder bool   `json:"founder,omitempty"`
	Votes   bool   `json:"votes,omitempty"`   // about the control log
	Leads   bool   `json:"leads,omitempty"`   // the control room
	Serves  uint64 `json:"serves,omitempty"`  // index of the plan that it last said it serves; 0 if it did not
	Version string `json:"version,omitempty"` // of its program, as it last said
	Level   int    `json:"level,omitempty"`   // protocol level of that; 0 if it announced none
}

type inviteJSON struct {
	ID      string            `json:"id"`
	Control bool              `json:"control,omitempty"`
	Edge    bool              `json:"edge,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Expires string            `json:"expires"`
	UsedBy  string            `json:"usedBy,omitempty"`
}

func (c *Control) listMembers(call *operator.Call) error {
	out := struct {
		Items    []memberJSON `json:"items"`
		Invites  []inviteJSON `json:"invites"`
		Warnings []string     `json:"warnings"`
		Index    uint64       `json:"index"` // of the plan now
	}{[]memberJSON{}, []inviteJSON{}, []string{}, c.machine.planned.Load()}
	f := c.state.Fleet()
	votes, err := c.voters()
	if err != nil {
		return err
	}
	served := map[string]uint64{}
	if c.opt.Fleet != nil && c.opt.Fleet.Served != nil {
		served = c.opt.Fleet.Served()
	}
	said := c.announced()
	voters := 0
	for _, m := range f.Members {
		one := memberJSON{Member: plan.MemberOf(m), Joined: state.Time(m.JoinedAt), Founder: m.ID == f.Founder, Votes: slices.Contains(votes, m.ID),
			Leads: m.ID == c.leader(), Serves: served[m.ID], Version: said[m.ID].Version, Level: said[m.ID].Level}
		if m.ID == c.opt.NodeID {
			one.Serves = c.plans.at()
		}
		if one.Votes {
			voters++
		}
		if m.Control && !one.Votes {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s has the role control and does not vote yet: edged fleet add-control %s", m.Name, m.Name))
		}
		out.Items = append(out.Items, one)
	}
	now := time.Now().UnixMilli()
	for _, i := range f.Invites {
		if now < i.Expires {
			out.Invites = append(out.Invites, inviteJSON{i.ID, i.Control, i.Edge, i.Labels, state.Time(i.Expires), i.UsedBy})
		}
	}
	if w := levelWarning(votes, said); w != "" {
		out.Warnings = append(out.Warnings, w)
	}
	if voters == 2 || voters == 4 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d members vote, which bears the loss of no more of them than %d would: have 1, 3 or 5", voters, voters-1))
	}
	return call.JSON(out)
}

func (c *Control) serveInvite(call *operator.Call) error {
	var in struct {
		Control bool              `json:"control"`
		Edge    bool              `json:"edge"`
		Labels  map[string]string `json:"labels"`
		Seconds int64             `json:"seconds"`
	}
	if err := call.Decode(&in); err != nil {
		return err
	}
	if in.Seconds < 0 || in.Seconds > int64(longestInvite/time.Second) {
		in.Seconds = 0 // out of bounds either way, and no overflow
	}
	invite, expires, err := c.Invite(call.Context(), actorOf(call.Caller),
		InviteOptions{Control: in.Control, Edge: in.Edge, Labels: in.Labels, Life: time.Duration(in.Seconds) * time.Second})
	if err != nil {
		return err
	}
	return call.JSON(struct {
		Invite  string `json:"invite"`
		ID      string `json:"id"`
		Expires string `json:"expires"`
	}{invite.Text(), invite.ID, state.Time(expires.UnixMilli())})
}

// namedMember returns the member that the path names by its ID, else by its name.
func (c *Control) namedMember(call *operator.Call) (*state.Member, error) {
	text := call.Value("node")
	m := c.state.Member(text)
	if m == nil {
		members := c.state.Fleet().Members
		i := slices.IndexFunc(members, func(m *state.Member) bool { return m.Name == text })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "control.fleet", "no member of the fleet has this ID or name")
		}
		m = members[i]
	}
	call.About(call.Caller.Tenant, m.ID, m.Name)
	return m, nil
}

func (c *Control) serveDrain(call *operator.Call) error {
	var in struct {
		Draining bool `json:"draining"`
	}
	if err := call.Decode(&in); err != nil {
		return err
	}
	m, err := c.namedMember(call)
	if err != nil {
		return err
	}
	if err := c.Drain(call.Context(), actorOf(call.Caller), m.ID, in.Draining); err != nil {
		return err
	}
	return call.JSON(map[string]any{"id": m.ID, "name": m.Name, "draining": in.Draining})
}

func (c *Control) serveAddControl(call *operator.Call) error {
	m, err := c.namedMember(call)
	if err != nil {
		return err
	}
	if !m.Control {
		return fault.Newf(fault.Conflict, "control.fleet", "node %s has not the role control: invite a node with it", m.Name)
	}
	if err := c.AddVoter(call.Context(), m.ID); err != nil {
		return err
	}
	return call.JSON(map[string]any{"id": m.ID, "name": m.Name, "votes": true})
}

func (c *Control) serveRemove(call *operator.Call) error {
	lose := call.Query.Get("loseData")
	if call.Query.Has("loseData") && lose != "true" && lose != "false" {
		return fault.New(fault.Invalid, "control.fleet", "loseData must be true or false")
	}
	m, err := c.namedMember(call)
	if err != nil {
		return err
	}
	if err := c.Remove(call.Context(), actorOf(call.Caller), m.ID, lose == "true"); err != nil {
		return err
	}
	return call.JSON(map[string]any{"id": m.ID, "name": m.Name})
}

// recordedAsCommand are the operators' calls that end in a command which the audit records when it is applied.
var recordedAsCommand = map[string]bool{
	"control.tokens.create": true, "control.tokens.revoke": true, "fleet.invite": true, "fleet.drain": true, "fleet.remove": true,
}

// aboutFleet says what a command does to the fleet. A node that joins or founds one is on record as what was changed, by itself.
func aboutFleet(rec audit.Record, s *state.State, c *state.Command) audit.Record {
	rec.Tenant = homeTenant
	switch c.Kind {
	case state.InviteMember:
		rec.Action, rec.UID = "fleet.invite", c.Fleet.Invite.ID
		return rec
	case state.FoundFleet:
		rec.Action = "fleet.found"
	case state.JoinFleet:
		rec.Action = "fleet.join"
	case state.DrainMember:
		rec.Action = "fleet.drain"
		if !c.Fleet.Member.Draining {
			rec.Action = "fleet.undrain"
		}
	case state.RemoveMember:
		rec.Action = "fleet.remove"
	default:
		return audit.Record{}
	}
	m := c.Fleet.Member
	rec.UID, rec.Name = m.ID, m.Name
	if known := s.Member(m.ID); known != nil {
		rec.Name = known.Name
	}
	return rec
}
