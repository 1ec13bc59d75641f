package sandbox

import "time"

// Holding is what is at work in one version.
type Holding struct {
	Version    string    // UID
	Worker     string    // UID
	Active     int       // invocations that were admitted and have not ended
	Tails      int       // of these, the ones that go on after their response head or settlement: streams, tasks of waitUntil
	OldestTail time.Time // since when the first of those does; zero if there is none
}

// Holding lists the versions that have something at work, retired ones too, in no order. It is for people and for drains, not for every
// request: it looks at each invocation.
func (s *Sandbox) Holding() []Holding {
	s.mu.Lock()
	versions := s.versionsLocked()
	s.mu.Unlock()
	var out []Holding
	for _, v := range versions {
		if h := v.holding(); h.Active > 0 {
			out = append(out, h)
		}
	}
	return out
}

func (v *Version) holding() Holding {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := Holding{Version: v.spec.UID, Worker: v.spec.Worker, Active: v.active}
	for g := v.first; g != nil; g = g.next {
		if g.outlived.IsZero() {
			continue
		}
		h.Tails++
		if h.OldestTail.IsZero() || g.outlived.Before(h.OldestTail) {
			h.OldestTail = g.outlived
		}
	}
	return h
}

// outlives notes that an invocation goes on after its response head, or after the settlement of its event.
func (v *Version) outlives(g *guest) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	g.outlived = now
}
