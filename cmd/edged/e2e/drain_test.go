package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
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
	return n.api(method, "/apis/forms.takoform.com/v2/resources/"+uid, body, "Idempotency-Key", fmt.Sprintf("e2e-mutation-%06d", keys.Add(1)),
		"Takoform-Expected-Generation", fmt.Sprint(r.Generation))
}

// switching is a node with a worker w whose versions v1 and v2 answer their name and then stream on for ever; its deployment weights v1.
type switching struct {
	*node
	deployment, v1, v2, url string
	weights                 func(version string) object
}

func newSwitching(n *node) *switching {
	n.t.Helper()
	source := func(tag string) string {
		return `export default { fetch() { return new Response(new ReadableStream({
			start(c) { c.enqueue(new TextEncoder().encode('` + tag + `\n')); setTimeout(() => {}, 3600000) } })) } }`
	}
	worker := n.made("ModuleWorker/0.3.0/", "w", object{})
	version := func(name string) string {
		return n.made("WorkerVersion/0.7.0/", name, object{"worker": ref{worker}, "bundle": ref{n.bundled(name+".bundle", source(name))}, "handlers": []string{"fetch"}})
	}
	s := &switching{node: n, v1: version("v1"), v2: version("v2")}
	s.weights = func(v string) object {
		return object{"worker": ref{worker}, "versions": []object{{"workerVersion": ref{v}, "weight": 10000}}}
	}
	s.deployment = n.made("WorkerDeployment/0.6.0/", "d", s.weights(s.v1))
	s.url = n.address("w", worker)
	return s
}

// first begins an answer and returns its first line; the rest runs on until body is closed.
func (s *switching) first() (line string, body io.Closer) {
	s.t.Helper()
	req, err := http.NewRequest("GET", s.url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client(s.info.HTTP, nil).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	b := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, b); err != nil {
		s.t.Fatal(err)
	}
	return string(b), res.Body
}

// serves fails the test unless a version of this name answers.
func (s *switching) serves(want, when string) (running io.Closer) {
	s.t.Helper()
	line, body := s.first()
	if line != want+"\n" {
		s.t.Errorf("%s %q answers, want %s", when, line, want)
	}
	return body
}

// held fails the test unless a DELETE of the Resource is refused for those that still rely on it.
func (s *switching) held(uid, why string) {
	s.t.Helper()
	if a := s.mutate("DELETE", uid, nil); a.status != 409 || !strings.Contains(a.body, "dependency_conflict") {
		s.t.Errorf("%s: a DELETE answers %d %s", why, a.status, a.body)
	}
}

// free waits until a DELETE of the Resource is accepted.
func (s *switching) free(uid string) {
	s.t.Helper()
	s.waits(func() bool {
		a := s.mutate("DELETE", uid, nil)
		if a.status != 200 && a.status != 202 && a.status != 409 {
			s.t.Fatalf("DELETE: %d %s", a.status, a.body)
		}
		return a.status != 409
	}, "the version is not deletable after its last context")
}

// worker-deployment §§3, 4, worker-version §7: new work follows a switch at once; what runs on the dropped version goes on,
// and that version can be deleted only when its last context has ended.
func TestSwitchAndDrain(t *testing.T) {
	t.Parallel()
	s := newSwitching(start(t, t.TempDir()))
	running := s.serves("v1", "before the switch")
	s.held(s.v1, "weighted")
	if a := s.mutate("PUT", s.deployment, s.weights(s.v2)); a.status != 200 && a.status != 202 {
		t.Fatalf("switch: %d %s", a.status, a.body)
	}
	s.serves("v2", "after the switch").Close()
	s.held(s.v1, "with a running context")
	running.Close()
	s.free(s.v1)
}

// worker-deployment §4: drain ownership survives a restart. A process dies after the switch was accepted and before the node took it
// into use: the one after it still serves the old version from its last plan, and owns it, until the switch is in use there.
func TestSwitchOfAProcessThatDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSwitching(startAt(t, "", dir))
	s.kill()
	s.node = startAt(t, "control.plan!pause", dir)
	running := s.serves("v1", "before the switch")
	defer running.Close()
	if a := s.mutate("PUT", s.deployment, s.weights(s.v2)); a.status != 200 {
		t.Fatalf("switch: %d %s", a.status, a.body)
	}
	s.held(s.v1, "switched away from, but still served")
	s.kill()

	s.node = startAt(t, "control.publish!pause", dir) // which comes up without its control room, after its patience
	s.serves("v1", "by the last plan").Close()
	s.held(s.v1, "after the restart, still served")
	s.kill()

	s.node = startAt(t, "", dir)
	s.waits(func() bool { line, body := s.first(); body.Close(); return line == "v2\n" }, "the switch is not taken into use")
	s.held(s.v2, "weighted")
	s.free(s.v1)
}

// The same for a delete: the process dies with selection closed and a context running. The Operation is taken up again, and deployment
// and version stay until it has succeeded.
func TestDeploymentDeleteOfAProcessThatDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSwitching(startAt(t, "", dir))
	s.kill()
	s.node = startAt(t, "control.retiring", dir)
	defer s.serves("v1", "before the delete").Close()
	if a := s.mutate("DELETE", s.named("w.endpoint")[0].ResourceUID, nil); a.status != 200 {
		t.Fatalf("delete of the endpoint: %d %s", a.status, a.body)
	}
	// The process dies before or after it answers; either way the delete was accepted.
	remove := asked{method: "DELETE", path: "/resources/" + s.deployment, key: "the-key-of-the-delete", fence: "1"}
	if a, ok := s.send(remove); ok && a.status != 202 {
		t.Fatalf("delete: %d %s", a.status, a.body)
	}
	s.wait()

	s.node = startAt(t, "control.dispatch!pause", dir)
	a, ok := s.send(remove)
	op := a.operation(t)
	if !ok || a.status != 202 || op.Status != "reconciling" || op.Effect != "unknown" {
		t.Errorf("after the restart: %d %s", a.status, a.body)
	}
	if r := s.read("/resources/" + s.deployment); r.status != 200 || !strings.Contains(r.body, `"phase":"deleting"`) {
		t.Errorf("the deployment reads %d %s", r.status, r.body)
	}
	s.held(s.v1, "its deployment has not ended")
	if a := s.get(s.url); a.status != 404 {
		t.Errorf("a host without a deployment answers %d %s", a.status, a.body)
	}
	s.kill()

	s.node = startAt(t, "", dir)
	if op = s.ended(op.ID); op.Status != "succeeded" || op.Effect != "complete" {
		t.Errorf("ended %+v", op)
	}
	if r := s.read("/resources/" + s.deployment); r.status != 410 {
		t.Errorf("the deployment reads %d %s", r.status, r.body)
	}
	s.free(s.v1)
}
