package state

import (
	"edged/control/rules"
)

// await makes op wait for its private inputs: the transfer values go.
func (op *Operation) await(why InputReason) {
	op.Status, op.Effect, op.Reason = Waiting, EffectNone, why
	op.Command = op.Command.withBoxes(nil, 0)
}

// withBoxes returns a copy of an accepted command whose transfer values are others.
func (c *Command) withBoxes(boxes [][]byte, expires int64) *Command {
	next := *c
	if c.Inputs != nil {
		in := *c.Inputs
		in.Boxes, in.Expires = boxes, expires
		next.Inputs = &in
	}
	return &next
}

// judgeReplenish is host-api §8 for R10: authorization, equality with the original, not terminal.
func (s *State) judgeReplenish(c *Command) (*Operation, *rules.Verdict) {
	op, _ := s.operations.Get(c.Operation)
	if op == nil || op.Tenant != c.Actor.Tenant {
		return nil, notFound("Operation")
	}
	if v := c.Actor.May(op.Space, Editor); v != nil {
		return nil, v
	}
	rec, ok := s.replays.Get(op.Key)
	if !ok || rec.Operation != op.ID {
		v := rules.Refuse(rules.InputsUnverifiable, "", "", nil, "what the private inputs would be compared with is lost")
		v.Operation = op.ID
		return nil, v
	}
	if v := rec.compare(c.Inputs, op, rules.InputsConflict); v != nil {
		return nil, v
	}
	if op.Status.Terminal() {
		v := rules.Refuse(rules.OperationTerminal, "", "", nil, "Operation %s has ended", op.ID)
		v.Operation = op.ID
		return nil, v
	}
	return op, nil
}

// JudgeReplenish judges a Replenish without carrying it out. An Operation that does not wait is the answer as it is; only
// for one that waits has the command to be applied.
func (s *State) JudgeReplenish(c *Command) Outcome {
	s.mu.RLock()
	defer s.mu.RUnlock()
	op, v := s.judgeReplenish(c)
	return Outcome{Operation: op, Refusal: v}
}

func (s *State) replenish(c *Command) Outcome {
	op, v := s.judgeReplenish(c)
	if v != nil || op.Status != Waiting {
		return Outcome{Operation: op, Refusal: v, Replayed: true}
	}
	next := *op
	next.Status, next.Reason, next.UpdatedAt = Queued, "", c.At
	next.Command = op.Command.withBoxes(c.Inputs.Boxes, c.Inputs.Expires)
	s.setOperation(&next)
	return Outcome{Operation: &next}
}

// reseal stores the same values under another key: of a Resource, of an Operation under way, of the fleet, or the comparison key.
func (s *State) reseal(c *Command) Outcome {
	switch {
	case c.UID != "":
		r := s.get(c.UID)
		if r == nil || r.Secrets == nil || len(r.Secrets.Boxes) != len(c.Inputs.Boxes) {
			return Outcome{}
		}
		next, kept := *r, *r.Secrets
		kept.Boxes = c.Inputs.Boxes
		next.Secrets = &kept
		s.store(&next)
		return Outcome{Plan: true}
	case c.Operation != "":
		op, ok := s.operations.Get(c.Operation)
		if !ok || op.Status.Terminal() || op.Command.Inputs == nil || len(op.Command.Inputs.Boxes) != len(c.Inputs.Boxes) {
			return Outcome{}
		}
		next := *op
		next.Command = op.Command.withBoxes(c.Inputs.Boxes, op.Command.Inputs.Expires)
		s.setOperation(&next)
	case c.Fleet != nil:
		s.resealAuthority(c.Fleet.Authority)
	case c.Secret != nil:
		s.marker = c.Secret
	}
	return Outcome{}
}

// secretsAre notes whether the values of a Resource can be opened, which its readiness shows, and their marks under
// another comparison key.
func (s *State) secretsAre(c *Command) Outcome {
	r := s.get(c.UID)
	if r == nil || r.Secrets == nil {
		return Outcome{}
	}
	next, kept := *r, *r.Secrets
	kept.Lost = c.Lost
	if c.Inputs != nil {
		kept.Marks, kept.Marker = c.Inputs.Marks, c.Inputs.Marker
	}
	next.Secrets = &kept
	s.store(&next)
	return Outcome{Plan: s.render(c.At, &next)}
}

// Marker returns the sealed comparison key, nil before there is one.
func (s *State) Marker() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.marker
}
