package plan

import (
	"slices"
	"strings"

	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
)

// Derive makes the plan of a state as of the command with the index given. The cost is linear in the number of live
// Resources.
func Derive(s *state.State, index uint64) *Plan {
	d := deriver{p: &Plan{Format: FormatVersion, Index: index}, bundles: map[string]*Bundle{}, at: map[string]int{}, owners: map[string]*state.Resource{}}
	var deployments, versions []*state.Resource
	s.Each(func(r *state.Resource) bool {
		switch r.Driver().Role {
		case rules.Worker:
			d.at[r.UID] = len(d.p.Workers)
			d.p.Workers = append(d.p.Workers, Worker{UID: r.UID, Tenant: r.Tenant, Space: r.Space, Name: r.Name})
		case rules.Artifact:
			d.artifact(r)
		case rules.Version:
			versions = append(versions, r)
		case rules.Deployment:
			deployments = append(deployments, r)
		case rules.Attachment:
			d.host(r)
		}
		return true
	})
	for _, r := range versions {
		d.version(r)
	}
	for _, r := range deployments {
		d.deployment(r)
	}
	for host, r := range d.owners {
		d.p.Hosts = append(d.p.Hosts, Host{Name: host, Worker: r.Parsed().Worker, Resource: r.UID, Tenant: r.Tenant, Endpoint: r.Address != ""})
	}
	slices.SortFunc(d.p.Hosts, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	return d.p
}

type deriver struct {
	p       *Plan
	bundles map[string]*Bundle         // verified artifacts by UID
	at      map[string]int             // worker UID to its place
	owners  map[string]*state.Resource // host name to the oldest claim
}

func (d *deriver) deployment(r *state.Resource) {
	i, ok := d.at[r.Parsed().Worker]
	if !ok || len(r.Active) == 0 || r.Phase == state.Deleting {
		return
	}
	w := &d.p.Workers[i]
	w.Deployment = r.UID
	for _, share := range r.Active {
		w.Weights = append(w.Weights, Weight(share))
	}
}

func (d *deriver) host(r *state.Resource) {
	host := r.Parsed().Hostname
	if host == "" {
		host = r.Address
	}
	if host == "" {
		return
	}
	if first := d.owners[host]; first == nil || r.Born < first.Born {
		d.owners[host] = r
	}
}

func (d *deriver) version(r *state.Resource) {
	spec := r.Parsed()
	v := Version{UID: r.UID, Worker: spec.Worker, Tenant: r.Tenant, Ready: true, Handlers: spec.Handlers, Vars: spec.Vars, Sealed: r.Sealed}
	if spec.Bundle != "" {
		v.Bundle = d.bundles[spec.Bundle]
		v.Ready = v.Bundle != nil
	}
	if spec.Assets != "" {
		b := d.bundles[spec.Assets]
		v.Ready = v.Ready && b != nil
		if b != nil {
			v.Assets = &Assets{Resource: b.Resource, SHA256: b.SHA256, Files: b.Files, RunWorkerFirst: spec.RunWorkerFirst, SPA: spec.SPA}
		}
	}
	if s := r.Secrets; s != nil {
		v.Secrets = secrets(s)
		v.Ready = v.Ready && !s.Lost
	}
	d.p.Versions = append(d.p.Versions, v)
}

func secrets(s *state.Secrets) map[string][]byte {
	out := make(map[string][]byte, len(s.Names))
	for i, box := range s.Boxes {
		out[s.Names[i]] = box
	}
	return out
}

func (d *deriver) artifact(r *state.Resource) {
	if r.Index != nil {
		d.bundles[r.UID] = &Bundle{Resource: r.UID, SHA256: r.Index.SHA256, Entrypoint: r.Index.Entrypoint, Files: files(r.Index)}
	}
}

func files(x *form.Index) []File {
	out := make([]File, len(x.Files))
	for i, f := range x.Files {
		out[i] = File{Path: f.Path, MediaType: f.MediaType, SHA256: f.SHA256, Size: f.Size}
	}
	return out
}
