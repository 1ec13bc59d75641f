package state

import (
	"strings"

	"edged/control/form"
	"edged/control/rules"
)

// facts turns a record into what the rules see.
func (s *State) facts(r *Resource) rules.Facts {
	f := rules.Facts{
		UID: r.UID, Name: r.Name, Kind: r.driver.Kind, FormID: r.Form, Role: r.driver.Role, Exists: true,
		Deleting: r.Phase == Deleting, Busy: s.unfinished(r), Need: r.driver.Need, Gate: r.driver.Gate, Owner: r.spec.Worker,
	}
	f.Settling = !r.Settled && r.Phase == Pending && r.Generation == 1
	f.Failed = !r.Settled && !f.Settling
	switch r.driver.Role {
	case rules.Version:
		f.Handlers = r.spec.Handlers // acceptance has found the exported set equal
		f.HasAssets = r.spec.Assets != "" && s.verified(r.spec.Assets)
		f.Unready = s.unready(r)
		f.Ready = f.Unready == nil
	case rules.Deployment:
		f.Active = r.Active
		if f.Busy && r.Phase == Pending {
			f.Pending = r.spec.Weights
		}
	}
	return f
}

// unready says why a version may not be selected, nil if it may.
func (s *State) unready(r *Resource) *rules.Cause {
	if c := rules.Pins(s.pinStates(r)); c != nil {
		return c
	}
	if !s.carries(r.Sealed) {
		return &rules.Cause{Reason: rules.LacksCapability,
			Text: "version " + r.UID + " was sealed with the facade set " + r.Sealed + ", which this program does not carry; make a new version"}
	}
	for _, uid := range [...]string{r.spec.Bundle, r.spec.Assets} {
		if uid != "" && !s.verified(uid) {
			return &rules.Cause{Reason: rules.DependencyAbsent, Text: "the bytes of " + uid + " are not verified"}
		}
	}
	if r.Secrets.lost() {
		return &rules.Cause{Reason: rules.DependencyAbsent, Text: "the sealed values of /requiredSensitiveVars cannot be opened", Unknown: true}
	}
	return nil
}

func (s *State) verified(uid string) bool {
	r := s.get(uid)
	return r != nil && r.Index != nil
}

func (s *State) pinStates(r *Resource) []rules.PinState {
	out := make([]rules.PinState, 0, len(r.Pins))
	for _, p := range r.Pins {
		target := s.get(p.Target)
		out = append(out, rules.PinState{Pointer: p.Pointer, Missing: target == nil || target.Lost, Changed: target != nil && target.Form != p.Form})
	}
	return out
}

func (s *State) factsOf(uid string) rules.Facts {
	if r := s.get(uid); r != nil {
		return s.facts(r)
	}
	return rules.Facts{UID: uid}
}

// aggregate gathers what the rules see of one worker.
func (s *State) aggregate(worker string) rules.Aggregate {
	a := rules.Aggregate{Worker: s.factsOf(worker), Version: s.factsOf}
	for _, uid := range s.sources(worker, rules.Deployment, form.UseOwner) {
		a.Deployments = append(a.Deployments, s.factsOf(uid))
	}
	for _, uid := range s.sources(worker, rules.Attachment, form.UseOwner) {
		a.Attachments = append(a.Attachments, s.factsOf(uid))
	}
	for _, uid := range s.sources(worker, rules.Class, form.UseOwner) {
		a.Classes = append(a.Classes, s.factsOf(uid))
	}
	for _, uid := range s.sources(worker, rules.Version, form.UseService) {
		if f := s.factsOf(uid); f.Owner != worker { // a version that binds its own worker depends on nobody
			a.Inbound = append(a.Inbound, f)
		}
	}
	return a
}

func roleByte(r rules.Role) string { return string([]byte{'0' + byte(r)}) }
func useByte(u form.Use) string    { return string([]byte{'0' + byte(u)}) }

// sources returns the Resources of a role that pin the target for a use, each once, in ascending order of UID.
func (s *State) sources(target string, role rules.Role, use form.Use) []string {
	var out []string
	s.pinsUnder(key(target, roleByte(role), useByte(use)), func(p Pin) bool {
		if len(out) == 0 || out[len(out)-1] != p.Source {
			out = append(out, p.Source)
		}
		return true
	})
	return out
}

func (s *State) pinsUnder(prefix string, fn func(Pin) bool) {
	s.holders.Ascend(prefix, func(k string, p Pin) bool { return strings.HasPrefix(k, prefix) && fn(p) })
}

// held returns the first live Resource that pins the target, other than itself: the lowest UID of the first role.
func (s *State) held(target string) []rules.Holder {
	var out []rules.Holder
	s.pinsUnder(key(target), func(p Pin) bool {
		if p.Source == target {
			return true
		}
		h := rules.Holder{UID: p.Source, Pointer: p.Pointer}
		if r := s.get(p.Source); r != nil {
			h.Name, h.Kind = r.Name, r.driver.Kind
		}
		out = append(out, h)
		return false
	})
	return out
}
