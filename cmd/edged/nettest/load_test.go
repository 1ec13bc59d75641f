//go:build linux

package nettest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	says       = "says"    // the worker with the keys
	plain      = "plain"   // one without data
	sharedKeys = "shared-" // that all nodes write at once
)

// load is what goes on all the time at every node.
type load struct {
	f       *fabric
	ledger  *ledger
	rng     *rand.Rand // the deployer's
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	urls    map[string]string // worker → URL; complete before anything runs
	deploys atomic.Int64      // that were acknowledged
	faulty  sync.Map          // *node: deploys mostly go elsewhere
}

// worker writes the source of a worker that answers with its version.
func (l *load) worker(name string, version int) string {
	l.f.t.Helper()
	dir := filepath.Join(l.f.root, "workers", fmt.Sprintf("%s-%d", name, version))
	manifest := "name = \"" + name + "\"\nmain = \"w.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n"
	if name != plain {
		manifest += "[bindings]\nSTORE = { kv = \"keys\" }\n"
	}
	script := `export default { async fetch(request, env) {
	const url = new URL(request.url), key = url.pathname.slice(1);
	if (request.method === "PUT") { await env.STORE.put(key, await request.text()); return new Response("put"); }
	if (request.method === "DELETE") { await env.STORE.delete(key); return new Response("deleted"); }
	if (key === "") return new Response("` + strconv.Itoa(version) + `");
	const cursor = url.searchParams.get("cursor");
	const page = await env.STORE.list(cursor ? { limit: 200, cursor } : { limit: 200 });
	const values = {};
	for (const { name } of page.keys) {
		const v = await env.STORE.get(name);
		if (v !== null) values[name] = new TextDecoder().decode(v);
	}
	return Response.json({ values, cursor: page.cursor ?? "" });
} }`
	if err := os.MkdirAll(dir, 0o700); err != nil {
		l.f.t.Fatal(err)
	}
	for file, text := range map[string]string{"worker.toml": manifest, "w.js": script} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			l.f.t.Fatal(err)
		}
	}
	return dir
}

// deploy deploys the next version of a worker once, by way of n.
func (l *load) deploy(n *node, worker string, version int) (at string, err error) {
	l.ledger.deploying(worker, version)
	out, err := n.edged(20*time.Second, "deploy", l.worker(worker, version), "--json", "--timeout", "15s")
	if err != nil {
		return "", err
	}
	var d struct{ Addresses []struct{ Hostname string } }
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Addresses) == 0 {
		return "", fmt.Errorf("%v: %s", err, out)
	}
	l.ledger.wasDeployed(worker, version)
	return "http://" + d.Addresses[0].Hostname, nil
}

// newLoad deploys both workers at the founder and begins with it.
func newLoad(f *fabric, founder *node, rng *rand.Rand) *load {
	f.t.Helper()
	l := &load{f: f, ledger: newLedger(), rng: rng, urls: map[string]string{}}
	l.ctx, l.stop = context.WithCancel(f.t.Context())
	f.t.Cleanup(l.end)
	for _, worker := range []string{says, plain} {
		eventually(f.t, soon, func() (err error) { l.urls[worker], err = l.deploy(founder, worker, 1); return err })
	}
	l.on(founder)
	l.running.Go(l.deployAll)
	return l
}

func (l *load) end() { l.stop(); l.running.Wait() }

