package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fleetOf is some nodes under one control plane; the first has founded it.
type fleetOf struct {
	t       *testing.T
	nodes   []*node
	token   string // file with the founder's
	program string // that new members run; "" is the one under test
}

// places are the addresses of members by data directory: one that comes back is looked for where it was.
var places sync.Map

// addrs are those that freeAddr has given to a test of this run.
var addrs sync.Map

// freeAddr is an address that nobody has now, and that nobody gets by chance while a node that is to come back to it is down: it lies
// below the ports that the kernel gives away, where only this function looks.
func freeAddr(t *testing.T) string {
	t.Helper()
	first := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		fmt.Sscan(string(b), &first)
	}
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(max(1, first-10000)))
		if _, given := addrs.LoadOrStore(addr, true); given {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free address was found")
	return ""
}

// member starts a node with a door for other nodes.
func member(t *testing.T, dir string, flags ...string) *node {
	t.Helper()
	return memberOf(t, binary, dir, flags...)
}

// memberOf is member with another build of the program.
func memberOf(t *testing.T, program, dir string, flags ...string) *node {
	t.Helper()
	place, _ := places.LoadOrStore(dir, [2]string{freeAddr(t), freeAddr(t)})
	at := place.([2]string)
	return startBinary(t, program, nil, dir, append([]string{"--peer", at[0], "--gossip", at[1]}, flags...)...)
}

// foundFleet starts voters and edges and returns when the voters vote.
func foundFleet(t *testing.T, voters, edges int) *fleetOf {
	t.Helper()
	return foundFleetOf(t, binary, voters, edges)
}

func foundFleetOf(t *testing.T, program string, voters, edges int) *fleetOf {
	t.Helper()
	founder := memberOf(t, program, filepath.Join(t.TempDir(), "data"))
	f := &fleetOf{t: t, nodes: []*node{founder}, token: filepath.Join(founder.dir, "control.token"), program: program}
	for i := 1; i < voters+edges; i++ {
		role := "control,edge"
		if i >= voters {
			role = "edge"
		}
		n := f.join(founder, filepath.Join(t.TempDir(), "data"), role)
		if i < voters {
			f.edged(founder, "fleet", "add-control", n.id())
		}
	}
	return f
}

// join starts a node with an invite of a member's fleet.
func (f *fleetOf) join(of *node, dir, role string, flags ...string) *node {
	f.t.Helper()
	var made struct{ Invite string }
	if text := f.edged(f.nodes[0], "fleet", "invite", "--role", role, "--json"); json.Unmarshal([]byte(text), &made) != nil {
		f.t.Fatal(text)
	}
	flags = append([]string{"--role", role, "--join", "https://" + of.peer(), "--invite", made.Invite}, flags...)
	n := memberOf(f.t, cmp.Or(f.program, binary), dir, flags...)
	f.nodes = append(f.nodes, n)
	return n
}

// edged runs a client command against a member with the founder's token.
func (f *fleetOf) edged(n *node, args ...string) string {
	f.t.Helper()
	return n.edged(append(args, "--token-file", f.token)...)
}

func (f *fleetOf) deploy(n *node, dir string) string {
	f.t.Helper()
	return n.deploy(dir, "--token-file", f.token)
}

// members is what `edged fleet nodes` says, by ID.
func (f *fleetOf) members(n *node) map[string]fleetMember {
	f.t.Helper()
	var out struct{ Items []fleetMember }
	text := f.edged(n, "fleet", "nodes", "--json")
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&out); err != nil {
		f.t.Fatal(err, text)
	}
	byID := map[string]fleetMember{}
	for _, m := range out.Items {
		byID[m.ID] = m
	}
	return byID
}

type fleetMember struct {
	ID           string
	Votes, Leads bool
	Serves       uint64
	Peer, Gossip string
	Version      string
	Level        int
}

