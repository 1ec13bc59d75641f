//go:build linux

package nettest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edged/internal/testkit"
	"edged/internal/testkit/netns"
)

const binaryEnv = "EDGED_NETTEST_BINARY" // the program, as built for this run

func TestMain(m *testing.M) { testkit.Main(m) }

// Issue 7.6: three voters and four edges; each is killed and cut off in turn while traffic, writes and deploys go on. What runs serves all
// the time; one fault stops no deploy; at the end no acknowledged write or deploy is lost and all nodes hold and serve the same.
func TestFleetNetwork(t *testing.T) {
	netns.Wanted(t)
	binary := os.Getenv(binaryEnv)
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "edged")
		if err := netns.Run("", "go", "build", "-o", binary, "edged/cmd/edged"); err != nil {
			t.Fatal(err)
		}
	}
	if !netns.Apart(t, binaryEnv+"="+binary) {
		return
	}
	r := &trial{T: t, rng: testkit.Rand(t), began: time.Now(), f: newFabric(t)}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range r.f.all() {
				t.Logf("end of the log of %s:\n%s", n.name, n.tail())
			}
		}
	})
	r.found()
	for _, i := range r.rng.Perm(len(r.f.all())) {
		r.kill(r.f.all()[i], r.rng.IntN(2) == 0)
	}
	kinds := []string{both, from, to, loss}
	for i, at := range r.rng.Perm(len(r.f.all())) {
		r.cut(r.f.all()[at], kinds[i%len(kinds)], time.Duration(3+r.rng.IntN(6))*time.Second)
	}
	r.cut(r.leader(), from, 20*time.Second)
	r.cut(r.leader(), both, 20*time.Second)
	r.cut(r.f.all()[3], both, 20*time.Second)
	r.moves(r.f.voters()[r.rng.IntN(3)])
	r.moves(r.f.all()[4])
	r.level()
	r.removes(r.f.all()[6])
	leader := r.leader()
	r.removes(r.f.others(leader)[0])
}

// trial is one run of the test.
type trial struct {
	*testing.T
	rng   *rand.Rand
	began time.Time
	f     *fabric
	load  *load
}

