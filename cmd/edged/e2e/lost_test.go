package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/fleet.md, What a member has lost: a member one of whose folders is gone makes nothing in its place, where that could be another
// history or another identity. It says what to do, each time, and serves again once the folder is back.
func TestLostFolders(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 2, 1)
	a, b, e := f.nodes[0], f.nodes[1], f.nodes[2]
	url := f.deploy(a, saying(t, "one"))
	f.everywhere(url, "one", a, b, e)
	refuses := func(n *node, flags []string, wants ...string) {
		t.Helper()
		for range 2 { // the first refusal leaves nothing that the second takes for the folder
			out, code := runEdged(t, append([]string{"run", "--data-dir", n.dir, "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", ""}, flags...)...)
			if code == 0 {
				t.Fatalf("it started:\n%s", out)
			}
			for _, want := range wants {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		}
	}
	peer := []string{"--peer", "127.0.0.1:0"}
	without := func(n *node, folder string, check func()) {
		t.Helper()
		away := filepath.Join(t.TempDir(), folder)
		at := filepath.Join(n.dir, folder)
		if err := os.Rename(at, away); err != nil {
			t.Fatal(err)
		}
		check()
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(away, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*node{a, b} { // the founder, and one that joined
		n.kill()
		without(n, "control", func() {
			refuses(n, peer, "control log", "is gone", "edged fleet remove "+n.id()+" --lose-data", "restore a backup")
		})
		without(n, "fleet", func() {
			refuses(n, peer, "certificate", "is gone", "edged fleet remove "+n.id(), "new invite")
			refuses(n, nil, "certificate", "is gone", "edged fleet remove "+n.id())
			refuses(n, append(peer, "--join", "127.0.0.1:1", "--invite", "x"), "certificate", "is gone", "edged fleet remove "+n.id())
		})
		back := member(t, n.dir)
		if n == a {
			a = back
		} else {
			b = back
		}
	}
	e.kill()
	without(e, "fleet", func() {
		refuses(e, append(peer, "--role", "edge"), "certificate", "is gone", "edged fleet remove "+e.id())
	})
	e = member(t, e.dir, "--role", "edge")
	f.deploy(a, saying(t, "two"))
	f.everywhere(url, "two", a, b, e)
}

// The only voter of a fleet has its authority in the control log: it gives itself another certificate, and says so, but serves by itself never.
func TestTheOnlyVoterLostItsCertificate(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 1)
	a, e := f.nodes[0], f.nodes[1]
	url := f.deploy(a, saying(t, "one"))
	a.kill()
	if err := os.RemoveAll(filepath.Join(a.dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	out, code := runEdged(t, "run", "--data-dir", a.dir, "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", "")
	if code == 0 || !strings.Contains(out, "start it with --peer") {
		t.Errorf("alone: exit %d, %s", code, out)
	}
	a = member(t, a.dir)
	f.deploy(a, saying(t, "two"))
	f.everywhere(url, "two", a, e)
}
