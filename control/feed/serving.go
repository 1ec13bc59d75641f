package feed

import (
	"sync"
	"time"
)

const (
	maxMembers  = 4096
	reportEvery = 15 * time.Second
	reportLasts = 4 * reportEvery // a member that was not heard from for this long is no longer told of
)

// serving is what members said that they serve.
type serving struct {
	mu      sync.Mutex
	members map[string]reported
}

type reported struct {
	report
	at time.Time
}

func (s *serving) init() { s.members = map[string]reported{} }

func (s *serving) note(member string, r report, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.members[member]; !known && len(s.members) >= maxMembers {
		s.dropLocked(now)
		if len(s.members) >= maxMembers {
			return false
		}
	}
	s.members[member] = reported{r, now}
	return true
}

func (s *serving) dropLocked(now time.Time) {
	for m, r := range s.members {
		if now.Sub(r.at) > reportLasts {
			delete(s.members, m)
		}
	}
}

// Serving returns, for each member that reported within the last minute, the index whose plan it serves; members of another epoch are
// left out. One that serves the newest plan counts as serving the newest index: nothing between changed it.
func (s *Server) Serving() map[string]uint64 {
	s.mu.Lock()
	epoch, last, index := s.epoch, s.plan.Index, s.index
	s.mu.Unlock()
	s.serving.mu.Lock()
	defer s.serving.mu.Unlock()
	s.serving.dropLocked(time.Now())
	out := map[string]uint64{}
	for m, r := range s.serving.members {
		switch {
		case r.Epoch != epoch:
		case r.Index >= last:
			out[m] = max(r.Index, index)
		default:
			out[m] = r.Index
		}
	}
	return out
}

// Announced returns what each member that reported within the last minute said of its program, whatever plan it serves.
func (s *Server) Announced() map[string]Program {
	s.serving.mu.Lock()
	defer s.serving.mu.Unlock()
	s.serving.dropLocked(time.Now())
	out := make(map[string]Program, len(s.serving.members)+1)
	for m, r := range s.serving.members {
		out[m] = r.Program
	}
	return out
}
