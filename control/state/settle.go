package state

import (
	"edged/control/form"
	"edged/control/rules"
)

// progress moves an accepted Operation on. What does not fit its present status is ignored: the runner may say a thing
// twice.
func (s *State) progress(c *Command) Outcome {
	op, ok := s.operations.Get(c.Operation)
	if !ok || op.Status.Terminal() {
		return Outcome{Operation: op}
	}
	next := *op
	next.UpdatedAt = c.At
	switch c.Kind {
	case StartOperation:
		if op.Status == Running || op.Status == Waiting {
			return Outcome{Operation: op}
		}
		next.Status, next.Effect, next.Seed, next.Message = Running, EffectUnknown, "", ""
	case DoubtOperation:
		if op.Status != Running && (op.Status != Reconciling || c.Seed == "") {
			return Outcome{Operation: op}
		}
		next.Status, next.Effect, next.Seed, next.Message = Reconciling, EffectUnknown, c.Seed, c.Message
	case AwaitInput:
		if op.Status != Queued { // anything else may have been dispatched
			return Outcome{Operation: op}
		}
		next.await(c.Reason)
	case Requeue:
		if op.Status != Waiting {
			return Outcome{Operation: op}
		}
		next.Status, next.Reason = Queued, ""
	case EndOperation:
		return s.end(op, c)
	}
	s.setOperation(&next)
	return Outcome{Operation: &next}
}

// end settles an Operation. Success is judged once more against the state as it is now.
func (s *State) end(op *Operation, c *Command) Outcome {
	old := s.get(op.Resource)
	if old == nil {
		return Outcome{Operation: op} // only an end that was told twice
	}
	if c.OK && op.Action == form.Delete {
		if v := s.deletable(old, false); v != nil {
			c = &Command{At: c.At, Effect: EffectNone, Seed: v.Seed, Message: v.Detail()}
		}
	}
	next := *op
	next.UpdatedAt, next.Command, next.Reason, next.Seed, next.Message = c.At, nil, "", "", ""
	next.RetainUntil = max(next.RetainUntil, c.At+op.Window)
	if !c.OK {
		next.Status, next.Effect, next.Seed, next.Message = Failed, c.Effect, c.Seed, c.Message
		s.setOperation(&next)
		r := *old
		r.Phase, r.Lost = Errored, r.Lost || c.Lost
		s.migrated(&r, c)
		s.store(&r)
		return Outcome{Operation: &next, Plan: s.render(c.At, &r)}
	}
	next.Status, next.Effect = Succeeded, EffectComplete
	s.setOperation(&next)
	if op.Action == form.Delete {
		return Outcome{Operation: &next, Plan: s.remove(c.At, old, &next)}
	}
	r := *old
	r.Phase, r.Settled, r.ObservedGeneration, r.ObservedAt, r.Since, r.Lost = Idle, true, op.Generation, c.At, c.At, false
	if c.Index != nil {
		r.Index = c.Index
	}
	if op.Action == form.Create {
		r.Secrets = op.Command.Inputs.secrets()
		r.Secrets.keep(op.Command.Inputs)
	}
	s.migrated(&r, c)
	if r.driver.Role == rules.Deployment {
		r.Active = r.spec.Weights
	}
	s.pin(old, &r, false)
	s.store(&r)
	return Outcome{Operation: &next, Plan: s.render(c.At, &r)}
}

// remove ends a Resource: record, name, pins and claims go, a tombstone stays.
func (s *State) remove(at int64, r *Resource, op *Operation) (plan bool) {
	s.resources.Delete(r.UID)
	s.note(r.UID, r)
	s.unlist(r)
	s.forgetRuns(r)
	s.ledgers.Delete(r.UID) // of a database
	s.unpin(r)
	s.unclaim(r)
	s.tombs.Set(r.UID, &tombstone{Tenant: r.Tenant, Space: r.Space, Operation: op.ID})
	return s.render(at, r)
}
