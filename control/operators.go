package control

import (
	"encoding/base64"
	"encoding/binary"

	"edged/control/audit"
	"edged/control/operator"
	"edged/internal/fault"
)

// newDoor makes the operators' door of this room's own calls and those of Options.Rooms.
func (c *Control) newDoor() (*operator.Door, error) {
	return operator.New(operator.Options{
		Rooms: append([]operator.Room{{Name: "control", Routes: append(c.testRoutes(), []operator.Route{
			{Name: "tokens.list", Method: "GET", Path: "tokens", Serve: c.listTokens},
			{Name: "tokens.create", Method: "POST", Path: "tokens", Body: operator.JSONBody, Changes: true, Serve: c.createToken},
			{Name: "tokens.revoke", Method: "DELETE", Path: "tokens/{id}", Changes: true, Serve: c.revokeToken},
			{Name: "audit", Method: "GET", Path: "audit", Query: []string{"limit", "cursor", "principal", "target", "outcome"}, Serve: c.listAudit},
			{Name: "backup", Method: "GET", Path: "backup", Whole: true, Changes: true, Serve: c.serveBackup}, // changes nothing, but leaves a record
			{Name: "rotate-key", Method: "POST", Path: "rotate-key", Whole: true, Changes: true, Serve: c.serveRotation},
		}...)}, c.fleetRoom()}, c.opt.Rooms...),
		Find: c.findTarget, Audit: c.audit.operated, Log: c.opt.Log,
	})
}

func (c *Control) findTarget(uid string) (operator.Target, bool) {
	r := c.state.Resource(uid)
	if r == nil {
		return operator.Target{}, false
	}
	return operator.Target{UID: r.UID, Tenant: r.Tenant, Space: r.Space, Name: r.Name, Form: r.Form, Generation: r.ObservedGeneration}, true
}

// Find returns a live Resource by UID, of any tenant, as this node has it now.
func (c *Control) Find(uid string) (operator.Target, bool) { return c.findTarget(uid) }

func (c *Control) serveRotation(call *operator.Call) error {
	n, err := c.RotateKey(call.Context())
	if err != nil {
		return err
	}
	return call.JSON(map[string]any{"resealed": n, "key": c.secrets.ring.Current()})
}

// Pages of the audit.
const (
	defaultAudit = 100
	maxAudit     = 1000
)

// listAudit shows the audit, newest first. Both logs are read and merged by time; the cursor says how far in each.
func (c *Control) listAudit(call *operator.Call) error {
	limit, err := call.Int("limit", defaultAudit, 1, maxAudit)
	if err != nil {
		return err
	}
	positions, err := c.readAuditCursor(call)
	if err != nil {
		return err
	}
	match, err := auditFilter(call)
	if err != nil {
		return err
	}
	var pages [2][]audit.Record
	var next [2]uint64
	for i, log := range [...]*audit.Log{c.audit.accepted, c.audit.refused} {
		if positions[i] == auditEnd {
			next[i] = 0
			continue
		}
		if pages[i], next[i], err = log.Newest(positions[i], limit, match); err != nil {
			return err
		}
	}
	out := struct {
		Items []audit.Record `json:"items"`
		Next  *string        `json:"nextCursor"`
	}{Items: []audit.Record{}}
	for len(out.Items) < limit && len(pages[0])+len(pages[1]) > 0 {
		from := 0
		if len(pages[0]) == 0 || len(pages[1]) > 0 && pages[1][0].At > pages[0][0].At {
			from = 1
		}
		out.Items = append(out.Items, pages[from][0])
		pages[from] = pages[from][1:]
	}
	if !call.Caller.Whole { // how much others do is not a tenant's to know
		for i := range out.Items {
			out.Items[i].Seq, out.Items[i].Index = 0, 0
		}
	}
	if out.Next, err = c.auditCursor(call, pages, next); err != nil {
		return err
	}
	return call.JSON(out)
}

// auditEnd marks a log that was read to its end.
const auditEnd = ^uint64(0)

// auditCursor says where each log is gone on with; nil when both are at their end. It is sealed: its numbers count what all
// tenants did.
func (c *Control) auditCursor(call *operator.Call, left [2][]audit.Record, next [2]uint64) (*string, error) {
	var plain []byte
	done := true
	for i := range left {
		at := next[i]
		switch {
		case len(left[i]) > 0:
			at = left[i][0].Seq + 1
		case at == 0:
			at = auditEnd
		}
		done = done && at == auditEnd
		plain = binary.BigEndian.AppendUint64(plain, at)
	}
	if done {
		return nil, nil
	}
	box, err := c.secrets.ring.Seal(plain, auditContext(call)...)
	if err != nil {
		return nil, err
	}
	text := base64.RawURLEncoding.EncodeToString(box)
	return &text, nil
}

func auditContext(call *operator.Call) []string {
	return []string{"audit cursor", call.Caller.Tenant, call.Caller.Principal}
}

func (c *Control) readAuditCursor(call *operator.Call) (at [2]uint64, err error) {
	if !call.Query.Has("cursor") {
		return at, nil
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(call.Query.Get("cursor"))
	if err == nil {
		box, err = c.secrets.ring.Open(box, auditContext(call)...)
	}
	if err != nil || len(box) != 16 {
		return at, fault.New(fault.Invalid, "control.audit", "the cursor does not belong to this list, or is too old")
	}
	return [2]uint64{binary.BigEndian.Uint64(box), binary.BigEndian.Uint64(box[8:])}, nil
}

// auditFilter tells which records the caller may and wants to see: of the whole node, or of its own tenant.
func auditFilter(call *operator.Call) (func(*audit.Record) bool, error) {
	if err := managed(call, call.Caller.Tenant); err != nil {
		return nil, err
	}
	q := call.Query
	principal, target, outcome := q.Get("principal"), q.Get("target"), audit.Outcome(q.Get("outcome"))
	if outcome != "" && outcome != audit.Accepted && outcome != audit.Refused && outcome != audit.Unknown {
		return nil, fault.New(fault.Invalid, "control.audit", "outcome must be accepted, refused or unknown")
	}
	return func(r *audit.Record) bool {
		return call.Caller.May(r.Tenant) && (principal == "" || r.ByPrincipal == principal) && (outcome == "" || r.Outcome == outcome) &&
			(target == "" || r.UID == target || r.Name == target)
	}, nil
}