func (r *trial) say(format string, args ...any) {
	r.Helper()
	r.Logf("%s %4.0fs: %s", time.Now().UTC().Format("15:04:05"), time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// found makes the fleet. The second voter is cut off while it is given its vote, and the last edge joins while the leader is away.
func (r *trial) found() {
	a := r.f.plug("control,edge")
	a.votes.Store(true)
	a.start()
	r.load = newLoad(r.f, a, rand.New(rand.NewPCG(r.rng.Uint64(), 0)))
	b := r.join(a, "control,edge", nil)
	r.f.harm(b, both)
	if out, err := a.edged(5*time.Second, "fleet", "add-control", b.id()); err == nil {
		r.Errorf("a vote was given to a node that is cut off: %s", out)
	}
	r.load.goesOn()
	r.f.harm(b, "")
	r.votes(b, a)
	c := r.join(a, "control,edge", nil)
	r.votes(c, b)
	for range 3 {
		r.join(b, "edge", nil)
	}
	leader := r.leader()
	r.join(r.f.others(leader)[0], "edge", func() { r.load.faulty.Store(leader, true); leader.kill() })
	leader.start()
	r.load.faulty.Delete(leader)
	r.load.served(r.f.all()...)
	r.say("three voters and four edges serve")
}

// join makes one more member by way of one; meanwhile happens when it has its invite.
func (r *trial) join(by *node, role string, meanwhile func()) *node {
	r.Helper()
	var made struct{ Invite string }
	if err := json.Unmarshal([]byte(by.must("fleet", "invite", "--role", role, "--json")), &made); err != nil {
		r.Fatal(err)
	}
	n := r.f.plug(role)
	code := filepath.Join("sandbox", "code") // what the engine compiled is the same everywhere
	if err := os.MkdirAll(filepath.Join(n.dir, "sandbox"), 0o700); err != nil {
		r.Fatal(err)
	}
	if out, err := exec.Command("cp", "-al", filepath.Join(by.dir, code), filepath.Join(n.dir, code)).CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(n.dir, 0o700); err != nil {
		r.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	begin := time.Now()
	n.start("--join", fmt.Sprintf("https://%s:%d", by.ip, by.peer), "--invite", made.Invite)
	if role == "edge" {
		r.load.on(n)
	}
	r.say("%s joined as %s in %v", n.name, role, time.Since(begin).Round(time.Millisecond))
	return n
}

// votes gives a member a vote by way of another: from then on it serves.
func (r *trial) votes(n, by *node) {
	r.Helper()
	begin := time.Now()
	by.must("fleet", "add-control", n.id())
	n.votes.Store(true)
	r.load.on(n)
	r.say("%s has a vote and serves after %v", n.name, time.Since(begin).Round(time.Millisecond))
}

// leader is the node that leads the control room.
func (r *trial) leader() (leads *node) {
	r.Helper()
	eventually(r.T, soon, func() error {
		for _, v := range r.f.voters() {
			all, err := v.members()
			if err != nil {
				continue
			}
			for _, m := range all.Items {
				for _, n := range r.f.all() {
					if m.Leads && m.ID == n.id() {
						leads = n
						return nil
					}
				}
			}
		}
		return fmt.Errorf("nobody leads")
	})
	return leads
}

// during holds the fleet to its promises while one node has a fault, and after it.
func (r *trial) during(n *node, what string, hold time.Duration, begin, end func()) {
	r.Helper()
	over := time.After(hold)
	start := time.Now()
	r.load.faulty.Store(n, true)
	begin()
	r.load.goesOn()
	went := time.Since(start)
	r.load.served(r.f.others(n)...)
	everywhere := time.Since(start)
	<-over
	healed := time.Now()
	end()
	r.load.served(n)
	r.load.faulty.Delete(n)
	r.say("%s %s: a deploy was acknowledged after %v, everywhere else after %v, and there %v after its end", what, n.name,
		went.Round(time.Millisecond), everywhere.Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
}

// kill ends a process, and with it the machine if its connections shall not even be reset.
func (r *trial) kill(n *node, machine bool) {
	r.Helper()
	what := "kill"
	if machine {
		what = "power cut"
	}
	r.during(n, what, 0, func() {
		if machine {
			r.f.harm(n, both)
		}
		n.kill()
	}, func() {
		if machine {
			r.f.harm(n, "")
		}
		n.start()
	})
}

func (r *trial) cut(n *node, kind string, hold time.Duration) {
	r.Helper()
	r.during(n, kind, hold, func() { r.f.harm(n, kind) }, func() { r.f.harm(n, "") })
}

// moves brings a node back at another peer address.
func (r *trial) moves(n *node) {
	r.Helper()
	r.during(n, "move", 0, n.kill, func() { n.peer += 100; n.start() })
}

// removes takes a node out of the fleet while it is cut off. When it is back it learns so, from a voter that it asks or
// from the plan on a connection that outlived the cut, and serves nothing any more.
func (r *trial) removes(n *node) {
	r.Helper()
	r.f.harm(n, both)
	r.leader().must("fleet", "remove", n.id(), "--lose-data")
	for worker, url := range r.load.urls {
		if _, err := r.load.version(n, worker, url); err != nil {
			r.Errorf("%s, cut off, does not serve %s: %v", n.name, worker, err)
		}
	}
	back := time.Now()
	r.f.harm(n, "")
	for worker, url := range r.load.urls {
		eventually(r.T, soon, func() error {
			if _, err := n.ask("GET", url, ""); err == nil || !strings.Contains(err.Error(), "503") {
				return fmt.Errorf("%s, removed, answers %s: %v", n.name, worker, err)
			}
			return nil
		})
	}
	took := time.Since(back)
	var out []byte
	err := n.ns.In(func() (err error) { // it tells its own machine alone
		out, err = exec.Command(os.Getenv(binaryEnv), "status", "--data-dir", n.dir, "--token-file", r.f.token).CombinedOutput()
		return err
	})
	if err != nil || !strings.Contains(string(out), "this node was removed from it: ") {
		r.Errorf("%s does not know that it was removed: %v\n%s", n.name, err, out)
	}
	r.say("%s, removed while it was cut off, serves nothing %v after it is back", n.name, took.Round(time.Millisecond))
}

// level ends the load and holds all nodes to what was acknowledged.
func (r *trial) level() {
	r.Helper()
	r.load.end()
	r.load.served(r.f.all()...)
	l := r.load.ledger
	var first map[string]string
	for _, n := range r.f.all() {
		eventually(r.T, soon, func() error {
			holds, err := r.load.holds(n)
			if err != nil {
				return err
			}
			if faults := l.missing(holds); len(faults) > 0 {
				return fmt.Errorf("%s: %d faults: %.2000q", n.name, len(faults), faults)
			}
			if first == nil {
				first = holds
			}
			if !maps.Equal(first, holds) {
				return fmt.Errorf("%s holds %d keys, the first %d, and not the same", n.name, len(holds), len(first))
			}
			return nil
		})
		if lines, err := n.metrics(); err != nil || !strings.Contains(lines, "\nedged_kv_resurrected_total 0") {
			r.Errorf("%s has brought deletes back, or does not say: %v", n.name, err)
		}
		for range 20 {
			for worker, url := range r.load.urls {
				if v, err := r.load.version(n, worker, url); err != nil || v != l.last(worker) {
					r.Errorf("%s answers version %d of %s, %v; the last acknowledged is %d", n.name, v, worker, err, l.last(worker))
				}
			}
		}
	}
	eventually(r.T, soon, func() error {
		for _, v := range r.f.voters() {
			all, err := v.members()
			if err != nil {
				return err
			}
			votes, level := 0, 0
			for _, m := range all.Items {
				if m.Votes {
					votes++
				} else if m.Serves == all.Index {
					level++
				}
			}
			if votes != 3 || level != 4 {
				return fmt.Errorf("%s sees %d voters and %d edges that serve its plan", v.name, votes, level)
			}
		}
		return nil
	})
	for i, broken := range l.broken {
		if i < 40 {
			r.Error(broken)
		}
	}
	r.say("%d writes and %d deploys were acknowledged; %d keys are left", l.acked, r.load.deploys.Load(), len(first))
	if l.acked < 100 || r.load.deploys.Load() < 10 {
		r.Error("too little went on: this shows nothing")
	}
}
