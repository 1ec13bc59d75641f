package sandbox

import "slices"

// Shed closes sandboxes that have no work, for memory: all that belong to no version, and of each version the half that it
// used least recently. It returns how many it closed; invocations at work are not touched.
func (s *Sandbox) Shed() int {
	s.mu.Lock()
	versions, shed := s.versionsLocked(), s.spare
	s.spare = nil
	s.mu.Unlock()
	for _, v := range versions {
		v.mu.Lock()
		n := (len(v.ready) + 1) / 2
		shed = append(shed, v.ready[:n]...)
		v.ready = slices.Delete(v.ready, 0, n)
		v.mu.Unlock()
	}
	for _, g := range shed {
		s.discard(g)
	}
	s.opt.Metrics.shed.Add(float64(len(shed)))
	return len(shed)
}

// SetTight says whether memory is short. While it is, no more sandboxes are made than can run at once; a version without
// one gets that of another or, if all are at work, its invocations fail with event.ErrOverloaded.
func (s *Sandbox) SetTight(tight bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tight = tight
}