// everywhere waits until all of the members answer url so.
func (f *fleetOf) everywhere(url, want string, nodes ...*node) {
	f.t.Helper()
	for i, n := range nodes {
		var last answer
		n.waits(func() bool { last = n.get(url); return last.status == 200 && last.body == want },
			fmt.Sprintf("node %d of %d does not answer %q", i, len(nodes), want))
	}
}

func (n *node) id() string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, "node.id"))
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (n *node) peer() string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, "run.json"))
	var info struct{ Peer string }
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil || info.Peer == "" {
		n.t.Fatalf("run.json names no peer listener: %v\n%s", err, b)
	}
	return info.Peer
}

// saying is a worker that answers with a text, or with what a key of its namespace holds.
func saying(t *testing.T, text string) string {
	return write(t, map[string]string{
		"worker.toml": "name = \"says\"\nmain = \"w.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n[bindings]\nCACHE = { kv = \"cache\" }\nDB = { sqlite = \"db\" }\n",
		"w.js": `export default { async fetch(request, env) {
	const path = new URL(request.url).pathname.slice(1);
	if (request.method === "PUT") { await env.CACHE.put(path, await request.text()); return new Response("put"); }
	if (path === "sql") {
		try { await env.DB.query("SELECT 1", []); return new Response("rows"); } catch (e) { return new Response(e.name); }
	}
	if (path !== "") { const v = await env.CACHE.get(path); return new Response(v === null ? "nothing" : new TextDecoder().decode(v)); }
	return new Response("` + text + `");
} }`})
}

