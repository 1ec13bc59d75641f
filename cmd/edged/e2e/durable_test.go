package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const root = "/apis/forms.takoform.com/v2"

const moduleWorker = "https://edge.forms.takoform.com/forms/ModuleWorker/0.3.0/"

// host-api §7.5: what was acknowledged before a kill -9 at a random moment is there afterwards, once, and a replay of its
// key gives the original Operation.
func TestAcknowledgedResourcesSurviveKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]string{} // name -> answer
	for round := range 4 {
		n := start(t, dir)
		for name, was := range acknowledged {
			if a := n.create(name); a.body != was {
				t.Fatalf("round %d: replay of %s gives\n%s\nwant\n%s", round, name, a.body, was)
			}
		}
		n.createUntilKilled(round, acknowledged)
	}
	n := start(t, dir)
	seen := map[string]int{}
	for _, item := range n.list("form=" + moduleWorker) {
		seen[item.Name]++
		if item.Phase != "idle" {
			t.Errorf("%s is %s", item.Name, item.Phase)
		}
	}
	for name := range acknowledged {
		if seen[name] != 1 {
			t.Errorf("%s is there %d times, want once", name, seen[name])
		}
	}
	if len(acknowledged) == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
}

// resource is what these tests look at of a Resource.
type resource struct {
	UID, Name, Phase string
	Generation       int
}

// list reads all pages.
func (n *node) list(query string) (all []resource) {
	n.t.Helper()
	for cursor := ""; ; {
		a := n.api("GET", root+"/resources?"+query+cursor, nil)
		var page struct {
			Items      []resource
			NextCursor *string
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			n.t.Fatalf("%v: %s", err, a.body)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

func createBody(name string) string {
	return fmt.Sprintf(`{"form":%q,"space":"default","name":%q,"spec":{}}`, moduleWorker, name)
}

func (n *node) create(name string) answer {
	n.t.Helper()
	return n.api("POST", root+"/resources", strings.NewReader(createBody(name)), "Idempotency-Key", "create-worker-key-"+name)
}

// createUntilKilled creates workers from four clients until the node is killed at a random moment.
func (n *node) createUntilKilled(round int, acknowledged map[string]string) {
	token, conf := n.token(), n.trust()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for c := range 4 {
		client := n.client(n.info.Control, conf)
		clients.Go(func() {
			for i := 0; i < 20; i++ {
				name := fmt.Sprintf("w%d-%d-%d", round, c, i)
				req, err := http.NewRequest("POST", n.info.ControlOrigin+root+"/resources", strings.NewReader(createBody(name)))
				if err != nil {
					return
				}
				req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
					"Idempotency-Key": {"create-worker-key-" + name}}
				res, err := client.Do(req)
				if err != nil {
					return // killed
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 {
					return
				}
				mu.Lock()
				acknowledged[name] = string(body)
				mu.Unlock()
			}
		})
	}
	timer := time.AfterFunc(time.Duration(50+rand.IntN(300))*time.Millisecond, func() { n.cmd.Process.Kill() })
	clients.Wait()
	timer.Stop()
	n.kill()
}

// A node that was killed serves again, what it served before, from what is on its disk.
func TestServingSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, dir)
	address := n.deploy(hello(t, ""))
	for range 3 {
		if a := n.get(address + "/x"); a.body != "hello /x" {
			t.Fatalf("%+v", a)
		}
		n.kill()
		n = start(t, dir)
	}
}
