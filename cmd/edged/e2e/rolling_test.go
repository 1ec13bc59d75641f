package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const keeper = `export default {
	async fetch(request, env) {
		const url = new URL(request.url), n = url.searchParams.get("n");
		if (url.pathname === "/write") {
			await env.CACHE.put(n, "kv " + n);
			await env.DB.execute("insert into t values (?1)", [{ type: "integer", value: n }]);
			await env.FILES.put(n, "object " + n);
			await env.TASKS.send("task " + n);
			return new Response("wrote " + n);
		}
		if (url.pathname === "/read") {
			const text = async (v) => v === null ? "nothing" : new TextDecoder().decode(v);
			const row = (await env.DB.query("select n from t where n = ?1", [{ type: "integer", value: n }])).rows.length;
			const object = await env.FILES.get(n);
			return new Response([await text(await env.CACHE.get(n)), row, object === null ? "nothing" : await new Response(object.body).text()].join());
		}
		const v = await env.CACHE.get(url.pathname);
		return new Response(v === null ? env.WORD : new TextDecoder().decode(v));
	},
	async scheduled(event, env) { await env.CACHE.put("/ran", event.cron); },
	async queue(batch, env) { for (const m of batch.messages) await env.CACHE.put("/" + new TextDecoder().decode(m.body).replace(" ", "-"), "delivered"); },
}`

// keeperDir is that worker with everything that a node keeps for one; consumes says whether its queue has a consumer.
func keeperDir(t *testing.T, consumes bool) string {
	handlers, consumer := `"fetch", "scheduled"`, ""
	if consumes {
		handlers, consumer = handlers+`, "queue"`, "[[consumers]]\nqueue = \"tasks\"\nmax_batch_size = 10\nmax_batch_timeout_seconds = 0\n"+
			"max_concurrency = 1\nmax_retries = 3\nretry_delay_seconds = 0\n"
	}
	return write(t, map[string]string{"w.js": keeper, "m/1.sql": "create table t(n integer primary key);", "secrets.toml": "WORD = \"hush\"\n",
		"worker.toml": "name = \"keeper\"\nmain = \"w.js\"\nhandlers = [" + handlers + "]\nendpoint = true\ncrons = [\"0 3 * * *\"]\n[secrets]\nrequired = [\"WORD\"]\n" +
			"[bindings]\nCACHE = { kv = \"cache\" }\nDB = { sqlite = \"app\", migrations = \"m/\" }\nFILES = { bucket = \"files\" }\nTASKS = { queue = \"tasks\" }\n" + consumer})
}

// Rolling upgrade (issue 7): what a node of the commit before has written is there and served after the upgrade, goes on to be changed,
// and is there again for the program of before as long as nothing was written in a newer format.
func TestUpgradeOfData(t *testing.T) {
	old := before(t)
	dir := filepath.Join(t.TempDir(), "data")
	n := startBinary(t, old, nil, dir)
	first := keeperDir(t, false)
	url := n.deploy(first, "--secrets-file", filepath.Join(first, "secrets.toml"))
	expect(t, "write", n.get(url+"/write?n=1"), 200, "wrote 1")
	for i, program := range []string{binary, old, binary} {
		if code := n.stop(); code != 0 {
			t.Fatalf("exit %d", code)
		}
		n = startBinary(t, program, nil, dir)
		expect(t, "secret", n.get(url+"/"), 200, "hush")
		for k := 1; k <= i+1; k++ {
			expect(t, "read", n.get(fmt.Sprintf("%s/read?n=%d", url, k)), 200, fmt.Sprintf("kv %d,1,object %d", k, k))
		}
		expect(t, "write", n.get(fmt.Sprintf("%s/write?n=%d", url, i+2)), 200, fmt.Sprintf("wrote %d", i+2))
	}
	var schedules []struct{ Name, Cron, Ready string }
	if err := json.Unmarshal([]byte(n.edged("cron", "list", "--json")), &schedules); err != nil || len(schedules) != 1 || schedules[0].Ready != "yes" {
		t.Fatalf("schedules %+v, %v", schedules, err)
	}
	n.edged("cron", "trigger", schedules[0].Name)
	n.eventually(url+"/ran", "^0 3 ")
	second := keeperDir(t, true)
	if again := n.deploy(second, "--secrets-file", filepath.Join(second, "secrets.toml")); again != url {
		t.Errorf("the address became %s", again)
	}
	for k := 1; k <= 4; k++ { // sent to every program, waiting since
		n.eventually(fmt.Sprintf("%s/task-%d", url, k), "^delivered$")
	}
}

