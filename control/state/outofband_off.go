//go:build !faultpoints

package state

// outOfBand is nothing: no record goes but by its Operation.
func (s *State) outOfBand(*Command) Outcome { return Outcome{} }
