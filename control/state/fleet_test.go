package state

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"edged/control/rules"
)

// fleetLab is a lab whose state is that of a fleet that n-1 founded.
func fleetLab(t testing.TB) *lab {
	l := newLab(t)
	l.agreed(l.fleet(FoundFleet, FleetChange{Authority: &Authority{Cert: "root", Key: []byte("sealed key"), Gossip: []byte("sealed gossip")},
		Member: &Member{ID: "n-1", Name: "one", Control: true, Edge: true, Peer: "10.0.0.1:7000", Serial: "s1"}}))
	return l
}

// fleet judges a command about the fleet and applies it. The two have to agree.
func (l *lab) fleet(kind Kind, change FleetChange) Outcome {
	l.t.Helper()
	l.now++
	c := &Command{Kind: kind, At: l.now, Fleet: &change}
	judged, out := l.s.JudgeFleet(c), l.s.Apply(c)
	if (judged == nil) != (out.Refusal == nil) || judged != nil && judged.Detail() != out.Refusal.Detail() {
		l.t.Fatalf("JudgeFleet says %v, Apply %v", judged, out.Refusal)
	}
	return out
}

func (l *lab) agreed(out Outcome) Outcome {
	l.t.Helper()
	if out.Refusal != nil {
		l.t.Fatalf("refused: %s", out.Refusal.Detail())
	}
	return out
}

// invited makes an invite whose secret is its ID, good for a second of the lab's clock.
func (l *lab) invited(id string, change func(*Invite)) {
	l.t.Helper()
	i := &Invite{ID: id, Hash: TokenHash(id), Edge: true, Expires: l.now + 1000}
	if change != nil {
		change(i)
	}
	l.agreed(l.fleet(InviteMember, FleetChange{Invite: i}))
}

// joining is what node n-NAME says that has the invite.
func joining(invite, name string) FleetChange {
	return FleetChange{Invite: &Invite{ID: invite}, Hash: TokenHash(invite), Proof: []byte("key of " + name),
		Member: &Member{ID: "n-" + name, Name: name, Peer: name + ":7000", Serial: "s-" + name}}
}

func (l *lab) joined(invite, name string) {
	l.t.Helper()
	l.agreed(l.fleet(JoinFleet, joining(invite, name)))
}

