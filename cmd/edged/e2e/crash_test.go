package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// faultBinary builds the program with fault points, once.
var faultBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "edged-faultpoints")
	args := append([]string{"build", "-tags", "faultpoints", "-o", path}, raceFlag...)
	out, err := exec.Command("go", append(args, "edged/cmd/edged")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// startAt runs a node that dies at a fault point, or stops there ("name!pause"); "" is none.
func startAt(t *testing.T, point, dir string) *node {
	t.Helper()
	bin, err := faultBinary()
	if err != nil {
		t.Fatal(err)
	}
	return startBinary(t, bin, []string{"EDGED_FAULTPOINT=" + point}, dir, "--control-origin", crashOrigin, "--supervise=false")
}

// crashOrigin keeps the URLs of held bytes the same over restarts, which bind other ports.
const crashOrigin = "https://control.example.test"

// asked is a mutation that can be sent again and again.
type asked struct{ method, path, body, key, fence string }

// send sends it; ok is false if the node died before it answered.
func (n *node) send(m asked) (a answer, ok bool) {
	n.t.Helper()
	header := []string{"Authorization", "Bearer " + n.token(), "Content-Type", "application/json", "Idempotency-Key", m.key}
	if m.fence != "" {
		header = append(header, "Takoform-Expected-Generation", m.fence)
	}
	var body io.Reader
	if m.body != "" {
		body = strings.NewReader(m.body)
	}
	a, err := n.ask(n.control(), m.method, crashOrigin+root+m.path, body, header...)
	return a, err == nil
}

func (n *node) control() *http.Client {
	conf := n.trust()
	conf.ServerName = "localhost"
	return n.client(n.info.Control, conf)
}

func (n *node) read(path string) answer {
	n.t.Helper()
	a, err := n.ask(n.control(), "GET", crashOrigin+root+path, nil, "Authorization", "Bearer "+n.token())
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}

type operation struct{ ID, ResourceUID, Status, Effect, LastOperation string }

func (a answer) operation(t *testing.T) (op operation) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &op); err != nil {
		t.Fatalf("%v: %d %s", err, a.status, a.body)
	}
	return op
}

// named returns the Resources of a name.
func (n *node) named(name string) []operation {
	n.t.Helper()
	var page struct {
		Items []struct{ UID, LastOperation string }
	}
	if err := json.Unmarshal([]byte(n.read("/resources?name="+name).body), &page); err != nil {
		n.t.Fatal(err)
	}
	var out []operation
	for _, r := range page.Items {
		op := n.read("/operations/" + r.LastOperation).operation(n.t)
		out = append(out, op)
	}
	return out
}

// ended waits for the end of an Operation.
func (n *node) ended(id string) operation {
	n.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		op := n.read("/operations/" + id).operation(n.t)
		if op.Status == "succeeded" || op.Status == "failed" {
			return op
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("operation stays %+v", op)
		}
	}
}

// holdBundle uploads a bundle of two modules and returns the request that makes a WorkerBundle of it.
func (n *node) holdBundle() asked {
	n.t.Helper()
	put := func(content string) (url, sum string) {
		h := sha256.Sum256([]byte(content))
		sum = hex.EncodeToString(h[:])
		url = crashOrigin + "/artifacts/sha256/" + sum
		a, err := n.ask(n.control(), "PUT", url, strings.NewReader(content), "Authorization", "Bearer "+n.token())
		if err != nil || a.status != 201 {
			n.t.Fatalf("upload: %v %d %s", err, a.status, a.body)
		}
		return url, sum
	}
	var files []string
	for i, code := range []string{helloWorker, "export const x = 1"} {
		url, sum := put(code)
		files = append(files, fmt.Sprintf(`{"path":"m%d.js","url":%q,"sha256":%q,"mediaType":"application/javascript+module"}`, i, url, sum))
	}
	url, sum := put(`{"entrypoint":"m0.js","files":[` + strings.Join(files, ",") + `]}`)
	return asked{method: "POST", path: "/resources", key: "the-key-of-the-bundle", body: fmt.Sprintf(
		`{"form":"%sWorkerBundle/0.2.0/","space":"default","name":"b","spec":{"artifact":{"url":%q,"sha256":%q}}}`, formPrefix, url, sum)}
}

