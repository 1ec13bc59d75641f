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
	_, host, err := n.deployVersion(ctx, name, map[string]any{"bundle": bundle, "handlers": []string{"fetch"}})
	return host, err
}

// deployVersion makes a worker with one version and an endpoint.
func (n *nodeProcess) deployVersion(ctx context.Context, name string, version map[string]any) (worker ref, host string, err error) {
	if worker, err = n.create(ctx, "ModuleWorker/0.3.0/", name, struct{}{}); err != nil {
		return worker, "", err
	}
	version["worker"] = worker
	v, err := n.create(ctx, "WorkerVersion/0.7.0/", name+".version", version)
	if err != nil {
		return worker, "", err
	}
	if _, err = n.create(ctx, "WorkerDeployment/0.6.0/", name+".deployment", weighing(worker, v)); err != nil {
		return worker, "", err
	}
	endpoint, err := n.create(ctx, "WorkerEndpoint/0.3.0/", name+".endpoint", map[string]any{"worker": worker})
	if err != nil {
		return worker, "", err
	}
	res, err := n.client.Read(ctx, endpoint.UID)
	if err != nil {
		return worker, "", err
	}
	host, err = hostname(res)
	return worker, host, err
}

// hostOf returns the host name of the endpoint with this name.
func (n *nodeProcess) hostOf(ctx context.Context, endpoint string) (string, error) {
	for res, err := range n.client.List(ctx, client.Filter{Space: "default", Name: endpoint}) {
		if err != nil {
			return "", err
		}
		return hostname(res)
	}
	return "", fmt.Errorf("%s is not there", endpoint)
}

func hostname(endpoint *client.Resource) (string, error) {
	var out struct{ Hostname string }
	err := json.Unmarshal(endpoint.Output, &out)
	return out.Hostname, err
}

// boundTo makes a Resource for a worker's env and returns the binding of it.
func (n *nodeProcess) boundTo(ctx context.Context, form, name string, spec any) (bound, error) {
	resource, err := n.create(ctx, form, name, spec)
	return bound{name, resource}, err
}

// bound is an entry of a version's binding lists.
type bound struct {
	Name     string `json:"name"`
	Resource ref    `json:"resource"`
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
func request(c net.Conn, host, path string, buf []byte) (int, error) {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host); err != nil {
		return 0, err
	}
	n, err := c.Read(buf)
	if err == nil && (n < 12 || string(buf[9:12]) != "200") {
		err = fmt.Errorf("answer: %.60q", buf[:n])
	}
	return n, err
}