func (l *lab) members() string {
	var out []string
	for _, m := range l.s.Fleet().Members {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

// FL-1 and FL-2: without a fleet nothing about it can be asked; it is founded once.
func TestFleetIsFoundedOnce(t *testing.T) {
	l := newLab(t)
	for _, kind := range []Kind{InviteMember, JoinFleet, ReportMember, DrainMember, RemoveMember} {
		l.refused(l.fleet(kind, joining("i", "2")), "FL-1", "--peer")
	}
	l = fleetLab(t)
	before := l.bytesOf()
	l.refused(l.fleet(FoundFleet, FleetChange{Authority: &Authority{Cert: "other"}, Member: &Member{ID: "n-2"}}), "FL-2", "n-1")
	if f := l.s.Fleet(); f.Founder != "n-1" || f.Authority.Cert != "root" || l.members() != "n-1" {
		t.Errorf("the fleet is %+v\nbefore %s", f, before)
	}
}

// FL-3 and FL-4: who may join, row by row. A refusal changes nothing.
func TestJoin(t *testing.T) {
	for _, row := range []struct {
		name  string
		first func(*lab)
		say   func(*FleetChange)
		rule  string
		seed  rules.Seed
	}{
		{"good", nil, nil, "", ""},
		{"unknown invite", nil, func(c *FleetChange) { c.Invite = &Invite{ID: "other"} }, "FL-3.1", rules.PermissionDenied},
		{"wrong secret", nil, func(c *FleetChange) { c.Hash = TokenHash("other") }, "FL-3.1", rules.PermissionDenied},
		{"no secret", nil, func(c *FleetChange) { c.Hash = nil }, "FL-3.1", rules.PermissionDenied},
		{"at its end", func(l *lab) { l.now += 997 }, nil, "", ""},
		{"expired", func(l *lab) { l.now += 998 }, nil, "FL-3.2", rules.PermissionDenied},
		{"expired, and the secret is wrong", func(l *lab) { l.now += 1999 }, func(c *FleetChange) { c.Hash = TokenHash("x") }, "FL-3.1", rules.PermissionDenied},
		{"used by another", func(l *lab) { l.joined("i", "3") }, nil, "FL-3.3", rules.PermissionDenied},
		{"used by this node for another key", func(l *lab) { l.joined("i", "2") }, func(c *FleetChange) { c.Proof = []byte("other key") }, "FL-3.3", rules.PermissionDenied},
		{"used for this key by another node", func(l *lab) { l.joined("i", "3") }, func(c *FleetChange) { c.Proof = []byte("key of 3") }, "FL-3.3", rules.PermissionDenied},
		{"used by this node, which was removed", func(l *lab) {
			l.joined("i", "2")
			l.agreed(l.fleet(RemoveMember, FleetChange{Member: &Member{ID: "n-2"}}))
		}, nil, "FL-3.3", rules.PermissionDenied},
		{"removed", func(l *lab) {
			l.invited("j", nil)
			l.joined("j", "2")
			l.agreed(l.fleet(RemoveMember, FleetChange{Member: &Member{ID: "n-2"}}))
		}, nil, "FL-4.1", rules.Gone},
		{"a member", func(l *lab) {
			l.invited("j", nil)
			l.joined("j", "2")
		}, nil, "FL-4.2", rules.NameConflict},
		{"the founder's ID", nil, func(c *FleetChange) { c.Member.ID = "n-1" }, "FL-4.2", rules.NameConflict},
		{"a name in use", nil, func(c *FleetChange) { c.Member.Name = "one" }, "FL-4.3", rules.NameConflict},
		{"a full fleet", func(l *lab) {
			for i := 2; i <= MaxMembers; i++ {
				id := fmt.Sprint("x", i)
				l.s.fleet.members.Set(id, &Member{ID: id, Name: id})
			}
		}, nil, "FL-4.4", rules.DependencyInUse},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := fleetLab(t)
			l.invited("i", nil)
			if row.first != nil {
				row.first(l)
			}
			c := joining("i", "2")
			if row.say != nil {
				row.say(&c)
			}
			l.now++
			l.s.Apply(&Command{Kind: Sweep, At: l.now}) // the clock alone moves from here on
			l.now--
			before := l.bytesOf()
			out := l.fleet(JoinFleet, c)
			if row.rule == "" {
				l.agreed(out)
				if l.s.Member("n-2") == nil {
					t.Error("it is no member")
				}
				return
			}
			l.refused(out, row.rule)
			l.seed(out, row.seed)
			if !bytes.Equal(l.bytesOf(), before) {
				t.Error("a refused join changed the state")
			}
		})
	}
}

// FL-3.3: of two nodes that show one invite at the same moment, the one whose command stands first in the log joins.
func TestTwoJoinsWithOneInvite(t *testing.T) {
	l := fleetLab(t)
	l.invited("i", nil)
	a := &Command{Kind: JoinFleet, At: l.now, Fleet: new(joining("i", "2"))}
	b := &Command{Kind: JoinFleet, At: l.now, Fleet: new(joining("i", "3"))}
	if va, vb := l.s.JudgeFleet(a), l.s.JudgeFleet(b); va != nil || vb != nil {
		t.Fatalf("before either joined they are judged %v and %v", va, vb)
	}
	l.agreed(l.s.Apply(b))
	l.refused(l.s.Apply(a), "FL-3.3")
	if l.members() != "n-1 n-3" {
		t.Errorf("members are %s", l.members())
	}
}

// A join whose answer was lost is answered again, for the same node and key alone; it stays one member.
func TestJoinAgain(t *testing.T) {
	l := fleetLab(t)
	l.invited("i", nil)
	l.joined("i", "2")
	was := l.s.Member("n-2")
	c := joining("i", "2")
	c.Member.Serial, c.Member.Name, c.Member.Peer = "later", "other", "elsewhere:1"
	l.agreed(l.fleet(JoinFleet, c))
	now := *l.s.Member("n-2")
	if now.Serial != "later" {
		t.Errorf("its certificate is %s", now.Serial)
	}
	if now.Serial = was.Serial; now.Name != was.Name || now.Peer != was.Peer || now.JoinedAt != was.JoinedAt || l.members() != "n-1 n-2" {
		t.Errorf("it became %+v, was %+v", now, was)
	}
	l.now += 1000
	l.refused(l.fleet(JoinFleet, c), "FL-3.2")
}

