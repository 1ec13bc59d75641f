package e2e

import (
	"strings"
	"testing"
)

// docs/fleet.md, Revocation: a member that is removed learns it, also one that was away when that was decided and one that votes. It serves
// nothing from then on, says so in /readyz and `edged status`, and knows it still when nobody can be asked.
func TestRemovedMembersKnowIt(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 2, 2)
	a, b, c, d := f.nodes[0], f.nodes[1], f.nodes[2], f.nodes[3]
	url := f.deploy(a, saying(t, "one"))
	f.everywhere(url, "one", a, b, c, d)
	out := func(n *node, what string) {
		t.Helper()
		var got answer
		var shown string
		n.waits(func() bool {
			got = n.get(url)
			shown, _ = n.try("status")
			return got.status == 503 && strings.Contains(shown, "this node was removed from it")
		}, what+" serves on, or does not say why not")
		if ready, err := n.ask(n.client(n.info.Admin, nil), "GET", "http://admin/readyz", nil); err != nil || ready.status != 503 || !strings.Contains(ready.body, "removed from the fleet") {
			t.Errorf("%s: /readyz says %d %s, %v", what, ready.status, ready.body, err)
		}
		if !strings.Contains(shown, "ready    no") || !strings.Contains(shown, "serves nothing any more") {
			t.Errorf("%s: its status is\n%s", what, shown)
		}
	}
	f.edged(a, "fleet", "remove", c.id())
	out(c, "an edge")

	d.kill()
	f.edged(a, "fleet", "remove", d.id())
	d = member(t, d.dir, "--role", "edge")
	out(d, "an edge that was away")

	// The leader hands leadership on and removes nothing; whoever stays is asked.
	var leaves, stays *node
	for id, m := range f.members(a) {
		switch {
		case m.Leads && id == a.id():
			stays, leaves = a, b
		case m.Leads && id == b.id():
			stays, leaves = b, a
		}
	}
	f.edged(stays, "fleet", "remove", leaves.id(), "--lose-data")
	out(leaves, "a voter")
	f.everywhere(url, "one", stays)

	stays.kill()
	d.kill()
	d = member(t, d.dir, "--role", "edge")
	out(d, "an edge that can ask nobody")
}
