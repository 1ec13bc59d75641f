//go:build faultpoints

package state

// outOfBand takes the record of Command.UID away as corruption or an operator's hand would: its own pins go, those on it stay
// (REL-10). What relied on it is rendered again. Only builds that test crashes have it.
func (s *State) outOfBand(c *Command) Outcome {
	r := s.get(c.UID)
	if c.Kind != Vanish || r == nil {
		return Outcome{}
	}
	s.resources.Delete(r.UID)
	s.note(r.UID, r)
	s.unlist(r)
	s.unpin(r)
	s.unclaim(r)
	set := map[string]bool{r.UID: true}
	s.affected(r, set)
	s.pinsUnder(key(r.UID), func(p Pin) bool {
		set[p.Source] = true
		s.affected(s.get(p.Source), set)
		return true
	})
	s.renderAll(c.At, set)
	return Outcome{Plan: true}
}
