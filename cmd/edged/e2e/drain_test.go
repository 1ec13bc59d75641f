package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// mutate updates or deletes a Resource and returns the answer.
func (n *node) mutate(method, uid string, spec any) answer {
	n.t.Helper()
	var r struct{ Generation int }
	if a := n.api("GET", "/apis/forms.takoform.com/v2/resources/"+uid, nil); json.Unmarshal([]byte(a.body), &r) != nil {
		n.t.Fatalf("read %s: %d %s", uid, a.status, a.body)
	}
	var body io.Reader
	if spec != nil {
		text, err := json.Marshal(object{"spec": spec})
		if err != nil {
			n.t.Fatal(err)
		}
		body = strings.NewReader(string(text))
	}
	keys++
	return n.api(method, "/apis/forms.takoform.com/v2/resources/"+uid, body, "Idempotency-Key", fmt.Sprintf("e2e-mutation-%06d", keys),
		"Takoform-Expected-Generation", fmt.Sprint(r.Generation))
}

// worker-deployment §§3, 4, worker-version §7: new work follows a switch at once; what runs on the dropped version goes on,
// and that version can be deleted only when its last context has ended.
func TestSwitchAndDrain(t *testing.T) {
	n := start(t, t.TempDir())
	source := func(tag string) string {
		return `export default { fetch() { return new Response(new ReadableStream({
			start(c) { c.enqueue(new TextEncoder().encode('` + tag + `\n')); setTimeout(() => {}, 3600000) } })) } }`
	}
	worker := n.made("ModuleWorker/0.3.0/", "w", object{})
	version := func(name string) string {
		return n.made("WorkerVersion/0.7.0/", name, object{"worker": ref{worker}, "bundle": ref{n.bundled(name+".bundle", source(name))}, "handlers": []string{"fetch"}})
	}
	v1, v2 := version("v1"), version("v2")
	weights := func(v string) object {
		return object{"worker": ref{worker}, "versions": []object{{"workerVersion": ref{v}, "weight": 10000}}}
	}
	deployment := n.made("WorkerDeployment/0.6.0/", "d", weights(v1))
	url := n.address("w", worker)
	first := func() (line string, body io.Closer) {
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := n.client(n.info.HTTP, nil).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 3)
		if _, err := io.ReadFull(res.Body, b); err != nil {
			t.Fatal(err)
		}
		return string(b), res.Body
	}
	line, running := first()
	if line != "v1\n" {
		t.Fatalf("before the switch %q answers", line)
	}
	expect(t, "a weighted version is deleted", answer{status: n.mutate("DELETE", v1, nil).status}, 409, "")
	if a := n.mutate("PUT", deployment, weights(v2)); a.status != 200 && a.status != 202 {
		t.Fatalf("switch: %d %s", a.status, a.body)
	}
	line, other := first()
	other.Close()
	if line != "v2\n" {
		t.Errorf("after the switch %q answers", line)
	}
	if a := n.mutate("DELETE", v1, nil); a.status != 409 || !strings.Contains(a.body, "dependency_conflict") {
		t.Errorf("a version with a running context is deleted: %d %s", a.status, a.body)
	}
	running.Close()
	for end := time.Now().Add(20 * time.Second); ; <-time.After(50 * time.Millisecond) {
		a := n.mutate("DELETE", v1, nil)
		if a.status == 200 || a.status == 202 {
			break
		}
		if a.status != 409 || time.Now().After(end) {
			t.Fatalf("the version is not deletable after its last context: %d %s", a.status, a.body)
		}
	}
}
