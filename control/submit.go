package control

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"edged/control/api"
	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/faultpoint"
)

// applyTimeout bounds the wait for a place in raft's queue; the commit itself is waited for.
const applyTimeout = 10 * time.Second

// submit makes one command durable, on most voters, and applies it. Only the leader can. Whether the command was carried out is open
// if leadership is lost before it is answered.
func (c *Control) submit(cmd *state.Command) (state.Outcome, error) {
	if cmd.At == 0 {
		cmd.At = time.Now().UnixMilli()
	}
	raw, err := cmd.Encode()
	if err != nil {
		return state.Outcome{}, fault.Wrap(fault.Internal, "control.submit", err)
	}
	if err := c.allowed(cmd); err != nil {
		return state.Outcome{}, err
	}
	start := time.Now()
	future := c.raft.Load().Apply(raw, applyTimeout)
	if err := future.Error(); err != nil {
		return state.Outcome{}, raftFault("control.submit", err)
	}
	c.opt.Metrics.apply.Observe(time.Since(start).Seconds())
	switch out := future.Response().(type) {
	case state.Outcome:
		return out, nil
	case error:
		return state.Outcome{}, fault.Wrap(fault.Internal, "control.submit", out)
	}
	return state.Outcome{}, fault.New(fault.Internal, "control.submit", "")
}

// mutate carries a create, update or delete through acceptance. Refusals and replays are decided on the state as it is
// and write nothing; what would be accepted goes through the log, where it is decided again. When the answer changes
// what the node serves, it waits for that plan to be in use, within Options.PlanWait. An Operation that the runner ends
// at once is answered as it ended.
func (c *Control) mutate(ctx context.Context, cmd *state.Command, values api.Private) (state.Outcome, error) {
	c.stamp(ctx, cmd)
	if values != nil {
		c.secrets.underWay.RLock() // until the values are committed, no key that they are sealed with may go
		defer c.secrets.underWay.RUnlock()
		in, err := c.secrets.sealed(values, cmd.Actor.Tenant, cmd.UID, state.InputKey(cmd), cmd.At+c.opt.TransferLife.Milliseconds())
		if err != nil {
			return state.Outcome{}, err
		}
		cmd.Inputs = in
	}
	out, err := c.judge(ctx, cmd)
	if err != nil || out.Refusal != nil || out.Operation != nil {
		return out, err
	}
	if cmd.Kind != state.DeleteResource && c.opt.Space != nil { // deletes go on: they are the way out
		if err := c.opt.Space.Check(); err != nil {
			return state.Outcome{}, err
		}
	}
	ended, forget := c.endings.expect(cmd.Operation)
	defer forget()
	faultpoint.Hit("control.accept")
	out, err = c.submit(cmd)
	if err != nil {
		return out, err
	}
	faultpoint.Hit("control.accepted")
	if out.Plan {
		c.plans.wait(ctx, c.machine.planned.Load(), c.opt.PlanWait)
	}
	if op := out.Operation; op != nil && !op.Status.Terminal() && !out.Replayed {
		settle(ctx, ended, c.settleWait)
		if op = c.state.Operation(op.ID); op != nil { // nil only if retention is shorter than this moment
			out.Operation = op
		}
	}
	return out, nil
}

// judge decides a stamped mutation on the state as it is; what has to be found out first is found out.
func (c *Control) judge(ctx context.Context, cmd *state.Command) (state.Outcome, error) {
	out := c.state.Decide(cmd)
	if out.Inspect == nil {
		return out, nil
	}
	in, err := c.inspectBundle(ctx, out.Inspect)
	if err != nil {
		return state.Outcome{}, err
	}
	cmd.Inspected = in
	cmd.At = time.Now().UnixMilli()
	return c.state.Decide(cmd), nil
}

// preview judges a mutation by the same code and carries nothing out: nothing is sealed, and nothing is stored.
func (c *Control) preview(ctx context.Context, cmd *state.Command, values api.Private) (*rules.Verdict, state.Outcome, error) {
	c.stamp(ctx, cmd)
	if values != nil {
		cmd.Inputs = c.secrets.marked(values, cmd.UID, state.InputKey(cmd))
	}
	if v := c.state.Authorize(cmd); v != nil {
		return v, state.Outcome{}, nil
	}
	out, err := c.judge(ctx, cmd)
	return nil, out, err
}

// stamp gives a command what Apply must not find out itself: time, ids, and facts from outside.
func (c *Control) stamp(ctx context.Context, cmd *state.Command) {
	cmd.At = time.Now().UnixMilli()
	cmd.Window = c.opt.ReplayWindow.Milliseconds()
	cmd.Operation = "op-" + randomID()
	var driver *form.Driver
	switch cmd.Kind {
	case state.CreateResource:
		cmd.UID = "r-" + randomID()
		driver = c.drivers[cmd.Form]
	default:
		if r := c.state.Resource(cmd.UID); r != nil && r.Tenant == cmd.Actor.Tenant {
			driver = r.Driver()
		}
	}
	if driver == nil {
		return // whatever it is, it will be refused
	}
	if driver.Assigns && cmd.Kind == state.CreateResource {
		cmd.Address = c.address(cmd.Name)
	}
	if driver.Proof && cmd.Kind != state.DeleteResource {
		if spec, v := driver.Parse(cmd.Spec); v == nil {
			cmd.Proven = c.provable(cmd.Actor.Tenant, spec.Hostname)
		}
	}
	if cmd.Kind == state.CreateResource && state.Homed(driver.Store) {
		cmd.Home = c.opt.NodeID
	}
	cmd.Withheld = driver.Capability() != "" && !c.opt.has(driver.Capability())
	if driver.Role == rules.Version {
		cmd.Withheld = !c.opt.ServiceBindings
		cmd.Sealed = c.opt.FacadeSet
		cmd.InUse = cmd.Kind == state.DeleteResource && c.inUse(ctx, cmd.UID)
	}
}

// randomID returns 130 random bits as lower-case letters and digits.
func randomID() string { return strings.ToLower(rand.Text()) }

// address makes a host name for an endpoint: a readable part of its name and 65 random bits, so that no two endpoints,
// past ones included, share one. "" if none can be assigned.
func (c *Control) address(name string) string {
	if c.opt.EndpointDomain == "" {
		return ""
	}
	var label []byte
	for _, ch := range []byte(strings.ToLower(name)) {
		if ch >= 'a' && ch <= 'z' || ch >= '0' && ch <= '9' {
			label = append(label, ch)
		} else if len(label) > 0 && label[len(label)-1] != '-' {
			label = append(label, '-')
		}
		if len(label) == 32 {
			break
		}
	}
	host := strings.Trim(string(label), "-") + "-" + randomID()[:13] + "." + c.opt.EndpointDomain
	host, reason := form.CanonicalHost(host)
	if reason != "" {
		return ""
	}
	return host
}

// provable is the control proof of attachments §3: the operator's list of zones. The domain of endpoint addresses and
// everything below it is in nobody's zone.
func (c *Control) provable(tenant, host string) bool {
	if d := c.opt.EndpointDomain; d != "" && within(host, d) {
		return false
	}
	for _, z := range c.opt.Zones {
		if (z.Tenant == "" || z.Tenant == tenant) && (z.Name == "*" || within(host, z.Name)) {
			return true
		}
	}
	return false
}

func within(host, zone string) bool {
	return host == zone || strings.HasSuffix(host, "."+zone)
}
