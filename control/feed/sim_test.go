package feed

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/plan"
	"edged/internal/testkit"
)

// leavesOnly keeps crons and consumers of other nodes from those that need none.
func leavesOnly(member string) *Filter {
	if member[0] != 'p' {
		return nil
	}
	return &Filter{Cron: func(*plan.Cron) bool { return false }, Consumer: func(c *plan.Consumer) bool { return c.UID == "c1" }}
}

// sim is a fleet in virtual time: 3 voters with the same plan, relays that follow them, and leaves that follow relays, some of which
// are sent only what they need.
type sim struct {
	t      *testing.T
	rnd    *rand.Rand
	net    *fabric
	src    *source
	epoch  uint64
	voters []*Server
	down   []func() // of voters' listeners; nil while it is down
	nodes  []*node
}

const (
	simRelays = 5
	simLeaves = 45
)

func newSim(t *testing.T, rnd *rand.Rand) *sim {
	s := &sim{t: t, rnd: rnd, net: newFabric(), src: newSource(t, rnd), epoch: 1}
	var voters, relays []Upstream
	for i := range 3 {
		v := newServer(t, ServerOptions{Filter: leavesOnly})
		s.voters = append(s.voters, v)
		s.down = append(s.down, nil)
		s.up(i)
		voters = append(voters, upstream(fmt.Sprint("voter", i), true))
	}
	for i := range simRelays {
		n := newNode(t, s.net, fmt.Sprint("relay", i), fixed(voters...))
		s.nodes = append(s.nodes, n)
		relays = append(relays, upstream(n.name, false))
	}
	for i := range simLeaves {
		kind := "leaf"
		if i%3 == 0 {
			kind = "part"
		}
		s.nodes = append(s.nodes, newNode(t, s.net, fmt.Sprint(kind, i), fixed(relays...)))
	}
	for _, n := range s.nodes {
		n.filter = leavesOnly
		n.start()
	}
	return s
}

func (s *sim) up(i int) {
	if s.down[i] == nil {
		s.down[i] = s.net.serve(fmt.Sprint("voter", i), handler(s.voters[i], s.src.files))
	}
}

func (s *sim) lose(i int) {
	if s.down[i] != nil {
		s.down[i]()
		s.down[i] = nil
	}
}

// restore is a control state of before, restored from a backup: another epoch, a lower index, another plan.
func (s *sim) restore() {
	s.epoch++
	next := plan.New()
	d := s.src.plan.Delta()
	d.Workers.Put, d.Hosts.Put, d.Crons.Put = d.Workers.Put[len(d.Workers.Put)/2:], d.Hosts.Put[len(d.Hosts.Put)/2:], nil
	next.Apply(d)
	next.Index = s.src.plan.Index / 2
	to := s.src.plan.To(next)
	s.src.plan = next
	for _, v := range s.voters {
		publish(s.t, v, s.epoch, to)
	}
}

func (s *sim) event() {
	switch pick := s.rnd.IntN(20); {
	case pick < 10:
		d := s.src.change(s.t)
		for _, v := range s.voters {
			publish(s.t, v, s.epoch, d)
		}
	case pick < 14:
		n := s.nodes[s.rnd.IntN(len(s.nodes))]
		us := n.upstreams()
		l := link(n.name, us[s.rnd.IntN(len(us))].Member)
		s.net.setCut(s.rnd.IntN(3) > 0, l)
	case pick < 16:
		if n := s.nodes[s.rnd.IntN(len(s.nodes))]; n.stop != nil {
			n.stop()
		} else {
			n.start()
		}
	case pick < 17:
		i := s.rnd.IntN(3)
		if s.down[i] == nil {
			s.up(i)
		} else {
			s.lose(i)
		}
	case pick < 18 && s.rnd.IntN(4) == 0:
		s.restore()
	default:
		time.Sleep(time.Duration(s.rnd.IntN(20_000)) * time.Millisecond)
	}
	time.Sleep(time.Duration(s.rnd.IntN(300)) * time.Millisecond)
}

func (s *sim) heal() {
	for i := range s.voters {
		s.up(i)
	}
	s.net.mu.Lock()
	clear(s.net.cut)
	s.net.mu.Unlock()
	for _, n := range s.nodes {
		if n.stop == nil {
			n.start()
		}
	}
}

// Whatever is cut, restarted or lost, and whatever order it comes in: every follower ends with the plan of the source, never goes back
// within an epoch or to an older one, and never has a plan in use whose files it lacks (the oracle is in node.use and node.start).
func TestFleetConverges(t *testing.T) {
	rnd := testkit.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, rnd)
		for range 120 {
			s.event()
		}
		s.heal()
		time.Sleep(2 * time.Minute)
		for _, n := range s.nodes {
			if err := n.equals(s.src.plan, leavesOnly(n.name)); err != nil {
				t.Error(err)
			}
			if since, cut := n.f.CutOff(); cut {
				t.Errorf("%s counts as cut off since %v, %v after all was healed", n.name, since, time.Since(since))
			}
		}
		for i, v := range s.voters {
			serving := v.Serving()
			for _, n := range s.nodes[:simRelays] {
				if serving[n.name] != v.index {
					t.Errorf("voter %d hears that %s serves %d, want %d", i, n.name, serving[n.name], v.index)
				}
			}
		}
		for _, n := range s.nodes {
			n.stop()
		}
		for i := range s.voters {
			s.lose(i)
		}
	})
}
