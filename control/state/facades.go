package state

import (
	"slices"

	"edged/control/rules"
)

// carry records which facade sets the program has. A version keeps the set that it was sealed with: one whose set is gone renders
// not ready and cannot be selected, until a program carries the set again; nothing seals it anew (worker-version §9). It reports
// whether what a node serves may have changed.
func (s *State) carry(c *Command) bool {
	if slices.Equal(s.facades, c.Facades) {
		return false
	}
	s.facades = slices.Clone(c.Facades)
	set := map[string]bool{}
	s.resources.Scan(func(uid string, r *Resource) bool {
		if r.driver.Role == rules.Version {
			set[uid] = true
			s.affected(r, set)
		}
		return true
	})
	s.renderAll(c.At, set)
	return true
}

// carries reports whether a version that was sealed with the set may run.
func (s *State) carries(set string) bool {
	return s.facades == nil || set == "" || slices.Contains(s.facades, set)
}

// Facades returns the facade sets that the program carried when it last said so. Shared and immutable.
func (s *State) Facades() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facades
}