// upgraded is a fleet whose members are exchanged one after the other while all are asked.
type upgraded struct {
	*fleetOf
	url     string
	version int                     // of the worker, as deployed last
	live    []*atomic.Pointer[node] // the members as they run, nil while one does not
	stop    chan struct{}
	asking  sync.WaitGroup
	mu      sync.Mutex
	broken  []string // promises
	asked   atomic.Int64
}

// watch asks every member that runs again and again until the end of the test.
func (u *upgraded) watch() {
	u.stop = make(chan struct{})
	u.t.Cleanup(func() { close(u.stop); u.asking.Wait() })
	for i, n := range u.nodes {
		at := new(atomic.Pointer[node])
		at.Store(n)
		u.live = append(u.live, at)
		u.asking.Go(func() {
			for {
				if n := at.Load(); n != nil {
					a, err := n.ask(n.client(n.info.HTTP, nil), "GET", u.url, nil)
					if (err != nil || a.status != 200) && at.Load() == n {
						u.mu.Lock()
						u.broken = append(u.broken, fmt.Sprintf("member %d answers %d %.200s, %v", i, a.status, a.body, err))
						u.mu.Unlock()
					}
					u.asked.Add(1)
				}
				select {
				case <-u.stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
}

// exchange stops a member and starts it again with a program.
func (u *upgraded) exchange(i int, program string) {
	u.t.Helper()
	n, role := u.nodes[i], "control,edge"
	if i >= 3 {
		role = "edge"
	}
	u.live[i].Store(nil)
	if code := n.stop(); code != 0 {
		u.t.Fatalf("member %d: exit %d", i, code)
	}
	u.nodes[i] = memberOf(u.t, program, n.dir, "--role", role)
	u.everywhere(u.url, fmt.Sprint(u.version), u.nodes[i])
	u.live[i].Store(u.nodes[i])
}

// works deploys by way of a voter, and writes keys at all members: all of it comes to all.
func (u *upgraded) works(by int) {
	u.t.Helper()
	u.version++
	if again := u.deploy(u.nodes[by], saying(u.t, fmt.Sprint(u.version))); again != u.url {
		u.t.Errorf("the address became %s", again)
	}
	for i, n := range u.nodes {
		expect(u.t, "put", n.do("PUT", fmt.Sprintf("%s/key-%d", u.url, i), strings.NewReader(fmt.Sprintf("of %d", u.version))), 200, "put")
	}
	for i := range u.nodes {
		u.everywhere(fmt.Sprintf("%s/key-%d", u.url, i), fmt.Sprintf("of %d", u.version), u.nodes...)
	}
	u.everywhere(u.url, fmt.Sprint(u.version), u.nodes...)
	u.everywhere(u.url+"/sql", "rows", u.nodes[0]) // at home there
}

// leads returns which voter leads.
func (u *upgraded) leads() int {
	u.t.Helper()
	for id, m := range u.members(u.nodes[0]) {
		if m.Leads {
			return slices.IndexFunc(u.nodes, func(n *node) bool { return n.id() == id })
		}
	}
	u.t.Fatal("nobody leads")
	return -1
}

// Rolling upgrade (issue 7): three voters and an edge are upgraded one at a time as docs/fleet.md says, the edge first, the leader last. At
// every step all serve, a deploy by way of an old and of a new voter comes to all, and so does what any of them writes. At the end all
// announce their level. A voter and the edge go back to the program before in the same way.
func TestRollingUpgrade(t *testing.T) {
	old := before(t)
	u := &upgraded{fleetOf: foundFleetOf(t, old, 3, 1), version: 1}
	u.url = u.deploy(u.nodes[0], saying(t, "1"))
	u.everywhere(u.url, "1", u.nodes...)
	u.watch()
	order := []int{3, 0, 1, 2}
	for k := range order {
		if k > 0 && k < 3 && order[k] == u.leads() { // last
			order[k], order[3] = order[3], order[k]
		}
		u.exchange(order[k], binary)
		u.works(order[min(k+1, 3)]) // an old voter while there is one
		u.works(order[max(k, 1)])   // a new one, as soon as there is one
	}
	u.nodes[0].waits(func() bool {
		for _, m := range u.members(u.nodes[0]) {
			if m.Level < 1 || m.Version == "" || m.Version == "before" {
				return false
			}
		}
		return true
	}, "not all announce the new program")
	for _, i := range []int{order[1], 3} {
		u.exchange(i, old)
		u.works(i % 3)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.broken) > 0 || u.asked.Load() == 0 {
		t.Errorf("of %d questions %d were not answered: %s", u.asked.Load(), len(u.broken), strings.Join(u.broken[:min(5, len(u.broken))], "\n"))
	}
}
