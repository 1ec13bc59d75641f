package state

import (
	"encoding/json"
	"slices"
	"strconv"

	"edged/control/form"
	"edged/control/rules"
)

// accept writes an accepted mutation: record, name, pins, claims, Operation and idempotency record in one step. A
// mutation without outside effect ends here too.
func (s *State) accept(c *Command, d decision) Outcome {
	action, r := form.Action(c.Kind), new(Resource)
	if action == form.Create {
		s.births++
		*r = Resource{
			UID: c.UID, Tenant: c.Actor.Tenant, Space: c.Space, Scope: d.driver.Scope, Name: c.Name, Form: c.Form, Principal: c.Actor.Principal,
			Born: s.births, Observed: json.RawMessage("{}"), Output: json.RawMessage("{}"), Sealed: c.Sealed, driver: d.driver,
		}
		if Homed(d.driver.Store) {
			r.Home = c.Home
		}
		if d.driver.Assigns {
			r.Address = c.Address
		}
		if c.Inspected != nil {
			r.Exports = c.Inspected.Exports
		}
		r.Secrets = c.Inputs.secrets()
	} else {
		*r = *d.old
	}
	op := &Operation{
		ID: c.Operation, Tenant: r.Tenant, Space: r.Space, Principal: c.Actor.Principal, Resource: r.UID, Action: action,
		Status: Queued, Effect: EffectNone, CreatedAt: c.At, UpdatedAt: c.At, Window: c.Window, RetainUntil: c.At + c.Window,
		Key: replayKey(c), Command: c,
	}
	advance(r, op)
	if action == form.Delete {
		r.Phase = Deleting
	} else {
		r.Phase, r.spec, r.Spec = Pending, d.spec, d.spec.Echo
		s.pin(d.old, r, true)
	}
	if action == form.Create {
		s.enlist(r)
		s.claim(r)
	}
	s.replays.Set(op.Key, newReplay(c))
	s.store(r)
	s.setOperation(op)
	if d.driver.Outside(action) {
		plan := s.render(c.At, r)
		return Outcome{Operation: op, Plan: plan}
	}
	return s.end(op, &Command{At: c.At, OK: true})
}

// advance is the only place where a generation moves.
func advance(r *Resource, op *Operation) {
	r.Generation++
	op.Generation = r.Generation
	r.LastOperation = op.ID
}

// pin stores the pins of r's spec. While an update is unfinished those of the old spec are kept beside them (REL-9).
func (s *State) pin(old, r *Resource, keep bool) {
	var pins []Pin
	for i := range r.spec.Refs {
		ref := &r.spec.Refs[i]
		p := Pin{Pointer: ref.Pointer, Target: ref.UID, Use: ref.Use}
		if target := s.get(ref.UID); target != nil {
			p.Form = target.Form
		}
		if kept := pinnedForm(old, p); kept != "" {
			p.Form = kept // never bound again to something else
		}
		pins = append(pins, p)
	}
	if keep && old != nil {
		for _, p := range old.Pins {
			if !slices.Contains(pins, p) {
				pins = append(pins, p)
			}
		}
	}
	if old != nil {
		s.unpin(old)
	}
	r.Pins = pins
	for _, p := range pins {
		p.Source = r.UID
		s.holders.Set(holderKey(r, p), p)
	}
}

// pinnedForm returns the Form identity under which old already pins the same target at the same place, "" if it does not.
func pinnedForm(old *Resource, p Pin) string {
	if old != nil {
		for _, had := range old.Pins {
			if had.Pointer == p.Pointer && had.Target == p.Target {
				return had.Form
			}
		}
	}
	return ""
}

func (s *State) unpin(r *Resource) {
	for _, p := range r.Pins {
		p.Source = r.UID
		s.holders.Delete(holderKey(r, p))
	}
}

func holderKey(r *Resource, p Pin) string {
	return key(p.Target, roleByte(r.driver.Role), useByte(p.Use), p.Source, p.Pointer)
}

// claim records what r holds exclusively, until unclaim at the end of its delete.
func (s *State) claim(r *Resource) {
	s.eachClaim(r, func(k string, _ rules.Claim) { s.claims.Set(k, r.UID) })
	if r.spec.Hostname != "" {
		s.routes.Set(routeKey(r), r.UID)
	}
}

func (s *State) unclaim(r *Resource) {
	s.eachClaim(r, func(k string, _ rules.Claim) { s.claims.Delete(k) })
	if r.spec.Hostname != "" {
		s.routes.Delete(routeKey(r))
	}
}

func (s *State) eachClaim(r *Resource, fn func(key string, c rules.Claim)) {
	if r.driver.Claims != nil {
		for _, c := range r.driver.Claims(r.spec) {
			fn(claimKey(r.Tenant, c), c)
		}
	}
	if r.Address != "" {
		c := rules.Claim{Class: rules.ClaimAddress, Value: r.Address}
		fn(claimKey("", c), c)
	}
}

func routeKey(r *Resource) string { return key(r.spec.Hostname, ordered(r.Born), r.UID) }

// ordered writes a number so that texts compare like numbers.
func ordered(n uint64) string {
	s := strconv.FormatUint(n, 16)
	return "0000000000000000"[len(s):] + s
}

func (s *State) setOperation(op *Operation) {
	s.operations.Set(op.ID, op)
	if op.Status.Terminal() {
		s.open.Delete(openKey(op))
		s.retained.Set(retainKey(op), op.ID)
	} else {
		s.open.Set(openKey(op), op.ID)
	}
}

func openKey(op *Operation) string   { return key(ordered(uint64(op.CreatedAt)), op.ID) }
func retainKey(op *Operation) string { return key(ordered(uint64(op.RetainUntil)), op.ID) }