func (n *node) blobs() int {
	n.t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dir, "artifacts", "blobs"))
	if err != nil {
		n.t.Fatal(err)
	}
	return len(entries)
}

// crash is one row of the crash matrix: where the process is killed, and what its Operation is right after the restart.
type crash struct {
	name, point string
	remove      bool   // the mutation is a delete
	found       string // status, "" is that nothing was accepted
	effect      string
}

// host-api §7.5, row by row, for a Resource whose effect is to fetch and to keep bytes.
func TestCrashMatrix(t *testing.T) {
	for _, row := range []crash{
		{"before the acceptance commits", "control.accept", false, "", ""},
		{"after acceptance, before dispatch", "control.dispatch", false, "queued", "none"},
		{"after possible dispatch, before the effect", "control.dispatched", false, "reconciling", "unknown"},
		{"after possible dispatch, in the effect", "artifact.referred", false, "reconciling", "unknown"},
		{"after backend success, before the record", "control.done", false, "reconciling", "unknown"},
		{"after terminal", "control.ended", false, "succeeded", "complete"},
		{"delete before the acceptance commits", "control.accept", true, "", ""},
		{"delete before dispatch", "control.dispatch", true, "queued", "none"},
		{"mid-delete", "artifact.released", true, "reconciling", "unknown"},
		{"delete after backend success", "control.done", true, "reconciling", "unknown"},
		{"delete after terminal", "control.ended", true, "succeeded", "complete"},
	} {
		t.Run(row.name, func(t *testing.T) { row.run(t, (*node).holdBundle) })
	}
}

// The same for Resources whose effect is to make and to remove an empty store.
func TestCrashMatrixOfStores(t *testing.T) {
	for _, form := range []string{"EdgeKVNamespace/0.2.0/", "SQLiteDatabase/0.2.0/", "ObjectBucket/0.3.0/", "AtLeastOnceQueue/0.2.0/"} {
		for _, row := range []crash{
			{"before the effect", "control.dispatched", false, "reconciling", "unknown"},
			{"after backend success", "control.done", false, "reconciling", "unknown"},
			{"delete before the effect", "control.dispatched", true, "reconciling", "unknown"},
			{"delete after backend success", "control.done", true, "reconciling", "unknown"},
		} {
			t.Run(form+row.name, func(t *testing.T) {
				row.run(t, func(*node) asked {
					return asked{method: "POST", path: "/resources", key: "the-key-of-the-store",
						body: fmt.Sprintf(`{"form":"%s%s","space":"default","name":"b","spec":{}}`, formPrefix, form)}
				})
			})
		}
	}
}

// run kills a real process at the row's point. A second one, stopped before it dispatches anything, shows what the first
// left; a third goes on to the end; a fourth answers as the third did.
func (row *crash) run(t *testing.T, ask func(*node) asked) {
	dir := t.TempDir()
	n := startAt(t, "", dir)
	m := ask(n)
	blobs := n.blobs()
	if row.remove {
		made, _ := n.send(m)
		n.ended(made.operation(t).ID)
		m = asked{method: "DELETE", path: "/resources/" + made.operation(t).ResourceUID, key: "the-key-of-the-delete", fence: "1"}
	}
	n.stop()

	n = startAt(t, row.point, dir)
	if a, ok := n.send(m); ok && a.status != 202 && a.status != 200 { // answered before the runner came to the point
		t.Fatalf("%d %s", a.status, a.body)
	}
	n.wait() // it has died by itself

	n = startAt(t, "control.dispatch!pause", dir)
	crashState(t, n, m, row.found, row.effect)
	n.kill()

	n = startAt(t, "", dir)
	first, ok := n.send(m)
	if !ok || first.status != 200 && first.status != 202 {
		t.Fatalf("replay: %d %s", first.status, first.body)
	}
	op := n.ended(first.operation(t).ID)
	if op.Status != "succeeded" || op.Effect != "complete" {
		t.Errorf("ended %+v", op)
	}
	again, _ := n.send(m)
	n.kill()
	n = startAt(t, "", dir)
	once, _ := n.send(m)
	if again.status != 200 || again.body != once.body || again.operation(t).ID != op.ID {
		t.Errorf("replays differ:\n%s\n%s", again.body, once.body)
	}
	switch got := n.named("b"); {
	case row.remove && (len(got) != 0 || n.read("/resources/"+op.ResourceUID).status != 410):
		t.Errorf("deleted, but there is %+v", got)
	case !row.remove && (len(got) != 1 || got[0].ResourceUID != op.ResourceUID || got[0].ID != op.ID):
		t.Errorf("there is %+v, want one of %+v", got, op)
	}
	if n.blobs() != blobs {
		t.Errorf("%d blobs, want %d", n.blobs(), blobs)
	}
}

