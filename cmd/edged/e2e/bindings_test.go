package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const forms = "https://edge.forms.takoform.com/forms/"

// ref is a reference to a Resource.
type ref struct {
	UID string `json:"resourceUid"`
}

// bound is one entry of a binding list.
type bound struct {
	Name     string `json:"name"`
	Resource ref    `json:"resource"`
}

type object map[string]any

var keys atomic.Int64 // numbers Idempotency-Keys

// made creates a Resource and returns its UID once its Operation has succeeded.
func (n *node) made(form, name string, spec object, private ...map[string]string) string {
	n.t.Helper()
	body := object{"form": forms + form, "space": "default", "name": name, "spec": spec}
	if len(private) > 0 {
		body["privateInputs"] = private[0]
	}
	text, err := json.Marshal(body)
	if err != nil {
		n.t.Fatal(err)
	}
	a := n.api("POST", "/apis/forms.takoform.com/v2/resources", strings.NewReader(string(text)), "Idempotency-Key", fmt.Sprintf("e2e-bindings-%06d", keys.Add(1)))
	var op struct {
		ID, ResourceUID, Status string
		Error                   json.RawMessage
	}
	for end := time.Now().Add(20 * time.Second); ; {
		if a.status != 200 && a.status != 202 || json.Unmarshal([]byte(a.body), &op) != nil || op.Status == "failed" || time.Now().After(end) {
			n.t.Fatalf("create %s %s: %d %s", form, name, a.status, a.body)
		}
		if op.Status == "succeeded" {
			return op.ResourceUID
		}
		<-time.After(20 * time.Millisecond)
		a = n.api("GET", "/apis/forms.takoform.com/v2/operations/"+op.ID, nil)
	}
}

// held uploads bytes and returns their digest.
func (n *node) held(b string) string {
	n.t.Helper()
	sum := sha256.Sum256([]byte(b))
	digest := hex.EncodeToString(sum[:])
	if a := n.api("PUT", "/artifacts/sha256/"+digest, strings.NewReader(b)); a.status != 201 && a.status != 200 {
		n.t.Fatalf("upload: %d %s", a.status, a.body)
	}
	return digest
}

// bundled makes a bundle of one module.
func (n *node) bundled(name, source string) string {
	n.t.Helper()
	url := func(digest string) string { return n.info.ControlOrigin + "/artifacts/sha256/" + digest }
	digest := n.held(source)
	manifest, err := json.Marshal(object{"entrypoint": "main.js", "files": []object{{"path": "main.js", "url": url(digest), "sha256": digest,
		"mediaType": "application/javascript+module"}}})
	if err != nil {
		n.t.Fatal(err)
	}
	m := n.held(string(manifest))
	return n.made("WorkerBundle/0.2.0/", name, object{"artifact": object{"url": url(m), "sha256": m}})
}

// served makes a worker with one version, deployed whole, and returns the worker's UID.
func (n *node) served(name, source string, version object, private ...map[string]string) string {
	n.t.Helper()
	worker := n.made("ModuleWorker/0.3.0/", name, object{})
	version["worker"], version["bundle"] = ref{worker}, ref{n.bundled(name+".bundle", source)}
	v := n.made("WorkerVersion/0.7.0/", name+".v", version, private...)
	n.made("WorkerDeployment/0.6.0/", name+".deployment", object{"worker": ref{worker}, "versions": []object{{"workerVersion": ref{v}, "weight": 10000}}})
	return worker
}

// address gives a worker an endpoint and returns its URL.
func (n *node) address(name, worker string) string {
	n.t.Helper()
	uid := n.made("WorkerEndpoint/0.3.0/", name+".endpoint", object{"worker": ref{worker}})
	var r struct{ Output struct{ Hostname string } }
	if a := n.api("GET", "/apis/forms.takoform.com/v2/resources/"+uid, nil); json.Unmarshal([]byte(a.body), &r) != nil {
		n.t.Fatalf("endpoint: %s", a.body)
	}
	return "http://" + r.Output.Hostname
}

// eventually polls an URL until its body is as wanted.
func (n *node) eventually(url, want string) {
	n.t.Helper()
	got, wanted := "", regexp.MustCompile(want)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if got = n.get(url).body; wanted.MatchString(got) {
			return
		}
	}
	n.t.Fatalf("%s stays %q, want %q", url, got, want)
}