// What a member is comes from its invite, never from what it says of itself.
func TestMemberIsWhatItsInviteGrants(t *testing.T) {
	l := fleetLab(t)
	l.invited("i", func(i *Invite) { i.Labels = map[string]string{"region": "eu", "tier": "a"} })
	c := joining("i", "2")
	c.Member.Control, c.Member.Draining, c.Member.JoinedAt, c.Member.Granted = true, true, 7, map[string]string{"tier": "z"}
	c.Member.Labels = map[string]string{"region": "us", "disk": "fast"}
	l.agreed(l.fleet(JoinFleet, c))
	m := l.s.Member("n-2")
	if m.Control || !m.Edge || m.Draining || m.JoinedAt != l.now {
		t.Errorf("it is %+v", m)
	}
	if want := map[string]string{"region": "eu", "tier": "a", "disk": "fast"}; !maps.Equal(m.Labels, want) {
		t.Errorf("its labels are %v, want %v", m.Labels, want)
	}
	l.agreed(l.fleet(ReportMember, FleetChange{Member: &Member{ID: "n-2", Name: "x", Control: true, Peer: "p:1", Gossip: "g:2", KVEpoch: 9, Draining: true,
		Labels: map[string]string{"tier": "b", "rack": "4"}}}))
	m = l.s.Member("n-2")
	if m.Name != "2" || m.Control || m.Draining || m.Serial != "s-2" || m.Peer != "p:1" || m.Gossip != "g:2" || m.KVEpoch != 9 {
		t.Errorf("after its report it is %+v", m)
	}
	if want := map[string]string{"region": "eu", "tier": "a", "rack": "4"}; !maps.Equal(m.Labels, want) {
		t.Errorf("its labels are %v, want %v", m.Labels, want)
	}
	if out := l.fleet(ReportMember, FleetChange{Member: m}); m.Serial == "" || l.s.Member("n-2").Peer != "p:1" || !out.Plan {
		t.Error("a renewal changed more than the certificate")
	}
	same := *m
	same.Serial = ""
	if out := l.agreed(l.fleet(ReportMember, FleetChange{Member: &same})); out.Plan {
		t.Error("a report that says nothing new moves the plan")
	}
}

// FL-3.4: what is kept of invites is bounded; those that have expired are forgotten.
func TestInvitesAreBounded(t *testing.T) {
	l := fleetLab(t)
	for i := range MaxInvites {
		l.invited(fmt.Sprint("i", i), func(i *Invite) { i.Expires = 5_000_000 })
	}
	more := FleetChange{Invite: &Invite{ID: "more", Expires: 6_000_000}}
	l.refused(l.fleet(InviteMember, more), "FL-3.4")
	l.now = 5_000_000
	l.agreed(l.fleet(InviteMember, more))
	if got := l.s.Fleet().Invites; len(got) != 1 || got[0].ID != "more" {
		t.Errorf("%d invites are kept", len(got))
	}
}

// FL-5: who may be drained and removed.
func TestDrainAndRemove(t *testing.T) {
	l := fleetLab(t)
	drain := func(id string, on bool) Outcome {
		return l.fleet(DrainMember, FleetChange{Member: &Member{ID: id, Draining: on}})
	}
	remove := func(id string, lose bool) Outcome {
		return l.fleet(RemoveMember, FleetChange{Member: &Member{ID: id}, LoseData: lose})
	}
	l.invited("i", nil)
	l.joined("i", "2")
	for _, kind := range []Kind{DrainMember, RemoveMember, ReportMember} {
		l.refused(l.fleet(kind, FleetChange{Member: &Member{ID: "n-9"}}), "FL-5.1")
	}
	if out := l.agreed(drain("n-2", true)); !out.Plan || !l.s.Member("n-2").Draining {
		t.Error("n-2 does not drain")
	}
	if out := l.agreed(drain("n-2", true)); out.Plan {
		t.Error("the second drain changed something")
	}
	if l.agreed(drain("n-2", false)); l.s.Member("n-2").Draining {
		t.Error("n-2 drains still")
	}
	l.refused(remove("n-1", true), "FL-5.2", "n-1")
	l.agreed(remove("n-2", false))
	if l.members() != "n-1" || l.s.Fleet().Removed["n-2"] != l.now {
		t.Errorf("the fleet is %+v", l.s.Fleet())
	}
	l.refused(remove("n-2", false), "FL-5.1")
	l.invited("voter", func(i *Invite) { i.Control = true })
	l.joined("voter", "3")
	l.agreed(remove("n-1", false))
	l.refused(remove("n-3", true), "FL-5.2")
}

