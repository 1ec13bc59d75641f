package feed

import (
	"slices"
	"weak"

	"edged/control/plan"
)

// snapshot is a whole plan in frames, but for the parts that are filtered. It lives as long as somebody sends it.
type snapshot struct {
	index  uint64
	ended  <-chan struct{} // closed when it no longer leads to what the server has: an index alone may be one of another epoch
	frames []byte
	rest   *plan.Delta
}

// find returns which delta of the history follows the plan at index, -1 if none does.
func (s *Server) find(index uint64) int {
	i, ok := slices.BinarySearchFunc(s.history, index, func(e *entry, index uint64) int {
		switch {
		case e.prev < index:
			return -1
		case e.prev > index:
			return 1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return i
}

// snapshot returns a plan from which the history leads to the newest. Many who ask at once get the same bytes.
func (s *Server) snapshot() (*snapshot, error) {
	s.snapMu.Lock()
	defer s.snapMu.Unlock()
	s.mu.Lock()
	old := s.snap.Value()
	if old != nil && old.ended == s.ended && (old.index == s.plan.Index || s.find(old.index) >= 0) {
		s.mu.Unlock()
		return old, nil
	}
	d := s.plan.Delta() // the parts are immutable: they are encoded without the lock
	ended := s.ended
	s.mu.Unlock()
	now := &snapshot{index: d.Index, ended: ended, rest: &plan.Delta{Index: d.Index, Crons: d.Crons, Consumers: d.Consumers}}
	d.Crons, d.Consumers = plan.Changes[plan.Cron]{}, plan.Changes[plan.Consumer]{}
	var err error
	if now.frames, err = appendPieces(appendFrame(nil, frameReset), d); err != nil {
		return nil, err
	}
	s.snap = weak.Make(now)
	return now, nil
}

// tail returns the frames that end the snapshot for a follower: what it needs of the rest.
func (n *snapshot) tail(f *Filter) ([]byte, error) {
	rest := n.rest
	if f != nil {
		rest = f.pass(rest)
		rest.Crons.Gone, rest.Consumers.Gone = nil, nil // it starts with nothing
	}
	return appendChange(nil, 0, rest)
}