// Issue 7: a node becomes the first of a fleet without migration; voters and edges join; every member serves what one deploy says, and has
// the KV of the others; what has one home answers there alone; the loss of the leader stops nothing and loses nothing; a member that was
// away catches up; one that is removed is out for ever.
func TestFleet(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	alone := start(t, dir)
	url := alone.deploy(saying(t, "one"))
	if code := alone.stop(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	a := member(t, dir)
	f := &fleetOf{t: t, nodes: []*node{a}, token: filepath.Join(dir, "control.token")}
	f.everywhere(url, "one", a)
	b := f.join(a, filepath.Join(t.TempDir(), "data"), "control,edge")
	c := f.join(a, filepath.Join(t.TempDir(), "data"), "control,edge")
	ready := func(n *node) answer {
		got, err := n.ask(n.client(n.info.Admin, nil), "GET", "http://admin/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ready(b); got.status != 503 || !strings.Contains(got.body, "add-control "+b.id()) {
		t.Errorf("without a vote it is ready: %d %s", got.status, got.body)
	}
	for _, n := range []*node{b, c} {
		f.edged(a, "fleet", "add-control", n.id())
		n.waits(func() bool { return ready(n).status == 200 }, "a voter is not ready")
	}
	d := f.join(b, filepath.Join(t.TempDir(), "data"), "edge") // by way of a voter that does not lead
	f.everywhere(url, "one", a, b, c, d)

	if got := d.do("PUT", url+"/color", strings.NewReader("green")); got.body != "put" {
		t.Fatalf("put: %d %s", got.status, got.body)
	}
	f.everywhere(url+"/color", "green", a, b, c, d)
	f.everywhere(url+"/sql", "rows", a) // it was made there
	f.everywhere(url+"/sql", "backend_unavailable", b, d)

	a.kill()
	f.everywhere(url, "one", b, c, d)
	if got := b.do("PUT", url+"/color", strings.NewReader("blue")); got.body != "put" {
		t.Fatalf("put without the founder: %d %s", got.status, got.body)
	}
	if again := f.deploy(c, saying(t, "two")); again != url {
		t.Errorf("the address became %s", again)
	}
	f.everywhere(url, "two", b, c, d)
	f.everywhere(url+"/color", "blue", b, c, d)

	// A new key of secrets reaches the members with what is sealed with it.
	secret := write(t, map[string]string{"worker.toml": "name = \"keeps\"\nmain = \"w.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n[secrets]\nrequired = [\"WORD\"]\n",
		"w.js": `export default { fetch(request, env) { return new Response(env.WORD); } }`, "secrets.toml": "WORD = \"hush\"\n"})
	kept := c.deploy(secret, "--token-file", f.token, "--secrets-file", filepath.Join(secret, "secrets.toml"))
	f.everywhere(kept, "hush", b, c, d)
	f.edged(c, "secrets", "rotate")
	d.kill()
	d = member(t, d.dir, "--role", "edge")
	f.everywhere(kept, "hush", b, c, d)

	a = member(t, dir)
	f.everywhere(kept, "hush", a)
	f.everywhere(url, "two", a)
	f.everywhere(url+"/color", "blue", a)
	f.everywhere(url+"/sql", "rows", a)

	f.edged(b, "fleet", "remove", d.id())
	if left := f.members(c); len(left) != 3 || left[d.id()].ID != "" {
		t.Errorf("members: %v", left)
	}
	if out := f.edged(a, "deploy", saying(t, "three"), "--wait"); !strings.Contains(out, "all of 3 nodes serve it") {
		t.Errorf("deploy --wait: %s", out)
	}
	for i, n := range []*node{a, b, c} {
		if got := n.get(url); got.body != "three" {
			t.Errorf("node %d answers %q although the deploy has waited for it", i, got.body)
		}
	}
	d.waits(func() bool { return d.get(url).status == 503 }, "a removed member serves on")
}

// Issue 7.3: an edge serves from its last plan without any voter, also after a restart, and what needs the control plane is refused.
func TestEdgeServesAlone(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 1)
	a, d := f.nodes[0], f.nodes[1]
	url := f.deploy(a, saying(t, "one"))
	f.everywhere(url, "one", d)
	a.kill()
	f.everywhere(url, "one", d)
	d.kill()
	d = member(t, d.dir, "--role", "edge")
	f.everywhere(url, "one", d)
	if got, err := d.ask(d.client(d.info.Control, d.trust()), "GET", d.info.ControlOrigin+"/", nil); err != nil || got.status != 421 {
		t.Errorf("its control listener: %d %s, %v", got.status, got.body, err)
	}
	shows := func(wants ...string) {
		t.Helper()
		got := d.edged("status")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("its status lacks %q:\n%s", want, got)
			}
		}
	}
	shows(d.id(), "edge, level 1", "upstream none", "1 served, 0 versions cannot run", "ready    yes", "no part in the control room")
	a = member(t, a.dir)
	f.deploy(a, saying(t, "two"))
	f.everywhere(url, "two", d)
	d.waits(func() bool {
		out, _ := d.try("status")
		return strings.Contains(out, "kv       1 other members") && strings.Contains(out, a.info.ControlOrigin)
	}, "its status does not show the KV store and the control origin of the voter")
	shows("upstream " + a.id())
	if got, code := d.try("deploy", hello(t, "")); code != 1 || !strings.HasPrefix(got, "edged: the node here has the role edge") || !strings.Contains(got, a.info.ControlOrigin) {
		t.Errorf("deploy there: exit %d, %s", code, got)
	}
	var s struct {
		Index    uint64
		Follows  bool
		Upstream string
		CutOff   bool
	}
	if err := json.Unmarshal([]byte(d.edged("status", "--json")), &s); err != nil || !s.Follows || s.Upstream != a.id() || s.Index == 0 || s.CutOff {
		t.Errorf("its status is %+v, %v", s, err)
	}
}

