package plan

import (
	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
)

// look makes parts from the state at one instant; nil means that there is none of that id.
type look struct{ v state.View }

// live returns the Resource with the UID if it plays the role and its deletion was not accepted.
func (l look) live(uid string, role rules.Role) *state.Resource {
	r := l.v.Resource(uid)
	if r == nil || r.Driver().Role != role || r.Phase == state.Deleting {
		return nil
	}
	return r
}

func (l look) host(name string) *Host {
	r := l.v.Resource(l.v.HostOwner(name))
	if r == nil {
		return nil
	}
	return &Host{Name: name, Worker: r.Parsed().Worker, Resource: r.UID, Tenant: r.Tenant, Endpoint: r.Address != ""}
}

func (l look) worker(uid string) *Worker {
	r := l.v.Resource(uid)
	if r == nil || r.Driver().Role != rules.Worker {
		return nil
	}
	w := &Worker{UID: r.UID, Tenant: r.Tenant, Space: r.Space, Name: r.Name}
	for _, d := range l.v.Sources(uid, rules.Deployment, form.UseOwner) {
		dep := l.live(d, rules.Deployment)
		if dep == nil || len(dep.Active) == 0 {
			continue
		}
		w.Deployment = dep.UID
		for _, share := range dep.Active {
			w.Weights = append(w.Weights, Weight(share))
		}
		break
	}
	return w
}

func (l look) version(uid string) *Version {
	r := l.v.Resource(uid)
	if r == nil || r.Driver().Role != rules.Version {
		return nil
	}
	spec := r.Parsed()
	v := &Version{UID: r.UID, Worker: spec.Worker, Tenant: r.Tenant, Ready: l.v.Ready(r), Handlers: spec.Handlers, Vars: spec.Vars,
		Bindings: bindings(r), Bundle: spec.Bundle, Sealed: r.Sealed}
	if len(spec.Sensitive) > 0 {
		v.Sensitive = spec.Sensitive
	}
	v.Secrets = secrets(r.Secrets)
	if spec.Assets != "" {
		v.Assets = &Assets{Bundle: spec.Assets, RunWorkerFirst: spec.RunWorkerFirst, SPA: spec.SPA}
	}
	return v
}

func secrets(s *state.Secrets) map[string][]byte {
	if s == nil {
		return nil
	}
	out := make(map[string][]byte, len(s.Names))
	for i, box := range s.Boxes {
		out[s.Names[i]] = box
	}
	return out
}

// bindings gives each binding the Form identity that was pinned with its target, whatever stands under the UID now.
func bindings(r *state.Resource) []Binding {
	var out []Binding
	for i := range r.Parsed().Refs {
		ref := &r.Parsed().Refs[i]
		if ref.Binding == "" {
			continue
		}
		b := Binding{Name: ref.Binding, Kind: ref.Kind, Target: ref.UID}
		for _, p := range r.Pins {
			if p.Pointer == ref.Pointer && p.Target == ref.UID {
				b.Form = p.Form
			}
		}
		out = append(out, b)
	}
	return out
}

func (l look) bundle(uid string) *Bundle {
	r := l.v.Resource(uid)
	if r == nil || r.Index == nil {
		return nil
	}
	b := &Bundle{Resource: r.UID, SHA256: r.Index.SHA256, Entrypoint: r.Index.Entrypoint, Files: make([]File, len(r.Index.Files))}
	for i, f := range r.Index.Files {
		b.Files[i] = File{Path: f.Path, MediaType: f.MediaType, SHA256: f.SHA256, Size: f.Size}
	}
	return b
}

func (l look) cron(uid string) *Cron {
	r := l.live(uid, rules.Attachment)
	if r == nil || !r.Settled {
		return nil
	}
	return &Cron{UID: r.UID, Tenant: r.Tenant, Space: r.Space, Name: r.Name, Worker: r.Parsed().Worker, Cron: r.Parsed().Cron.String(),
		Generation: r.Generation, Since: r.Since}
}

func (l look) consumer(uid string) *Consumer {
	r := l.live(uid, rules.Attachment)
	if r == nil || !r.Settled {
		return nil
	}
	c := &r.Parsed().Consumer
	return &Consumer{UID: r.UID, Tenant: r.Tenant, Space: r.Space, Name: r.Name, Worker: r.Parsed().Worker, Queue: c.Queue,
		MaxBatchSize: c.MaxBatchSize, MaxBatchTimeoutSeconds: c.MaxBatchTimeoutSeconds, MaxConcurrency: c.MaxConcurrency,
		MaxRetries: c.MaxRetries, RetryDelaySeconds: c.RetryDelaySeconds, DeadLetterQueue: c.DeadLetterQueue, Generation: r.Generation,
		Home: l.v.Home(l.v.Resource(c.Queue))}
}

// data gives the store of a Resource that has one for certain. The settings of a queue are those of its spec, which hold once the
// change of them was accepted.
func (l look) data(uid string) *Data {
	r := l.live(uid, rules.Data)
	if r == nil || !r.Settled || r.Lost {
		return nil
	}
	d := &Data{UID: r.UID, Kind: r.Driver().Store, Form: r.Form, Tenant: r.Tenant, Space: r.Space, Name: r.Name, Home: l.v.Home(r)}
	if d.Kind == form.StoreQueue {
		d.Queue = &r.Parsed().Queue
	}
	return d
}

func (l look) member(id string) *Member {
	m := l.v.Member(id)
	if m == nil {
		return nil
	}
	return MemberOf(m)
}

// MemberOf returns what everybody in the fleet may know of a member.
func MemberOf(m *state.Member) *Member {
	return &Member{ID: m.ID, Name: m.Name, Control: m.Control, Edge: m.Edge, Labels: m.Labels, Peer: m.Peer, Gossip: m.Gossip, Origin: m.Origin,
		KVEpoch: m.KVEpoch, Serial: m.Serial, JoinedAt: m.JoinedAt, Draining: m.Draining}
}
