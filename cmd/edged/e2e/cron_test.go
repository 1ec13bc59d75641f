package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// attachments §4.3: a trigger fires the scheduled handler in a minute that it matches, with that minute as scheduledTime.
func TestCronFires(t *testing.T) {
	t.Parallel() // it waits for the next minute to begin
	n := start(t, t.TempDir())
	cache := n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	worker := n.served("clock", `export default {
		async scheduled(event, env) { await env.CACHE.put('ran', event.cron + ' ' + event.scheduledTime); },
		async fetch(request, env) { const v = await env.CACHE.get('ran'); return new Response(v === null ? '' : v); } }`,
		object{"handlers": []string{"fetch", "scheduled"}, "kvBindings": []bound{{"CACHE", ref{cache}}}})
	n.made("WorkerCronTrigger/0.3.0/", "clock.cron", object{"worker": ref{worker}, "cron": "* * * * *"})
	url := n.address("clock", worker)
	began := time.Now()
	ran := regexp.MustCompile(`^\* \* \* \* \* (\d+)$`)
	for end := began.Add(100 * time.Second); ; <-time.After(200 * time.Millisecond) {
		body := n.get(url).body
		if m := ran.FindStringSubmatch(body); m != nil {
			var minute int64
			fmt.Sscan(m[1], &minute)
			if at := time.UnixMilli(minute); minute%60000 != 0 || at.Before(began.Truncate(time.Minute)) || at.After(time.Now()) {
				t.Errorf("it ran for %v, began %v", at, began)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the trigger did not fire; the worker says %q", body)
		}
	}
}

// attachments §4.3: a run that ends while the node stops has ended: the next start does not fire it again.
func TestCronRunEndsInTheDrain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	n := start(t, dir)
	url := n.deploy(write(t, map[string]string{
		"worker.toml": "name = \"slow\"\nmain = \"w.js\"\nhandlers = [\"fetch\", \"scheduled\"]\nendpoint = true\ncrons = [\"0 3 * * *\", \"0 4 * * *\"]\n[bindings]\nCACHE = { kv = \"cache\" }\n",
		"w.js": `const read = async (env, key) => { const v = await env.CACHE.get(key); return v === null ? 0 : Number(new TextDecoder().decode(v)); };
export default {
	async scheduled(event, env) {
		const key = "/" + event.cron.split(" ")[1];
		await env.CACHE.put(key, String(await read(env, key) + 1));
		if (key === "/3") await new Promise((done) => setTimeout(done, 2000));
	},
	async fetch(request, env) { return new Response(await read(env, new URL(request.url).pathname)); },
}`}))
	var schedules []struct{ Name, Cron string }
	if err := json.Unmarshal([]byte(n.edged("cron", "list", "--json")), &schedules); err != nil || len(schedules) != 2 {
		t.Fatalf("schedules %+v, %v", schedules, err)
	}
	trigger := func(cron string) {
		t.Helper()
		for _, s := range schedules {
			if s.Cron == cron {
				n.edged("cron", "trigger", s.Name)
			}
		}
	}
	trigger("0 3 * * *")
	n.eventually(url+"/3", "^1$")
	if code := n.stop(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	n = start(t, dir)
	trigger("0 4 * * *") // behind what would be owed
	n.eventually(url+"/4", "^1$")
	expect(t, "runs", n.get(url+"/3"), 200, "1")
}
