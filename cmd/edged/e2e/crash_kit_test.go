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
func startAt(t *testing.T, point, dir string, flags ...string) *node {
	t.Helper()
	bin, err := faultBinary()
	if err != nil {
		t.Fatal(err)
	}
	flags = append([]string{"--control-origin", crashOrigin, "--supervise=false"}, flags...)
	return startBinary(t, bin, []string{"EDGED_FAULTPOINT=" + point}, dir, flags...)
}

// crashOrigin keeps the URLs of held bytes the same over restarts, which bind other ports.
const crashOrigin = "https://control.example.test"

// asked is a mutation that can be sent again and again.
type asked struct{ method, path, body, key, fence string }

// send sends it, again while the node says that its control room still starts: on a busy machine it serves before that. ok is false if the
// node died before it answered.
func (n *node) send(m asked) (a answer, ok bool) {
	n.t.Helper()
	header := []string{"Authorization", "Bearer " + n.token(), "Content-Type", "application/json", "Idempotency-Key", m.key}
	if m.fence != "" {
		header = append(header, "Takoform-Expected-Generation", m.fence)
	}
	for end := time.Now().Add(limit); ; <-time.After(20 * time.Millisecond) {
		var body io.Reader
		if m.body != "" {
			body = strings.NewReader(m.body)
		}
		a, err := n.ask(n.control(), m.method, crashOrigin+root+m.path, body, header...)
		if starts := err == nil && a.status == 503 && strings.Contains(a.body, "the control room is starting"); !starts || time.Now().After(end) {
			return a, err == nil
		}
	}
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

// crashBundle makes a bundle of two modules with put, which stores bytes and says where they are, and returns the request that makes a
// WorkerBundle of it.
func crashBundle(put func(content string) (url, sum string)) asked {
	var files []string
	for i, code := range []string{helloWorker, "export const x = 1"} {
		url, sum := put(code)
		files = append(files, fmt.Sprintf(`{"path":"m%d.js","url":%q,"sha256":%q,"mediaType":"application/javascript+module"}`, i, url, sum))
	}
	url, sum := put(`{"entrypoint":"m0.js","files":[` + strings.Join(files, ",") + `]}`)
	return creation("WorkerBundle/0.2.0/", fmt.Sprintf(`{"artifact":{"url":%q,"sha256":%q}}`, url, sum))
}

// crashBlobs are the artifacts of a crashBundle.
const crashBlobs = 3

// creation is the request for a Resource named b.
func creation(form, spec string) asked {
	return asked{method: "POST", path: "/resources", key: "the-key-of-the-create",
		body: fmt.Sprintf(`{"form":%q,"space":"default","name":"b","spec":%s}`, formPrefix+form, spec)}
}

// upload sends bytes to the side channel; ok is false if the node died before it answered.
func (n *node) upload(content string) (url, sum string, a answer, ok bool) {
	n.t.Helper()
	h := sha256.Sum256([]byte(content))
	sum = hex.EncodeToString(h[:])
	url = crashOrigin + "/artifacts/sha256/" + sum
	a, err := n.ask(n.control(), "PUT", url, strings.NewReader(content), "Authorization", "Bearer "+n.token())
	return url, sum, a, err == nil
}

// holdBundle uploads a crashBundle.
func (n *node) holdBundle() asked {
	n.t.Helper()
	return crashBundle(func(content string) (string, string) {
		url, sum, a, ok := n.upload(content)
		if !ok || a.status != 201 {
			n.t.Fatalf("upload: %d %s", a.status, a.body)
		}
		return url, sum
	})
}

func (n *node) blobs() int {
	n.t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dir, "artifacts", "blobs"))
	if err != nil {
		n.t.Fatal(err)
	}
	return len(entries)
}