const boundWorker = `
export default {
	async fetch(request, env) {
		const url = new URL(request.url);
		switch (url.pathname) {
		case '/env': return Response.json([Object.keys(env).sort(), env.GREETING, env.API_KEY.length]);
		case '/put': await env.CACHE.put('k', url.search); return new Response('stored');
		case '/get': { const v = await env.CACHE.get('k'); return new Response(v === null ? 'null' : v); }
		case '/sql': return Response.json(await env.DB.query('select ?1 + 1 as n', [{type: 'integer', value: '9007199254740992'}]));
		case '/send': return new Response((await env.TASKS.sendBatch([{body: 'one'}, {body: 'two'}])).length);
		case '/seen': { const v = await env.CACHE.get('seen'); return new Response(v === null ? '' : v); }
		case '/other': return env.OTHER.fetch(new Request('http://other/echo', request));
		case '/out': return new Response(await fetch('http://127.0.0.1:1/').catch((e) => e.name + ' ' + e.message));
		}
		return new Response('no', {status: 404});
	},
	async queue(batch, env) {
		const seen = batch.messages.map((m) => new TextDecoder().decode(m.body) + m.attempts).sort();
		if (batch.messages.some((m) => m.attempts === 1)) throw new Error('the first time fails');
		await env.CACHE.put('seen', batch.queue + ' ' + seen.join());
	},
};`

// worker-version §8 and the contracts of the bindings, through one real node: each kind reaches its store, another
// worker and a queue's consumer; what was resolved is there after a kill -9.
func TestBindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, dir)
	other := n.served("other", `export default { async fetch(request) { return new Response('echo ' + request.method + ' ' + await request.text()) } }`, object{"handlers": []string{"fetch"}})
	cache := n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	db := n.made("SQLiteDatabase/0.2.0/", "app", object{})
	tasks := n.made("AtLeastOnceQueue/0.2.0/", "tasks", object{"messageRetentionSeconds": 3600})
	worker := n.served("all", boundWorker, object{
		"handlers": []string{"fetch", "queue"}, "vars": object{"GREETING": "hi"}, "requiredSensitiveVars": []string{"API_KEY"},
		"kvBindings": []bound{{"CACHE", ref{cache}}}, "sqliteBindings": []bound{{"DB", ref{db}}},
		"queueProducerBindings": []bound{{"TASKS", ref{tasks}}}, "serviceBindings": []bound{{"OTHER", ref{other}}},
	}, map[string]string{"API_KEY": "s3cret!"})
	n.made("QueueConsumer/0.3.0/", "all.consumer", object{"queue": ref{tasks}, "worker": ref{worker}, "maxBatchSize": 10, "maxBatchTimeoutSeconds": 0,
		"maxConcurrency": 1, "maxRetries": 3, "retryDelaySeconds": 0})
	url := n.address("all", worker)
	expect(t, "env", n.get(url+"/env"), 200, `[["API_KEY","CACHE","DB","GREETING","OTHER","TASKS"],"hi",7]`)
	expect(t, "get of nothing", n.get(url+"/get"), 200, "null")
	expect(t, "put", n.get(url+"/put?one"), 200, "stored")
	expect(t, "sql", n.get(url+"/sql"), 200, `{"rows":[{"n":{"type":"integer","value":"9007199254740993"}}],"rowsWritten":0}`)
	expect(t, "service", n.do("POST", url+"/other", strings.NewReader("body")), 200, "echo POST body")
	expect(t, "loopback", n.get(url+"/out"), 200, "TypeError fetch failed")
	expect(t, "send", n.get(url+"/send"), 200, "2")
	n.kill()
	n = start(t, dir)
	expect(t, "get after a kill", n.get(url+"/get"), 200, "?one")
	expect(t, "env after a kill", n.get(url+"/env"), 200, `[["API_KEY","CACHE","DB","GREETING","OTHER","TASKS"],"hi",7]`)
	// The kill may have hit the second delivery: it counts, and the third brings them (queue §6).
	n.eventually(url+"/seen", "^tasks one[23],two[23]$")
}
