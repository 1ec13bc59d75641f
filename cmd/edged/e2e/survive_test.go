package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/fleet.md, what survives what, the rows of most voters, of a disk and of a node for ever: without most voters every node serves on, KV
// goes on between those that are left and a database at its home, and changes are refused with 503 until most are back. A voter whose disk is
// gone stops nothing: it is removed, and another node joins, votes and has everything.
func TestLossOfVotersAndOfADisk(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 3, 1)
	a, b, c, d := f.nodes[0], f.nodes[1], f.nodes[2], f.nodes[3]
	url := f.deploy(a, saying(t, "one"))
	f.everywhere(url, "one", f.nodes...)
	put := func(n *node, key, value string) {
		t.Helper()
		expect(t, "put", n.do("PUT", url+"/"+key, strings.NewReader(value)), 200, "put")
	}
	put(c, "before", "1")
	f.everywhere(url+"/before", "1", f.nodes...)

	b.kill()
	c.kill()
	f.everywhere(url, "one", a, d)
	put(d, "meanwhile", "2")
	f.everywhere(url+"/meanwhile", "2", a, d)
	f.everywhere(url+"/sql", "rows", a)
	create := `{"form":"` + forms + `ModuleWorker/0.3.0/","space":"default","name":"late","spec":{}}`
	if got := a.api("POST", "/apis/forms.takoform.com/v2/resources", strings.NewReader(create), "Idempotency-Key", "without-most-voters"); got.status != 503 {
		t.Errorf("without most voters a create is answered %d %s", got.status, got.body)
	}

	b = member(t, b.dir)
	f.deploy(a, saying(t, "two"))
	f.everywhere(url, "two", a, b, d)
	f.everywhere(url+"/meanwhile", "2", b)

	lost := c.id()
	if err := os.RemoveAll(c.dir); err != nil {
		t.Fatal(err)
	}
	f.edged(a, "fleet", "remove", lost)
	e := f.join(b, filepath.Join(t.TempDir(), "data"), "control,edge")
	f.edged(b, "fleet", "add-control", e.id())
	votes := 0
	for id, m := range f.members(e) {
		if m.Votes {
			votes++
		}
		if id == lost {
			t.Error("the node that is gone is a member")
		}
	}
	if votes != 3 {
		t.Errorf("%d members vote, want 3", votes)
	}
	f.deploy(a, saying(t, "three"))
	f.everywhere(url, "three", a, b, d, e)
	for key, value := range map[string]string{"before": "1", "meanwhile": "2"} {
		f.everywhere(url+"/"+key, value, e)
	}
}
