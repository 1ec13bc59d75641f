package state

import (
	"bytes"

	"edged/control/form"
	"edged/control/rules"
)

// decision is what decide found: an Outcome that is final, or what accept needs.
type decision struct {
	Outcome
	driver *form.Driver
	spec   *form.Spec
	old    *Resource // of an update or delete
}

func refuse(v *rules.Verdict) decision { return decision{Outcome: Outcome{Refusal: v}} }

func refusef(seed rules.Seed, rule, format string, args ...any) decision {
	return refuse(rules.Refuse(seed, rule, "", nil, format, args...))
}

// decide judges a mutation from step 8 of host-api §12 on.
func (s *State) decide(c *Command) decision {
	if c.Kind == CreateResource {
		return s.decideCreate(c)
	}
	old, v := s.find(&c.Actor, c.UID, Editor)
	if v != nil && v.Seed != rules.Gone {
		return refuse(v)
	}
	if d, final := s.replayed(c); final {
		return d
	}
	if v != nil {
		return refuse(v)
	}
	if c.Kind == DeleteResource {
		return s.decideDelete(c, old)
	}
	return s.decideUpdate(c, old)
}

// replayed is step 9: the Operation that the key already stands for.
func (s *State) replayed(c *Command) (decision, bool) {
	rec, ok := s.replays.Get(replayKey(c))
	if !ok {
		return decision{}, false
	}
	if !bytes.Equal(rec.Fingerprint, c.Fingerprint) {
		return refusef(rules.IdempotencyConflict, "", "the idempotency key was used for another request"), true
	}
	op, ok := s.operations.Get(rec.Operation)
	if !ok {
		return decision{}, false // retention ended for both
	}
	if v := c.Actor.May(op.Space, Reader); v != nil {
		return refuse(v), true
	}
	if v := rec.compare(c.Inputs, op, rules.IdempotencyConflict); v != nil {
		return refuse(v), true
	}
	return decision{Outcome: Outcome{Operation: op, Replayed: true}}, true
}

func replayKey(c *Command) string { return key(c.Lane, c.Actor.Tenant, c.Actor.Principal, "", c.Key) }

// capability is step 11: private inputs need a Form that takes them.
func capability(c *Command, d *form.Driver) *rules.Verdict {
	if c.Private && !d.Private {
		return rules.Refuse(rules.UnsupportedCapability, "host-api §8", "", nil, "private inputs are not offered for %s", d.Kind)
	}
	return nil
}

func (s *State) decideCreate(c *Command) decision {
	if v := c.Actor.May(c.Space, Editor); v != nil {
		return refuse(v)
	}
	if d, final := s.replayed(c); final {
		return d
	}
	driver := s.drivers[c.Form]
	if driver == nil || c.Withheld && driver.Capability() != "" {
		return refusef(rules.FormUnknown, "host-api §5.1", "this Form is not implemented")
	}
	if v := capability(c, driver); v != nil {
		return refuse(v)
	}
	if c.Offering {
		return refusef(rules.Malformed, "host-api §5.2", "offerings are not advertised, offering must be absent")
	}
	spec, v := c.parse(driver)
	if v != nil {
		return refuse(v)
	}
	if v := givenInputs(c, spec); v != nil {
		return refuse(v)
	}
	if v := alone(driver, spec); v != nil {
		return refuse(v)
	}
	if uid, taken := s.names.Get(key(c.Actor.Tenant, c.Space, driver.Scope, c.Name)); taken {
		return refusef(rules.NameConflict, "", "the name %s is taken by %s in this Space", c.Name, uid)
	}
	d := decision{driver: driver, spec: spec}
	s.judge(c, &d, c.Space)
	return d
}

// judge is steps 16 and 17, for a spec that has passed the steps before.
func (s *State) judge(c *Command, d *decision, space string) {
	if d.Refusal = s.references(c.Actor.Tenant, space, d.spec); d.Refusal == nil {
		d.Refusal, d.Inspect = s.gate(c, d)
	}
}

