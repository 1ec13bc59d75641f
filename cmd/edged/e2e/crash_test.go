package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crash is one row of the crash matrix: where the process is killed, and what its Operation is right after the restart.
type crash struct {
	name, point string
	method      string // POST creates; PUT and DELETE are of a Resource that is there
	found       string // status, "" is that nothing was accepted
	effect      string
}

// host-api §7.5, row by row, for a Resource whose effect is to keep bytes that are held.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for _, row := range []crash{
		{"before the acceptance commits", "control.accept", "POST", "", ""},
		{"after acceptance, before dispatch", "control.dispatch", "POST", "queued", "none"},
		{"after possible dispatch, before the effect", "control.dispatched", "POST", "reconciling", "unknown"},
		{"after possible dispatch, in the effect", "artifact.referred", "POST", "reconciling", "unknown"},
		{"after backend success, before the record", "control.done", "POST", "reconciling", "unknown"},
		{"after terminal", "control.ended", "POST", "succeeded", "complete"},
		{"update before the acceptance commits", "control.accept", "PUT", "", ""},
		{"update before dispatch", "control.dispatch", "PUT", "queued", "none"},
		{"update before the effect", "control.dispatched", "PUT", "reconciling", "unknown"},
		{"update after backend success", "control.done", "PUT", "reconciling", "unknown"},
		{"update after terminal", "control.ended", "PUT", "succeeded", "complete"},
		{"delete before the acceptance commits", "control.accept", "DELETE", "", ""},
		{"delete before dispatch", "control.dispatch", "DELETE", "queued", "none"},
		{"mid-delete", "artifact.released", "DELETE", "reconciling", "unknown"},
		{"delete after backend success", "control.done", "DELETE", "reconciling", "unknown"},
		{"delete after terminal", "control.ended", "DELETE", "succeeded", "complete"},
	} {
		if row.repeats() {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(t, (*node).holdBundle, crashBlobs)
		})
	}
}

// The same where the effect is to fetch the bytes: what had arrived before the crash is used or fetched again, and nothing is left over.
func TestCrashMatrixOfAFetch(t *testing.T) {
	content := map[string]string{}
	source := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, content[r.URL.Path]) }))
	defer source.Close()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: source.Certificate().Raw})
	if err := os.WriteFile(roots, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", roots)
	bundle := crashBundle(func(text string) (string, string) {
		h := sha256.Sum256([]byte(text))
		sum := hex.EncodeToString(h[:])
		content["/"+sum] = text
		return source.URL + "/" + sum, sum
	})
	for _, row := range []crash{
		{"a file has arrived", "artifact.placed", "POST", "reconciling", "unknown"},
		{"a file is referred to", "artifact.referred", "POST", "reconciling", "unknown"},
		{"all have arrived, before the record", "control.done", "POST", "reconciling", "unknown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.run(t, func(*node) asked { return bundle }, crashBlobs, "--artifact-origins", source.URL)
		})
	}
}

// node-surface §4: an upload that dies when its bytes have their name and nobody holds them yet was not made: they cannot be read, and
// the same PUT makes it.
func TestCrashOfAnUpload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startAt(t, "artifact.placed", dir)
	if _, _, a, ok := n.upload(helloWorker); ok {
		t.Fatalf("answered %d %s", a.status, a.body)
	}
	n.wait()
	n = startAt(t, "", dir)
	read := func(url string) answer {
		t.Helper()
		a, err := n.ask(n.control(), "GET", url, nil, "Authorization", "Bearer "+n.token())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if got := n.blobs(); got != 1 {
		t.Fatalf("%d blobs: the process did not die where it should", got)
	}
	for i, want := range []int{201, 200} {
		url, _, a, _ := n.upload(helloWorker)
		if a.status != want {
			t.Errorf("upload %d: %d %s, want %d", i, a.status, a.body, want)
		}
		if a := read(url); a.status != 200 || a.body != helloWorker {
			t.Errorf("after it: %d %q", a.status, a.body)
		}
	}
	if got := n.blobs(); got != 1 {
		t.Errorf("%d blobs", got)
	}
}

// The same for Resources whose effect is to make and to remove an empty store. A namespace, a bucket and a queue come and go in one
// durable step, a database in two each.
func TestCrashMatrixOfStores(t *testing.T) {
	t.Parallel()
	const database = "SQLiteDatabase/0.2.0/"
	for form, spec := range map[string]string{"EdgeKVNamespace/0.2.0/": "{}", database: "{}", "ObjectBucket/0.3.0/": "{}",
		"AtLeastOnceQueue/0.2.0/": `{"messageRetentionSeconds":60}`} {
		rows := []crash{
			{"before the effect", "control.dispatched", "POST", "reconciling", "unknown"},
			{"after backend success", "control.done", "POST", "reconciling", "unknown"},
			{"update before the effect", "control.dispatched", "PUT", "reconciling", "unknown"},
			{"update after backend success", "control.done", "PUT", "reconciling", "unknown"},
			{"delete before the effect", "control.dispatched", "DELETE", "reconciling", "unknown"},
			{"delete after backend success", "control.done", "DELETE", "reconciling", "unknown"},
		}
		if form == database {
			rows = append(rows, crash{"in the effect", "sqlstore.installed", "POST", "reconciling", "unknown"},
				crash{"mid-delete", "sqlstore.discarded", "DELETE", "reconciling", "unknown"})
		}
		for _, row := range rows {
			if row.repeats() {
				continue
			}
			t.Run(form+row.name, func(t *testing.T) {
				t.Parallel()
				row.run(t, func(*node) asked { return creation(form, spec) }, 0)
			})
		}
	}
}

// run kills a real process at the row's point. A second one, stopped before it dispatches anything, shows what the first
// left; a third goes on to the end; a fourth answers as the third did.
func (row *crash) run(t *testing.T, ask func(*node) asked, blobs int, flags ...string) {
	dir := t.TempDir()
	startAt := func(t *testing.T, point, dir string) *node { t.Helper(); return startAt(t, point, dir, flags...) }
	n := startAt(t, "", dir)
	m := ask(n)
	if row.method != "POST" {
		made, _ := n.send(m)
		n.ended(made.operation(t).ID)
		next := asked{method: row.method, path: "/resources/" + made.operation(t).ResourceUID, key: "the-key-of-the-next", fence: "1"}
		if row.method == "PUT" {
			_, spec, _ := strings.Cut(m.body, `"spec":`)
			next.body = `{"spec":` + spec // the last member, so the object ends where the request ended
		}
		m = next
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
	gone := row.method == "DELETE"
	switch got := n.named("b"); {
	case gone && (len(got) != 0 || n.read("/resources/"+op.ResourceUID).status != 410):
		t.Errorf("deleted, but there is %+v", got)
	case !gone && (len(got) != 1 || got[0].ResourceUID != op.ResourceUID || got[0].ID != op.ID):
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
	case found == "":
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
	t.Parallel()
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
