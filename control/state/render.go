package state

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"edged/control/form"
	"edged/control/rules"
)

// render is rule 9: after r changed or went, it renders again exactly the Resources that this can affect, found through
// the pins, and stores those whose served representation moved. Renderings depend on specs, pins and settled states,
// never on one another, so one pass in any order is enough. It reports whether what a node serves may have changed.
func (s *State) render(at int64, r *Resource) (plan bool) {
	set := map[string]bool{r.UID: true}
	s.affected(r, set)
	s.renderAll(at, set)
	switch r.driver.Role {
	case rules.Artifact:
		return len(set) > 1
	case rules.Migration:
		return false
	}
	return true
}

// renderAll renders the live Resources of the set again, in ascending order of UID.
func (s *State) renderAll(at int64, set map[string]bool) {
	uids := make([]string, 0, len(set))
	for uid := range set {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	seen := aggregates{s, map[string]*rules.Aggregate{}}
	for _, uid := range uids {
		if cur := s.get(uid); cur != nil {
			s.put(at, cur, seen)
		}
	}
}

// aggregates gathers each worker's aggregate once in a pass, or a worker with many attachments would cost their square.
// That is sound because no rendering is part of any fact.
type aggregates struct {
	s  *State
	of map[string]*rules.Aggregate
}

func (a aggregates) get(worker string) *rules.Aggregate {
	agg, ok := a.of[worker]
	if !ok {
		fresh := a.s.aggregate(worker)
		agg = &fresh
		a.of[worker] = agg
	}
	return agg
}

// affected adds what a change of r can be seen in.
func (s *State) affected(r *Resource, set map[string]bool) {
	if r == nil {
		return
	}
	switch r.driver.Role {
	case rules.Artifact:
		for _, use := range [...]form.Use{form.UseBundle, form.UseAssets} {
			for _, uid := range s.sources(r.UID, rules.Version, use) {
				set[uid] = true
				s.affected(s.get(uid), set)
			}
		}
		s.add(set, s.sources(r.UID, rules.Migration, form.UseMigrations))
	case rules.Data:
		for _, uid := range s.sources(r.UID, rules.Version, form.UseData) {
			set[uid] = true
			s.affected(s.get(uid), set)
		}
		for _, use := range [...]form.Use{form.UseQueue, form.UseDeadLetter} {
			s.add(set, s.sources(r.UID, rules.Attachment, use))
		}
		s.add(set, s.sources(r.UID, rules.Migration, form.UseDatabase))
	case rules.Migration:
		s.add(set, s.sources(r.spec.Database, rules.Migration, form.UseDatabase)) // the ledger may have grown past theirs
	case rules.Version:
		for _, uid := range s.sources(r.UID, rules.Deployment, form.UseWeight) {
			set[uid] = true
			s.around(r.spec.Worker, set)
		}
		for i := range r.spec.Refs { // the deployment of a worker that it binds
			if ref := &r.spec.Refs[i]; ref.Use == form.UseService {
				s.add(set, s.sources(ref.UID, rules.Deployment, form.UseOwner))
			}
		}
	case rules.Deployment:
		s.around(r.spec.Worker, set)
	case rules.Attachment:
		s.add(set, s.sources(r.spec.Worker, rules.Deployment, form.UseOwner))
		if r.spec.Hostname != "" {
			if uid := s.routeOwner(r.spec.Hostname); uid != "" {
				set[uid] = true // an older claim of another tenant is gone: this one has the route now
			}
		}
	}
}

// around adds the worker and everything that is rendered from its deployment.
func (s *State) around(worker string, set map[string]bool) {
	set[worker] = true
	for _, role := range [...]rules.Role{rules.Deployment, rules.Attachment, rules.Class} {
		s.add(set, s.sources(worker, role, form.UseOwner))
	}
}

func (s *State) add(set map[string]bool, uids []string) {
	for _, uid := range uids {
		set[uid] = true
	}
}

// routeOwner returns the live claim of a host name that has the route: the oldest over all tenants.
func (s *State) routeOwner(host string) (owner string) {
	prefix := key(host)
	s.routes.Ascend(prefix, func(k, uid string) bool {
		if strings.HasPrefix(k, prefix) {
			owner = uid
		}
		return false
	})
	return owner
}

// put renders one Resource and stores it if its served representation moved. It is the only place where a revision
// moves, and observedAt with a rendering.
func (s *State) put(at int64, cur *Resource, seen aggregates) {
	r := *cur
	if r.verified() || r.Address != "" || r.spec.Hostname != "" {
		s.observe(at, &r, cur, seen)
	}
	sum := sha256.Sum256(Representation(&r))
	if bytes.Equal(sum[:], r.Digest) {
		return
	}
	r.Digest = sum[:]
	if r.Revision < MaxCounter {
		r.Revision++
	}
	s.store(&r)
}

func (s *State) observe(at int64, r, cur *Resource, seen aggregates) {
	self := s.facts(r)
	o := form.Observation{Spec: r.spec, Self: &self, Index: r.Index, Address: r.Address, Resolved: true, Lost: r.Lost, SettledAt: r.Since}
	switch r.driver.Role {
	case rules.Worker:
		o.Aggregate = seen.get(r.UID)
	case rules.Deployment, rules.Attachment:
		o.Aggregate = seen.get(r.spec.Worker)
		o.Pins = s.pinStates(r)
		o.RouteOwner = r.spec.Hostname == "" || s.routeOwner(r.spec.Hostname) == r.UID
	case rules.Migration:
		o.Pins, o.Ledger, o.Target = s.pinStates(r), s.ledger(r.spec.Database), r.Target
	case rules.Version:
		o.Resolved = rules.Pins(s.pinStates(r)) == nil
		o.Bundle = s.verified(r.spec.Bundle)
	}
	observed, output, cause := r.driver.Render(&o)
	r.Output = output
	if !r.verified() {
		return // never verified: nothing observed yet, but what was assigned shows
	}
	if !bytes.Equal(observed, cur.Observed) || !equalCause(cause, cur.Cause) {
		r.Observed, r.ObservedAt = observed, at
		r.Cause, r.CauseSince = cause, at
	}
}

// verified reports whether there is something to observe: a create or update succeeded, or one of a migration failed and told
// what is applied.
func (r *Resource) verified() bool { return r.Settled || r.Target != nil }

func equalCause(a, b *rules.Cause) bool { return a == b || a != nil && b != nil && *a == *b }
