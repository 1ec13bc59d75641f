package state

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"edged/control/form"
)

// homes makes one Resource of each kind of store, accepted by a node.
func (l *lab) homes(prefix, node string) {
	l.t.Helper()
	for uid, formURL := range map[string]string{"kv": form.KVNamespaceURL, "db": form.SQLiteDatabaseURL, "bucket": form.ObjectBucket3URL, "q": form.QueueURL} {
		var s any = object{}
		if uid == "q" {
			s = object{"messageRetentionSeconds": 60}
		}
		c := l.createCommand(formURL, prefix+uid, s)
		c.Home = node
		l.ok(l.apply(c))
	}
}

func (l *lab) homeOf(uid string) (home string) {
	l.s.View(func(v View) { home = v.Home(v.Resource(uid)) })
	return home
}

// The home of a store is the node that accepted its create, for ever; the founder has what is older than homes. KV and all else
// have none.
func TestHomes(t *testing.T) {
	l := newLab(t)
	l.homes("old-", "")
	l.worker("w")
	if got := l.homeOf("old-db"); got != "" {
		t.Errorf("on a node alone the home is %q", got)
	}
	found := FleetChange{Authority: &Authority{Cert: "root"}, Member: &Member{ID: "n-1", Name: "one", Control: true}}
	l.agreed(l.fleet(FoundFleet, found))
	l.homes("new-", "n-2")
	for uid, want := range map[string]string{
		"old-db": "n-1", "old-bucket": "n-1", "old-q": "n-1", "old-kv": "",
		"new-db": "n-2", "new-bucket": "n-2", "new-q": "n-2", "new-kv": "", "w": "", "nothing": "",
	} {
		if got := l.homeOf(uid); got != want {
			t.Errorf("home of %s is %q, want %q", uid, got, want)
		}
	}
	u := l.command(UpdateResource, "new-q", object{"messageRetentionSeconds": 90})
	u.Home = "n-3"
	l.ok(l.apply(u))
	if got := l.homeOf("new-q"); got != "n-2" {
		t.Errorf("an update moved the home to %s", got)
	}
}

// FL-5.3: a member that is the home of data is removed only if that may be lost.
func TestRemovingAHome(t *testing.T) {
	l := fleetLab(t)
	l.homes("old-", "")
	l.invited("i", func(i *Invite) { i.Control = true })
	l.joined("i", "2")
	l.homes("new-", "n-2")
	remove := func(id string, lose bool) Outcome {
		return l.fleet(RemoveMember, FleetChange{Member: &Member{ID: id}, LoseData: lose})
	}
	l.refused(remove("n-1", false), "FL-5.3", "3 databases", "old-bucket")
	l.refused(remove("n-2", false), "FL-5.3", "new-bucket")
	for _, uid := range []string{"new-db", "new-bucket", "new-q"} {
		l.ok(l.delete(uid))
	}
	l.agreed(remove("n-2", false))
	l.invited("j", func(i *Invite) { i.Control = true })
	l.joined("j", "3")
	l.agreed(remove("n-1", true))
	if got := l.homeOf("old-db"); got != "n-1" {
		t.Errorf("what was lost is at home at %q now", got)
	}
}

// A restored state is that of a node alone: it has no peers, is home of everything, and none of the nodes it knew joins it.
func TestDisband(t *testing.T) {
	l := fleetLab(t)
	l.homes("old-", "")
	l.invited("i", nil)
	l.joined("i", "2")
	l.invited("j", nil)
	l.joined("j", "3")
	l.homes("new-", "n-2")
	l.agreed(l.fleet(RemoveMember, FleetChange{Member: &Member{ID: "n-3"}}))
	l.invited("k", nil)
	l.agreed(l.fleet(Disband, FleetChange{Member: &Member{ID: "n-2"}}))
	f := l.s.Fleet()
	if f.Founder != "" || f.Authority != nil || len(f.Members)+len(f.Invites) != 0 {
		t.Errorf("it still is a fleet: %+v", f)
	}
	if got := slices.Sorted(maps.Keys(f.Removed)); !slices.Equal(got, []string{"n-1", "n-3"}) {
		t.Errorf("barred are %v", got)
	}
	for _, secret := range []string{"sealed key", "sealed gossip", string(TokenHash("k"))} {
		if bytes.Contains(l.bytesOf(), []byte(secret)) {
			t.Errorf("it keeps %q", secret)
		}
	}
	if l.homeOf("new-db") != "" || l.homeOf("old-db") != "" {
		t.Error("it is not home of everything")
	}
	l.agreed(l.fleet(FoundFleet, FleetChange{Authority: &Authority{Cert: "new"}, Member: &Member{ID: "n-2", Name: "two", Control: true}}))
	if l.homeOf("new-db") != "n-2" || l.homeOf("old-db") != "n-2" {
		t.Error("the founder is not home of everything")
	}
	l.invited("l", nil)
	l.refused(l.fleet(JoinFleet, joining("l", "1")), "FL-4.1")
}