// every calls do again and again until the load ends.
func (l *load) every(d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// on waits until a node serves, and has it asked and written to from then on.
func (l *load) on(n *node) {
	l.f.t.Helper()
	for worker, url := range l.urls {
		eventually(l.f.t, soon, func() error { _, err := l.version(n, worker, url); return err })
	}
	l.running.Go(func() {
		l.every(100*time.Millisecond, func() {
			for worker, url := range l.urls {
				l.promised(n, "a request to "+worker, func() error { _, err := l.version(n, worker, url); return err })
			}
		})
	})
	l.running.Go(func() { l.write(n) })
}

// promised does what a node that runs has to do whatever goes on around it.
func (l *load) promised(n *node, what string, do func() error) error {
	life := n.lives.Load()
	if life%2 == 0 {
		return fmt.Errorf("%s does not run", n.name)
	}
	err := do()
	if err != nil && n.lives.Load() == life {
		l.ledger.breaks("%s %s: %s: %v", time.Now().UTC().Format("15:04:05.000"), n.name, what, err)
	}
	return err
}

func (l *load) version(n *node, worker, url string) (int, error) {
	text, err := n.ask("GET", url, "")
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(text)
	if err == nil {
		l.ledger.saw(n.name, worker, v)
	}
	return v, err
}

// write puts keys of this node's own, deletes some of them later, and puts some that all nodes put.
func (l *load) write(n *node) {
	url, i := l.urls[says]+"/", 0
	l.every(250*time.Millisecond, func() {
		i++
		key, value := fmt.Sprintf("%s-%05d", n.name, i), fmt.Sprintf("%s wrote %d", n.name, i)
		acked := func(method, key, value string) bool {
			ran := false
			err := l.promised(n, method+" "+key, func() error { ran = true; _, err := n.ask(method, url+key, value); return err })
			if ran && !strings.HasPrefix(key, sharedKeys) {
				l.ledger.wrote(key, value, err == nil)
			}
			return err == nil
		}
		put := acked("PUT", key, value)
		switch {
		case put && i%5 == 0:
			acked("DELETE", key, "")
		case i%3 == 0:
			acked("PUT", sharedKeys+strconv.Itoa(i%10), value)
		}
	})
}

// deployAll deploys one version after the other, each until it is acknowledged.
func (l *load) deployAll() {
	for version := 2; l.ctx.Err() == nil; version++ {
		for _, worker := range []string{says, plain} {
			for l.ctx.Err() == nil {
				n := l.someVoter()
				if n == nil {
					continue
				}
				begin := time.Now()
				if _, err := l.deploy(n, worker, version); err == nil {
					l.deploys.Add(1)
					break
				} else {
					_, faulty := l.faulty.Load(n)
					l.f.t.Logf("%s deploy %d of %s, node faulty %v, failed after %v: %.300v", time.Now().UTC().Format("15:04:05"), version, worker, faulty,
						time.Since(begin).Round(time.Millisecond), err)
				}
			}
		}
	}
}

// someVoter is one that runs, mostly one without a fault.
func (l *load) someVoter() *node {
	any := l.rng.IntN(6) == 0
	may := slices.DeleteFunc(l.f.voters(), func(n *node) bool {
		_, faulty := l.faulty.Load(n)
		return n.lives.Load()%2 == 0 || faulty && !any
	})
	if len(may) == 0 {
		return nil
	}
	return may[l.rng.IntN(len(may))]
}

// goesOn waits until a deploy that began from now on is acknowledged.
func (l *load) goesOn() {
	l.f.t.Helper()
	want := l.deploys.Load() + 2 // one may be under way
	eventually(l.f.t, soon, func() error {
		if l.deploys.Load() < want {
			return fmt.Errorf("no deploy is acknowledged")
		}
		return nil
	})
}

// served waits until the nodes answer with what has been acknowledged by now, or later versions.
func (l *load) served(nodes ...*node) {
	l.f.t.Helper()
	for worker, url := range l.urls {
		want := l.ledger.last(worker)
		for _, n := range nodes {
			eventually(l.f.t, soon, func() error {
				v, err := l.version(n, worker, url)
				if err == nil && v < want {
					err = fmt.Errorf("%s answers version %d of %s, and %d was acknowledged", n.name, v, worker, want)
				}
				return err
			})
		}
	}
}

// holds is every key of a node with its value.
func (l *load) holds(n *node) (map[string]string, error) {
	all, cursor := map[string]string{}, ""
	for {
		text, err := n.ask("GET", l.urls[says]+"/all?cursor="+url.QueryEscape(cursor), "")
		if err != nil {
			return nil, err
		}
		var page struct {
			Values map[string]string
			Cursor string
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			return nil, err
		}
		for k, v := range page.Values {
			all[k] = v
		}
		if cursor = page.Cursor; cursor == "" {
			return all, nil
		}
	}
}
