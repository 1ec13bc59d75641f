package deploy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

// Worker is a worker that is there, with its versions and its distribution.
type Worker struct {
	Space, Name, UID string

	c          *client.Client
	deployment *client.Resource            // nil if nothing is deployed
	versions   map[string]*client.Resource // by UID
}

// NamedShare is a version's part of the traffic, with the name that people know it by.
type NamedShare struct {
	Version string `json:"version"` // UID
	Name    string `json:"name"`
	Weight  int    `json:"weight"` // basis points
}

// FindWorker reads a worker of a Space; NotFound if there is no ModuleWorker of this name.
func FindWorker(ctx context.Context, c *client.Client, space, name string) (*Worker, error) {
	r, ok, err := c.Lookup(ctx, space, name)
	if err != nil {
		return nil, failed("read", name, err)
	}
	if !ok || r.Form != form.ModuleWorkerURL {
		return nil, fault.Newf(fault.NotFound, "deploy.FindWorker", "there is no ModuleWorker %q in Space %q", name, space)
	}
	w := &Worker{Space: space, Name: name, UID: r.UID, c: c, versions: map[string]*client.Resource{}}
	for _, formURL := range []string{form.WorkerDeploymentURL, form.WorkerVersionURL} {
		for r, err := range c.List(ctx, client.Filter{Space: space, Form: formURL}) {
			if err != nil {
				return nil, failed("read", name, err)
			}
			switch {
			case attachment(r).Worker.UID != w.UID:
			case formURL == form.WorkerVersionURL:
				w.versions[r.UID] = r
			default:
				w.deployment = r
			}
		}
	}
	return w, nil
}

// Shares is the present distribution, nil if nothing is deployed.
func (w *Worker) Shares() []NamedShare {
	if w.deployment == nil {
		return nil
	}
	return w.named(active(w.deployment.Observed))
}

func (w *Worker) named(shares []Share) []NamedShare {
	var out []NamedShare
	for _, s := range shares {
		n := NamedShare{s.Version, s.Version, s.Weight}
		if v := w.versions[s.Version]; v != nil {
			n.Name = v.Name
		}
		out = append(out, n)
	}
	return out
}

// version finds one of the worker's versions by its UID, its name, or the beginning of what its name has behind
// NAME.version.
func (w *Worker) version(text string) (*client.Resource, error) {
	const op = "deploy.version"
	if v := w.versions[text]; v != nil {
		return v, nil
	}
	var found []*client.Resource
	for _, v := range w.versions {
		if v.Name == text {
			return v, nil
		}
		if text != "" && strings.HasPrefix(strings.TrimPrefix(v.Name, w.Name+".version."), text) {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 0:
		return nil, fault.Newf(fault.NotFound, op, "%s has no version %q", w.Name, text)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, v := range found {
		names[i] = v.Name
	}
	slices.Sort(names)
	return nil, fault.Newf(fault.Conflict, op, "%q stands for several versions: %s", text, strings.Join(names, ", "))
}

// Change is a distribution that took the place of another.
type Change struct {
	Space   string       `json:"space"`
	Worker  string       `json:"worker"`
	Changed bool         `json:"changed"`
	Before  []NamedShare `json:"before"`
	After   []NamedShare `json:"after"`
}

// move makes shares the distribution and waits until it is.
func (w *Worker) move(ctx context.Context, shares []Share) (*Change, error) {
	out := &Change{Space: w.Space, Worker: w.Name, Before: w.Shares(), After: w.named(shares)}
	spec := deploymentOf(w.UID, shares)
	var have deploymentSpec
	if json.Unmarshal(w.deployment.Spec, &have) == nil && spec.equal(have) && w.deployment.Phase == "idle" {
		return out, nil
	}
	op, err := w.c.Update(ctx, w.deployment.UID, w.deployment.Generation, spec, nil, client.NewKey())
	if err == nil {
		_, err = w.c.Wait(ctx, op)
	}
	out.Changed = err == nil
	return out, failed("update", w.deployment.Name, err)
}
