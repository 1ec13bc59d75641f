package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"edged/control/rules"
)

// refFleet is a naive reading of the rules FL-1 to FL-5.
type refFleet struct {
	founder string
	members map[string]*Member // of a member only ID, Name, Control, Peer, Serial and Draining are looked at
	removed map[string]bool
	invites map[string]*refInvite
}

type refInvite struct {
	secret, by, proof string
	control           bool
	expires           int64
}

func newRefFleet() *refFleet {
	return &refFleet{members: map[string]*Member{}, removed: map[string]bool{}, invites: map[string]*refInvite{}}
}

func pickOf[V any](x *sequence, m map[string]V, other string) string {
	if len(m) == 0 || x.rng.IntN(8) == 0 {
		return other
	}
	return slices.Sorted(maps.Keys(m))[x.rng.IntN(len(m))]
}

// homeOf is the home of a Resource of the reference.
func (x *sequence) homeOf(r *refResource) string {
	if r.spec.kind != "AtLeastOnceQueue" {
		return ""
	}
	if r.home == "" {
		return x.m.fleet.founder
	}
	return r.home
}

// say sends a command about the fleet.
func (x *sequence) say(kind Kind, change FleetChange, want verdict) bool {
	return x.sayAs(kind, change, func(int64) verdict { return want })
}

// sayAs is say for what depends on the instant. JudgeFleet has to say the same before.
func (x *sequence) sayAs(kind Kind, change FleetChange, want func(at int64) verdict) bool {
	x.n++
	x.now += 1 + int64(x.rng.IntN(1000))
	c := &Command{Kind: kind, At: x.now, Fleet: &change}
	raw, err := c.Encode()
	if err != nil {
		x.t.Fatal(err)
	}
	x.log = append(x.log, raw)
	judged, out := x.s.JudgeFleet(c), x.s.Apply(c)
	if (judged == nil) != (out.Refusal == nil) {
		x.t.Fatalf("%s\nJudgeFleet says %v, Apply %v", x.past(), judged, out.Refusal)
	}
	return x.agree(fmt.Sprintf("%s %s", kind, raw), out, want(x.now))
}

func (x *sequence) fleet() {
	f := x.m.fleet
	n := x.rng.IntN(10)
	if f.founder == "" && n > 0 || f.founder != "" && n == 0 && x.rng.IntN(4) == 0 {
		x.foundFleet()
		return
	}
	id := pickOf(x, f.members, "n-none")
	switch {
	case n < 4:
		invite := &refInvite{secret: fmt.Sprint("secret", x.n), control: x.rng.IntN(2) == 0, expires: x.now + int64(x.rng.IntN(4000))}
		name := fmt.Sprintf("i%d", x.n)
		if x.say(InviteMember, FleetChange{Invite: &Invite{ID: name, Hash: TokenHash(invite.secret), Control: invite.control, Expires: invite.expires}}, f.needed()) {
			for id, i := range f.invites {
				if x.now >= i.expires {
					delete(f.invites, id)
				}
			}
			f.invites[name] = invite
		}
	case n < 7:
		x.join()
	case n == 7:
		drain := x.rng.IntN(2) == 0
		if x.say(DrainMember, FleetChange{Member: &Member{ID: id, Draining: drain}}, f.known(id)) {
			f.members[id].Draining = drain
		}
	case n == 8:
		peer := fmt.Sprint("host:", x.rng.IntN(3))
		if x.say(ReportMember, FleetChange{Member: &Member{ID: id, Peer: peer}}, f.known(id)) {
			f.members[id].Peer = peer
		}
	default:
		x.removeMember(id)
	}
}

func (f *refFleet) needed() verdict {
	if f.founder == "" {
		return verdict{rules.DependencyInUse, "FL-1"}
	}
	return accepted
}

func (f *refFleet) known(id string) verdict {
	if v := f.needed(); v != accepted {
		return v
	}
	if f.members[id] == nil {
		return verdict{rules.ResourceNotFound, "FL-5.1"}
	}
	return accepted
}

func (x *sequence) foundFleet() {
	f, want := x.m.fleet, accepted
	if f.founder != "" {
		want = verdict{rules.DependencyInUse, "FL-2"}
	}
	m := Member{ID: fmt.Sprintf("n-%d", x.n), Name: fmt.Sprintf("node%d", x.n), Control: true, Serial: "s"}
	if x.say(FoundFleet, FleetChange{Authority: &Authority{Cert: "root", Key: []byte("k")}, Member: &m}, want) {
		f.founder, f.members[m.ID] = m.ID, &m
	}
}

