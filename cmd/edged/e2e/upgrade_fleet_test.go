package e2e

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listenerOf returns the kernel's number of the socket that listens on an address of this machine, "" for none.
func listenerOf(t *testing.T, addr string) string {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	ip := at.IP.To4()
	local := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], at.Port)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == local && f[3] == "0A" {
			return f[9]
		}
	}
	return ""
}

// writers put keys of their own at a member, without an end, and know which were acknowledged.
type writers struct {
	pacer
	sent atomic.Int64
}

func (n *node) writers(name, host string, every time.Duration, stop chan struct{}) *writers {
	w, addr := &writers{}, n.info.HTTP
	w.dial = func() (net.Conn, error) { return net.Dial("tcp", addr) }
	w.every, w.stop = every, stop
	w.next = func() (request, want string) {
		body := fmt.Sprint(w.sent.Add(1))
		return fmt.Sprintf("PUT /%s-%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", name, body, host, len(body), body), "put"
	}
	w.start(1) // one connection: what was sent was acknowledged, in order, unless the pacer says otherwise
	return w
}

// Issue 7.5 with `edged upgrade`: the leader of three voters and an edge are each followed by a new process while both are asked, over
// connections that are kept alive and new ones, and written to. No request fails; the listener for members is the same socket, on which nobody
// is refused; leadership is handed on, not missed; everybody is current again; what was written is everywhere, and so is the next deploy.
func TestUpgradeOfFleet(t *testing.T) {
	f := foundFleet(t, 3, 1)
	url := f.deploy(f.nodes[0], upgradedWorker(t, "one"))
	f.everywhere(url, "one", f.nodes...)
	host, edge := strings.TrimPrefix(url, "http://"), f.nodes[3]
	lead, places := f.leader(f.nodes[0]), map[string]string{}
	lead.waits(func() bool {
		places = f.places()
		return len(places) == 4 && !slices.ContainsFunc(slices.Collect(maps.Values(places)), func(at string) bool { return strings.HasSuffix(at, " ") })
	}, "not all have told where they gossip")

	every, stop := 20*time.Millisecond, make(chan struct{})
	if len(raceFlag) > 0 {
		every *= 5 // each key is read back everywhere
	}
	get := "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	loads, writes := map[string]*pacer{}, map[string]*writers{}
	for name, n := range map[string]*node{"leader": lead, "edge": edge} {
		addr := n.info.HTTP
		for kind, request := range map[string]string{"kept alive": get, "new": strings.Replace(get, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)} {
			p := &pacer{dial: func() (net.Conn, error) { return net.Dial("tcp", addr) }, every: every, stop: stop,
				next: func() (string, string) { return request, "one" }}
			p.start(2)
			loads[name+", "+kind] = p
		}
		writes[name] = n.writers(name, host, every, stop)
		loads[name+", writes"] = &writes[name].pacer
	}
	peers := map[string]*knocker{"leader": knock(lead.peer(), stop), "edge": knock(edge.peer(), stop)}
	progress := func() {
		for name, p := range loads {
			was := p.count()
			f.nodes[0].until("requests, "+name, func() bool { return p.count() > was+10 })
		}
	}
	progress()
	for _, n := range []*node{lead, edge} {
		sockets := map[string]string{}
		for _, addr := range []string{n.peer(), n.info.HTTP, n.info.Control} {
			sockets[addr] = listenerOf(t, addr)
		}
		began := time.Now()
		u := n.upgrade()
		t.Logf("upgraded in %v, clients waited %v", time.Since(began).Round(time.Millisecond), u.Waited)
		for addr, socket := range sockets {
			if now := listenerOf(t, addr); now != socket || now == "" {
				t.Errorf("on %s the socket %s listens, before it was %s", addr, now, socket)
			}
		}
		f.current(f.nodes[1])
		if now := f.places(); !maps.Equal(now, places) {
			t.Errorf("members are at %v, before they were at %v", now, places)
		}
		progress()
	}
	close(stop)
	for name, p := range loads {
		p.ended(t, name)
	}
	for name, k := range peers {
		if k.end(); k.refused > 0 || k.taken == 0 {
			t.Errorf("of %d connections to the %s's listener for members %d were refused", k.taken+k.refused, name, k.refused)
		}
	}
	for name, w := range writes {
		for first := int64(1); first <= w.sent.Load(); first += 200 {
			last := min(first+199, w.sent.Load())
			f.everywhere(fmt.Sprintf("%s/lacks?who=%s&first=%d&last=%d", url, name, first, last), "lacks ", f.nodes...)
		}
	}
	if out := f.edged(lead, "deploy", upgradedWorker(t, "two"), "--wait"); !strings.Contains(out, "all of 4 nodes serve it") {
		t.Errorf("deploy --wait: %s", out)
	}
	f.everywhere(url, "two", f.nodes...)
	lead.kill()
	edge.kill()
	if strings.Contains(lead.log.String(), "this node stops as the leader") {
		t.Error("nobody took leadership over")
	}
	if strings.Contains(edge.log.String(), "no newer plan came") && len(raceFlag) == 0 { // with the detector it may take seconds
		t.Error("the edge has waited for a plan although nothing had changed")
	}
}

// upgradedWorker answers with a text, keeps what is put, and tells which numbers of a writer it does not know.
func upgradedWorker(t *testing.T, text string) string {
	return write(t, map[string]string{
		"worker.toml": "name = \"says\"\nmain = \"w.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n[bindings]\nCACHE = { kv = \"cache\" }\n",
		"w.js": `export default { async fetch(request, env) {
	const url = new URL(request.url), key = url.pathname.slice(1), ask = url.searchParams;
	if (request.method === "PUT") { await env.CACHE.put(key, await request.text()); return new Response("put"); }
	if (key === "") return new Response("` + text + `");
	const lacks = [];
	for (let i = Number(ask.get("first")); i <= Number(ask.get("last")); i++) {
		const v = await env.CACHE.get(ask.get("who") + "-" + i);
		if (v === null || new TextDecoder().decode(v) !== String(i)) lacks.push(i);
	}
	return new Response("lacks " + lacks.join());
} }`})
}

// leader returns the voter that leads.
func (f *fleetOf) leader(of *node) *node {
	f.t.Helper()
	for id, m := range f.members(of) {
		for _, n := range f.nodes {
			if m.Leads && n.id() == id {
				return n
			}
		}
	}
	f.t.Fatal("nobody leads")
	return nil
}

// places returns where members listen for each other, and gossip, by ID.
func (f *fleetOf) places() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	for id, m := range f.members(f.nodes[1]) {
		out[id] = m.Peer + " " + m.Gossip
	}
	return out
}

// current waits until `edged fleet nodes` shows that all members serve the newest plan.
func (f *fleetOf) current(of *node) {
	f.t.Helper()
	out := ""
	of.waits(func() bool {
		out = f.edged(of, "fleet", "nodes")
		return strings.Count(out, " current ") == len(f.nodes)
	}, "not all are current")
}

// knocker connects to an address again and again.
type knocker struct {
	done           chan struct{}
	taken, refused int
}

func knock(addr string, stop chan struct{}) *knocker {
	k := &knocker{done: make(chan struct{})}
	go func() { // ends with stop
		defer close(k.done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if c, err := net.Dial("tcp", addr); err == nil {
				k.taken++
				c.Close()
			} else {
				k.refused++
			}
		}
	}()
	return k
}

func (k *knocker) end() { <-k.done }
