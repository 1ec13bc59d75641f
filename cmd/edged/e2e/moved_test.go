package e2e

import (
	"path/filepath"
	"testing"
)

// Issue 7: a voter that comes back at another address tells the members so, which follow it there; one that was away meanwhile learns it from
// another, and where it knows nobody else from whoever --join names.
func TestMovedVoter(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 1)
	a, d := f.nodes[0], f.nodes[1]
	url := f.deploy(a, saying(t, "one"))
	f.everywhere(url, "one", d)
	moves := func() {
		t.Helper()
		a.kill()
		places.Delete(a.dir)
		a = member(t, a.dir)
	}
	moves()
	f.deploy(a, saying(t, "two"))
	f.everywhere(url, "two", d)

	d.kill()
	moves()
	f.deploy(a, saying(t, "three"))
	d = member(t, d.dir, "--role", "edge", "--join", a.peer(), "--invite", "@"+filepath.Join(t.TempDir(), "none"))
	f.everywhere(url, "three", d)

	e := f.join(a, filepath.Join(t.TempDir(), "data"), "edge")
	f.everywhere(url, "three", e)
	e.kill()
	moves()
	f.deploy(a, saying(t, "four"))
	f.everywhere(url, "four", d)
	e = member(t, e.dir, "--role", "edge")
	f.everywhere(url, "four", e) // d tells it, or hands the plan on
}