// alone judges what a well-formed spec shows without a look at anything else.
func alone(d *form.Driver, spec *form.Spec) *rules.Verdict {
	if d.Pure == nil {
		return nil
	}
	return d.Pure(spec)
}

// busy is step 13.
func (s *State) busy(c *Command, r *Resource) *rules.Verdict {
	if s.unfinished(r) {
		return rules.Refuse(rules.ResourceBusy, "", "", []string{r.UID}, "Operation %s is not finished", r.LastOperation)
	}
	if c.Expected != r.Generation {
		return rules.Refuse(rules.GenerationConflict, "", "", []string{r.UID}, "generation is %d, not %d", r.Generation, c.Expected)
	}
	if r.Generation >= MaxCounter {
		return rules.Refuse(rules.GenerationConflict, "host-api §2.2", "", []string{r.UID}, "generation is exhausted")
	}
	return nil
}

func (s *State) unfinished(r *Resource) bool {
	op, ok := s.operations.Get(r.LastOperation)
	return ok && !op.Status.Terminal()
}

func (s *State) decideUpdate(c *Command, old *Resource) decision {
	d := decision{driver: old.driver, old: old}
	if d.Refusal = capability(c, old.driver); d.Refusal != nil {
		return d
	}
	if d.Refusal = s.busy(c, old); d.Refusal != nil {
		return d
	}
	if d.spec, d.Refusal = c.parse(old.driver); d.Refusal != nil {
		return d
	}
	if d.Refusal = repeatedInputs(c, d.spec, old); d.Refusal != nil {
		return d
	}
	if old.driver.Frozen != nil {
		if at := old.driver.Frozen(old.spec, d.spec); at != "" {
			d.Refusal = rules.Refuse(rules.InvalidArgument, "immutable", at, []string{old.UID}, "%s cannot change on one UID", at)
			return d
		}
	}
	if d.Refusal = alone(old.driver, d.spec); d.Refusal != nil {
		return d
	}
	s.judge(c, &d, old.Space)
	return d
}

func (s *State) decideDelete(c *Command, old *Resource) decision {
	d := decision{driver: old.driver, old: old}
	if d.Refusal = s.busy(c, old); d.Refusal == nil {
		d.Refusal = s.deletable(old, c.InUse)
	}
	return d
}

// deletable is the deletion matrix: rule 5 for a deployment, holders for everything else, and running invocations.
func (s *State) deletable(r *Resource, inUse bool) *rules.Verdict {
	if r.driver.Role == rules.Deployment {
		agg := s.aggregate(r.spec.Worker)
		return rules.DeleteDeployment(&agg)
	}
	if v := rules.Held(r.UID, s.held(r.UID)); v != nil {
		return v
	}
	return rules.Unretired(r.UID, inUse)
}

// references is step 16: every reference of the spec in order. REL-2 needs no look at the target: a reference never leaves the Space
// (REL-1), and step 8 has found that the actor is an editor of it, which is the right to use whatever is in it.
func (s *State) references(tenant, space string, spec *form.Spec) *rules.Verdict {
	for i := range spec.Refs {
		ref := &spec.Refs[i]
		var target rules.Facts
		if r := s.get(ref.UID); r != nil && r.Tenant == tenant && r.Space == space {
			target = s.facts(r)
		}
		target.UID = ref.UID
		if v := rules.Reference(&target, ref.Pointer, ref.Accept, ref.Use == form.UseWeight); v != nil {
			return v
		}
	}
	return nil
}

// Authorize is step 8 by itself: whether the actor may make this mutation at all.
func (s *State) Authorize(c *Command) *rules.Verdict {
	if c.Kind == CreateResource {
		return c.Actor.May(c.Space, Editor)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, v := s.find(&c.Actor, c.UID, Editor)
	return v
}
