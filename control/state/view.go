package state

import (
	"edged/control/form"
	"edged/control/rules"
)

// View is the state at one instant, for reading many things that have to fit together. It is good only inside the function that
// State.View calls.
type View struct{ s *State }

// View calls fn with the state as it is now; no command is applied before fn returned, so it has to be short.
func (s *State) View(fn func(View)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	fn(View{s})
}

// Resource returns a live Resource, nil if there is none.
func (v View) Resource(uid string) *Resource { return v.s.get(uid) }

// Each calls fn for every live Resource in ascending order of UID.
func (v View) Each(fn func(*Resource)) {
	v.s.resources.Scan(func(_ string, r *Resource) bool { fn(r); return true })
}

// Sources returns the UIDs of the live Resources of a role that pin the target for a use, ascending.
func (v View) Sources(target string, role rules.Role, use form.Use) []string {
	return v.s.sources(target, role, use)
}

// Ready reports whether a version may be selected now.
func (v View) Ready(version *Resource) bool { return v.s.unready(version) == nil }

// HostOwner returns the UID of the endpoint or domain that has the route of a canonical host name, "" if nobody has.
func (v View) HostOwner(host string) string {
	if uid := v.s.routeOwner(host); uid != "" {
		return uid
	}
	return v.s.claimant("", rules.Claim{Class: rules.ClaimAddress, Value: host})
}

// changes is the log of Resources that were stored or removed since it was last taken.
type changes struct {
	on   bool
	from map[string]*Resource // by UID, as they were before the first change; nil for one that was not there
}

// Track begins to keep the log that Changes gives.
func (s *State) Track() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changes{on: true, from: map[string]*Resource{}}
}

// Changes returns what changed since it was called last: Resources by UID as they were before, nil for those that were not there.
// Its size is bounded by the number of Resources that ever changed in between, so somebody has to call it who tracks.
func (s *State) Changes() map[string]*Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.changed.from
	s.changed.from = map[string]*Resource{}
	return out
}

// store makes r the record of its UID.
func (s *State) store(r *Resource) {
	old, _ := s.resources.Set(r.UID, r)
	s.note(r.UID, old)
}

func (s *State) note(uid string, old *Resource) {
	if !s.changed.on {
		return
	}
	if _, known := s.changed.from[uid]; !known {
		s.changed.from[uid] = old
	}
}