func (x *sequence) join() {
	f := x.m.fleet
	name := pickOf(x, f.invites, "i-none")
	i := f.invites[name]
	secret, proof := "wrong", fmt.Sprint("key", x.rng.IntN(3))
	if i != nil && x.rng.IntN(8) > 0 {
		secret = i.secret
	}
	id := fmt.Sprintf("n-%d", x.n)
	switch x.rng.IntN(6) {
	case 0:
		id = pickOf(x, f.members, id)
	case 1:
		id = pickOf(x, f.removed, id)
	case 2:
		if i != nil && i.by != "" {
			id, proof = i.by, i.proof
		}
	}
	m := Member{ID: id, Name: "node" + strings.TrimPrefix(id, "n-"), Serial: fmt.Sprint("s", x.n)}
	if x.rng.IntN(8) == 0 && len(f.members) > 0 {
		m.Name = f.members[slices.Sorted(maps.Keys(f.members))[0]].Name
	}
	want := func(at int64) verdict {
		taken := slices.ContainsFunc(slices.Collect(maps.Values(f.members)), func(o *Member) bool { return o.Name == m.Name })
		again := i != nil && i.by == id && i.proof == proof && f.members[id] != nil
		switch {
		case f.needed() != accepted:
			return f.needed()
		case i == nil || secret != i.secret:
			return verdict{rules.PermissionDenied, "FL-3.1"}
		case at >= i.expires:
			return verdict{rules.PermissionDenied, "FL-3.2"}
		case i.by != "" && !again:
			return verdict{rules.PermissionDenied, "FL-3.3"}
		case again:
			return accepted
		case f.removed[id]:
			return verdict{rules.Gone, "FL-4.1"}
		case f.members[id] != nil:
			return verdict{rules.NameConflict, "FL-4.2"}
		case taken:
			return verdict{rules.NameConflict, "FL-4.3"}
		}
		return accepted
	}
	change := FleetChange{Invite: &Invite{ID: name}, Hash: TokenHash(secret), Proof: []byte(proof), Member: &m}
	if !x.sayAs(JoinFleet, change, want) {
		return
	}
	if i.by == "" {
		m.Control = i.control
		f.members[id] = &m
		i.by, i.proof = id, proof
		return
	}
	f.members[id].Serial = m.Serial
}

func (x *sequence) removeMember(id string) {
	f := x.m.fleet
	lose := x.rng.IntN(2) == 0
	want := f.known(id)
	if want == accepted {
		voters, homed := 0, false
		for _, m := range f.members {
			if m.Control {
				voters++
			}
		}
		for _, r := range x.m.live {
			homed = homed || x.homeOf(r) == id
		}
		switch {
		case f.members[id].Control && voters == 1:
			want = verdict{rules.DependencyInUse, "FL-5.2"}
		case homed && !lose:
			want = verdict{rules.DependencyInUse, "FL-5.3"}
		}
	}
	if x.say(RemoveMember, FleetChange{Member: &Member{ID: id}, LoseData: lose}, want) {
		delete(f.members, id)
		f.removed[id] = true
	}
}

// checkFleet compares the fleet and every home with the reference.
func (x *sequence) checkFleet() {
	got, f := x.s.Fleet(), x.m.fleet
	if got.Founder != f.founder || len(got.Members) != len(f.members) || len(got.Removed) != len(f.removed) || len(got.Invites) != len(f.invites) {
		x.t.Fatalf("%s\nthe fleet is %+v, the reference has %+v", x.past(), got, f)
	}
	for _, m := range got.Members {
		want := f.members[m.ID]
		if want == nil || m.Name != want.Name || m.Control != want.Control || m.Peer != want.Peer || m.Serial != want.Serial || m.Draining != want.Draining {
			x.t.Fatalf("%s\nmember %+v, the reference has %+v", x.past(), m, want)
		}
	}
	x.s.View(func(v View) {
		for uid, r := range x.m.live {
			if home := v.Home(v.Resource(uid)); home != x.homeOf(r) {
				x.t.Fatalf("%s\nthe home of %s is %q, the reference has %q", x.past(), uid, home, x.homeOf(r))
			}
		}
	})
}
