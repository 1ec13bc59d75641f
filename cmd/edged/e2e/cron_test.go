package e2e

import (
	"fmt"
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