// crashState looks at what a crash left, before anything is dispatched again.
func crashState(t *testing.T, n *node, m asked, found, effect string) {
	t.Helper()
	got := n.named("b")
	switch {
	case m.method == "POST" && found == "":
		if len(got) != 0 {
			t.Errorf("something was accepted: %+v", got)
		}
		return
	case m.method == "DELETE" && found == "":
		if len(got) != 1 || n.read(m.path).status != 200 || !strings.Contains(n.read(m.path).body, `"generation":1`) {
			t.Errorf("something was accepted: %+v", got)
		}
		return
	case m.method == "DELETE" && found == "succeeded":
		if len(got) != 0 || n.read(m.path).status != 410 {
			t.Errorf("not deleted: %+v", got)
		}
		return
	case len(got) != 1:
		t.Fatalf("there is %+v", got)
	}
	if got[0].Status != found || got[0].Effect != effect {
		t.Errorf("after the restart it is %+v, want %s/%s", got[0], found, effect)
	}
	a, ok := n.send(m)
	if !ok || a.operation(t).ID != got[0].ID || (a.status == 200) != (found == "succeeded") {
		t.Errorf("replay answers %d %s", a.status, a.body)
	}
	if found != "succeeded" {
		a, ok = n.send(asked{method: "DELETE", path: "/resources/" + got[0].ResourceUID, key: "a-key-of-another-delete", fence: "9"})
		if !ok || !strings.Contains(a.body, "resource_busy") {
			t.Errorf("another mutation answers %d %s", a.status, a.body)
		}
	}
}

// The crash matrix for a mutation that settles when it is accepted, with a secret in it: before the commit there is
// nothing, after it everything.
func TestCrashOfASecret(t *testing.T) {
	dir := t.TempDir()
	n := startAt(t, "", dir)
	made, _ := n.send(n.holdBundle())
	bundle := made.operation(t).ResourceUID
	n.ended(made.operation(t).ID)
	worker, _ := n.send(asked{method: "POST", path: "/resources", body: createBody("w"), key: "the-key-of-the-worker"})
	m := asked{method: "POST", path: "/resources", key: "the-key-of-the-version", body: fmt.Sprintf(
		`{"form":"%sWorkerVersion/0.7.0/","space":"default","name":"v","spec":{"worker":{"resourceUid":%q},"bundle":{"resourceUid":%q},"handlers":["fetch"],"requiredSensitiveVars":["K"]},"privateInputs":{"K":"value"}}`,
		formPrefix, worker.operation(t).ResourceUID, bundle)}
	n.stop()
	for _, row := range []struct {
		point string
		want  int
	}{{"control.accept", 0}, {"control.accepted", 1}} {
		n = startAt(t, row.point, dir)
		if a, ok := n.send(m); ok {
			t.Fatalf("%s: answered %d %s", row.point, a.status, a.body)
		}
		n.wait()
		n = startAt(t, "", dir)
		if got := n.named("v"); len(got) != row.want {
			t.Errorf("%s: there is %+v", row.point, got)
		}
		n.stop()
	}
	n = startAt(t, "", dir)
	first, _ := n.send(m)
	if got := n.named("v"); first.status != 200 || len(got) != 1 || got[0].ID != first.operation(t).ID {
		t.Errorf("replay %d %s, there is %+v", first.status, first.body, got)
	}
	other := m
	other.body = strings.Replace(m.body, `"value"`, `"valuf"`, 1)
	if a, _ := n.send(other); a.status != 409 || !strings.Contains(a.body, "idempotency_conflict") {
		t.Errorf("another value answers %d %s", a.status, a.body)
	}
}
