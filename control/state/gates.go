package state

import (
	"edged/control/form"
	"edged/control/rules"
)

// gate is step 17 of a create or update: the rules of the aggregate in the order of worker-aggregate §3. An Inspect
// asks for the one fact that has to be found outside.
func (s *State) gate(c *Command, d *decision) (*rules.Verdict, *Inspect) {
	switch d.driver.Role {
	case rules.Deployment:
		return s.gateDeployment(d), nil
	case rules.Version:
		return s.gateVersion(c, d)
	case rules.Attachment:
		return s.gateAttachment(c, d), nil
	}
	return nil, nil
}

// gateDeployment follows WA-2.1 and 2.2, which the driver judges with the spec, before the references.
func (s *State) gateDeployment(d *decision) *rules.Verdict {
	agg := s.aggregate(d.spec.Worker)
	if d.old == nil {
		if v := rules.OneDeployment(&agg, ""); v != nil {
			return v
		}
	}
	if v := rules.Integrity(&agg, d.spec.Weights); v != nil {
		return v
	}
	return rules.Dependents(&agg, d.spec.Weights)
}

func (s *State) gateVersion(c *Command, d *decision) (*rules.Verdict, *Inspect) {
	spec := d.spec
	if spec.Bundle != "" && d.old == nil { // an update seals nothing new: its bytes and exports are those of the create
		bundle := s.get(spec.Bundle)
		switch in := c.Inspected; {
		case in == nil || in.Bundle != spec.Bundle:
			return nil, &Inspect{Tenant: c.Actor.Tenant, Bundle: spec.Bundle, Index: bundle.Index, Handlers: spec.Handlers}
		case in.Code != "":
			return rules.Refuse(rules.InvalidArgument, "module-worker §2", "/bundle", []string{spec.Bundle}, "%s: %s", in.Code, in.Text), nil
		default:
			if v := form.CheckExports(spec, in.Exports); v != nil {
				return v, nil
			}
		}
	}
	if spec.Assets != "" {
		if v := form.CheckVersionAssets(spec, s.get(spec.Assets).Index); v != nil {
			return v, nil
		}
	}
	for i := range spec.Refs {
		if ref := &spec.Refs[i]; ref.Use == form.UseService {
			target := s.aggregate(ref.UID)
			if v := rules.ServiceTarget(&target, ref.Binding, ref.Pointer); v != nil {
				return v, nil
			}
			if c.Withheld {
				return rules.Refuse(rules.UnsupportedCapability, "WA-8.1", ref.Pointer, []string{ref.UID},
					"binding %s: service calls are not built yet", ref.Binding), nil
			}
		}
	}
	return nil, nil
}

func (s *State) gateAttachment(c *Command, d *decision) *rules.Verdict {
	self := ""
	if d.old != nil {
		self = d.old.UID
	}
	if d.driver.Proof && !c.Proven {
		return rules.Refuse(rules.PermissionDenied, "attachments §3", "/hostname", nil, "control of the name is not proven for this tenant")
	}
	if d.driver.Claims != nil {
		for _, claim := range d.driver.Claims(d.spec) {
			if v := rules.Exclusive(claim, s.claimant(c.Actor.Tenant, claim), self); v != nil {
				return v
			}
		}
	}
	if at := &d.spec.Consumer; at.DeadLetterQueue != "" {
		if v := rules.DeadLetters(at.Queue, at.DeadLetterQueue, s.deadLetterOf(c.Actor.Tenant)); v != nil {
			return v
		}
	}
	agg := s.aggregate(d.spec.Worker)
	if v := rules.Gate(&agg, d.driver.Gate, d.driver.Need); v != nil {
		return v
	}
	if d.driver.Assigns && d.old == nil {
		return s.assignable(c)
	}
	return nil
}

// deadLetterOf gives the edges of CL-9: the dead-letter queue of the one consumer that a queue may have.
func (s *State) deadLetterOf(tenant string) func(queue string) string {
	return func(queue string) string {
		if r := s.get(s.claimant(tenant, rules.Claim{Class: rules.ClaimConsumer, Value: queue})); r != nil {
			return r.spec.Consumer.DeadLetterQueue
		}
		return ""
	}
}

// assignable is CL-7: a new endpoint needs an address that nobody ever got.
func (s *State) assignable(c *Command) *rules.Verdict {
	if c.Address == "" {
		return rules.Refuse(rules.UnsupportedCapability, "CL-7", "", nil, "this node has no domain to assign an address from")
	}
	if holder := s.claimant("", rules.Claim{Class: rules.ClaimAddress, Value: c.Address}); holder != "" {
		return rules.Refuse(rules.ResourceBusy, "CL-7", "", nil, "the address could not be assigned, try again")
	}
	return nil
}

func (s *State) claimant(tenant string, c rules.Claim) string {
	uid, _ := s.claims.Get(claimKey(tenant, c))
	return uid
}

func claimKey(tenant string, c rules.Claim) string { return key(string(c.Class), tenant, c.Value) }
