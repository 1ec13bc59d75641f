package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"edged/control/client"
)

const forms = "https://edge.forms.takoform.com/forms/"

const helloSource = `export default { async fetch() { return new Response("Hello World") } }`

// waitSource answers after a while, so that many of its sandboxes are alive at once.
const waitSource = `export default { async fetch() { await new Promise(r => setTimeout(r, 15000)); return new Response("late") } }`

//go:embed workers/cpu.js
var cpuSource string

type ref struct {
	UID string `json:"resourceUid"`
}

// create makes a Resource, waits for it and returns its reference.
func (n *nodeProcess) create(ctx context.Context, form, name string, spec any) (ref, error) {
	op, err := n.client.Create(ctx, client.Create{Form: forms + form, Space: "default", Name: name, Spec: spec}, client.NewKey())
	if err == nil {
		op, err = n.client.Wait(ctx, op)
	}
	if err != nil {
		return ref{}, fmt.Errorf("create %s: %w", name, err)
	}
	return ref{op.ResourceUID}, nil
}

// deployWorker makes a worker of one module with an endpoint, straight through the API, and returns its host name.
func (n *nodeProcess) deployWorker(ctx context.Context, name, source string) (string, error) {
	bundle, err := n.bundle(ctx, name, source)
	if err != nil {
		return "", err
	}
	worker, err := n.create(ctx, "ModuleWorker/0.3.0/", name, struct{}{})
	if err != nil {
		return "", err
	}
	version, err := n.create(ctx, "WorkerVersion/0.7.0/", name+".version",
		map[string]any{"worker": worker, "bundle": bundle, "handlers": []string{"fetch"}})
	if err != nil {
		return "", err
	}
	_, err = n.create(ctx, "WorkerDeployment/0.6.0/", name+".deployment",
		map[string]any{"worker": worker, "versions": []any{map[string]any{"workerVersion": version, "weight": 10000}}})
	if err != nil {
		return "", err
	}
	endpoint, err := n.create(ctx, "WorkerEndpoint/0.3.0/", name+".endpoint", map[string]any{"worker": worker})
	if err != nil {
		return "", err
	}
	res, err := n.client.Read(ctx, endpoint.UID)
	if err != nil {
		return "", err
	}
	var out struct{ Hostname string }
	if err := json.Unmarshal(res.Output, &out); err != nil {
		return "", err
	}
	return out.Hostname, nil
}

func (n *nodeProcess) bundle(ctx context.Context, name, source string) (ref, error) {
	code, _, err := n.client.Upload(ctx, []byte(source))
	if err != nil {
		return ref{}, err
	}
	manifest, err := json.Marshal(map[string]any{"entrypoint": "main.js", "files": []any{map[string]any{
		"path": "main.js", "url": code.URL, "sha256": code.SHA256, "mediaType": "application/javascript+module"}}})
	if err != nil {
		return ref{}, err
	}
	artifact, _, err := n.client.Upload(ctx, manifest)
	if err != nil {
		return ref{}, err
	}
	return n.create(ctx, "WorkerBundle/0.2.0/", name+".bundle", map[string]any{"artifact": artifact})
}

// numbered is the hello worker, different for every i, so that nothing can be shared between workers.
func numbered(i int) string {
	digest := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
	return helloSource + "\n// " + hex.EncodeToString(digest[:])
}

// projectDir writes a worker as a user has it and returns the folder.
func projectDir(source string) (string, error) {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return "", err
	}
	manifest := "name = \"hello\"\nmain = \"hello.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n"
	err = os.WriteFile(filepath.Join(dir, "worker.toml"), []byte(manifest), 0o600)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hello.js"), []byte(source), 0o600)
	}
	return dir, err
}

// request is one GET written by hand on an open connection, so that a measurement holds nothing of a client library.
func request(c net.Conn, host string, buf []byte) (int, error) {
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
		return 0, err
	}
	n, err := c.Read(buf)
	if err == nil && (n < 12 || string(buf[9:12]) != "200") {
		err = fmt.Errorf("answer: %.60q", buf[:n])
	}
	return n, err
}