// Issue 7.2: an invite is good for one node, and a data directory with a history of its own joins no other.
func TestJoinRefusals(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 0)
	a := f.nodes[0]
	own := filepath.Join(t.TempDir(), "data")
	start(t, own).kill()
	var made struct{ Invite string }
	if err := json.Unmarshal([]byte(f.edged(a, "fleet", "invite", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	run := func(dir string, flags ...string) string {
		out, code := runEdged(t, append([]string{"run", "--data-dir", dir, "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", "",
			"--peer", "127.0.0.1:0"}, flags...)...)
		if code == 0 {
			t.Errorf("%v started:\n%s", flags, out)
		}
		return out
	}
	join := []string{"--role", "edge", "--join", a.peer(), "--invite", made.Invite}
	if out := run(own, join...); !strings.Contains(out, "control state of its own") {
		t.Errorf("with a state of its own: %s", out)
	}
	f.nodes = append(f.nodes, member(t, filepath.Join(t.TempDir(), "data"), join...))
	if out := run(filepath.Join(t.TempDir(), "data"), join...); !strings.Contains(out, "invite") {
		t.Errorf("with a used invite: %s", out)
	}
	if out := run(filepath.Join(t.TempDir(), "data"), "--role", "edge"); !strings.Contains(out, "--join") {
		t.Errorf("an edge alone: %s", out)
	}
	// An invite from a file; the roles are the invite's, whatever --role says.
	file, late := filepath.Join(t.TempDir(), "invite"), filepath.Join(t.TempDir(), "data")
	if err := json.Unmarshal([]byte(f.edged(a, "fleet", "invite", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(made.Invite+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	join = []string{"--join", a.peer(), "--invite", "@" + file}
	if out := run(late, join...); !strings.Contains(out, "start it with --role edge") {
		t.Errorf("in a role that it has not: %s", out)
	}
	if err := os.Remove(file); err != nil { // it is a member already
		t.Fatal(err)
	}
	f.nodes = append(f.nodes, member(t, late, append(join, "--role", "edge")...))
	a.stop()
	if out, code := runEdged(t, "run", "--data-dir", a.dir, "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", ""); code == 0 || !strings.Contains(out, "--peer") {
		t.Errorf("a member without --peer: %d %s", code, out)
	}
}

// Issue 7: a node that stopped while it founded its fleet goes on with that one, wherever it stopped: its certificate is written last.
func TestFoundingGoesOn(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 0)
	a := f.nodes[0]
	file := func(name string) string { return filepath.Join(a.dir, "fleet", name) }
	root, err := os.ReadFile(file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range [][]string{{"node.pem"}, {"node.pem", "ca.pem"}, {"node.pem", "ca.pem", "gossip.key"}} {
		a.kill()
		for _, name := range lost {
			if err := os.Remove(file(name)); err != nil {
				t.Fatal(err)
			}
		}
		a = member(t, a.dir)
		if again, err := os.ReadFile(file("ca.pem")); err != nil || string(again) != string(root) {
			t.Errorf("without %v it has another authority: %v", lost, err)
		}
		if m := f.members(a); len(m) != 1 || !m[a.id()].Leads {
			t.Errorf("without %v the members are %v", lost, m)
		}
	}
}

// Issue 7.2: a node that asks while the fleet cannot take anybody in, as between two leaders, asks again.
func TestJoinIsRepeated(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 0)
	a := f.nodes[0]
	var made struct{ Invite string }
	if err := json.Unmarshal([]byte(f.edged(a, "fleet", "invite", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	var ways sync.WaitGroup
	ways.Go(func() {
		for {
			in, err := door.Accept()
			if err != nil {
				return
			}
			if asked.Add(1) == 1 {
				in.Close()
				continue
			}
			ways.Go(func() {
				defer in.Close()
				if out, err := net.Dial("tcp", a.peer()); err == nil {
					ways.Go(func() { io.Copy(out, in); out.Close() })
					io.Copy(in, out)
				}
			})
		}
	})
	f.nodes = append(f.nodes, member(t, filepath.Join(t.TempDir(), "data"), "--role", "edge", "--join", door.Addr().String(), "--invite", made.Invite))
	if len(f.members(a)) != 2 || asked.Load() < 2 {
		t.Errorf("%d members after %d questions", len(f.members(a)), asked.Load())
	}
	door.Close()
	ways.Wait()
}