// A snapshot holds the whole fleet and names a format that programs without fleets refuse; one of a state without is what they read.
func TestFleetInSnapshots(t *testing.T) {
	l := newLab(t)
	l.homes("old-", "n-1")
	if !bytes.HasPrefix(l.bytesOf(), []byte(`{"head":{"format":1,`)) {
		t.Errorf("without a fleet the snapshot begins %.40s", l.bytesOf())
	}
	l = fleetLab(t)
	l.homes("old-", "")
	l.invited("i", func(i *Invite) { i.Labels = map[string]string{"b": "1", "a": "2"} })
	l.joined("i", "2")
	l.invited("j", nil)
	l.joined("j", "3")
	l.agreed(l.fleet(RemoveMember, FleetChange{Member: &Member{ID: "n-3"}}))
	l.invited("k", nil)
	frozen := l.bytesOf()
	if !bytes.HasPrefix(frozen, []byte(`{"head":{"format":2,`)) {
		t.Errorf("with a fleet the snapshot begins %.40s", frozen)
	}
	r := newLab(t)
	r.now = l.now
	if err := r.s.Restore(bytes.NewReader(frozen)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.bytesOf(), frozen) {
		t.Errorf("restored\n%s\nwant\n%s", r.bytesOf(), frozen)
	}
	early := l.s.Freeze()
	for _, x := range []*lab{l, r} {
		x.refused(x.fleet(JoinFleet, joining("k", "3")), "FL-4.1")
		x.refused(x.fleet(JoinFleet, joining("j", "4")), "FL-3.3")
		x.joined("k", "4")
	}
	if !bytes.Equal(l.bytesOf(), r.bytesOf()) {
		t.Error("the restored fleet goes on differently")
	}
	var late bytes.Buffer
	if err := early.Write(&late); err != nil || !bytes.Equal(late.Bytes(), frozen) {
		t.Errorf("a frozen fleet went on: %v\n%s", err, late.Bytes())
	}
}

// Sealed parts of the authority are stored under another key; those of another authority are not.
func TestResealAuthority(t *testing.T) {
	l := fleetLab(t)
	seal := func(cert, key string) {
		l.s.Apply(&Command{Kind: Reseal, At: l.now, Fleet: &FleetChange{Authority: &Authority{Cert: cert, Key: []byte(key)}}})
	}
	seal("root", "again")
	seal("other", "foreign")
	if a := l.s.Fleet().Authority; string(a.Key) != "again" {
		t.Errorf("the key is %q", a.Key)
	}
}

// Snapshots and log entries of before there were fleets read as they did: no fleet, no homes, every Resource as it was.
func TestStateOfBeforeFleets(t *testing.T) {
	snapshot, err := os.ReadFile("testdata/before-fleets.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile("testdata/before-fleets.log")
	if err != nil {
		t.Fatal(err)
	}
	restored, replayed := newLab(t), newLab(t)
	if err := restored.s.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		c, err := DecodeCommand(line)
		if err != nil {
			t.Fatal(err)
		}
		replayed.s.Apply(c)
	}
	for name, l := range map[string]*lab{"snapshot": restored, "log": replayed} {
		if !bytes.Equal(l.bytesOf(), snapshot) {
			t.Errorf("%s gives\n%s\nwant\n%s", name, l.bytesOf(), snapshot)
		}
		if f := l.s.Fleet(); f.Founder != "" || f.Authority != nil || len(f.Members)+len(f.Removed)+len(f.Invites) != 0 {
			t.Errorf("%s has the fleet %+v", name, f)
		}
		if home := l.homeOf("db"); home != "" {
			t.Errorf("%s gives the home %q", name, home)
		}
		l.agreed(l.fleet(FoundFleet, FleetChange{Authority: &Authority{}, Member: &Member{ID: "n-1"}}))
		if home := l.homeOf("db"); home != "n-1" {
			t.Errorf("%s: after the founding the home is %q", name, home)
		}
	}
}
