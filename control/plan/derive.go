package plan

import (
	"reflect"

	"edged/control/rules"
	"edged/control/state"
)

// Deriver keeps the plan of a state. Each call of Next costs what changed in the state since the one before; the first looks at
// everything. It is used by one goroutine at a time, and is the only one to take the state's Changes.
type Deriver struct {
	s     *state.State
	plan  *Plan
	begun bool
	fleet uint64 // revision of the members that plan has
}

// NewDeriver makes a deriver that continues after last, which is its own from now on. s is being tracked.
func NewDeriver(s *state.State, last *Plan) *Deriver { return &Deriver{s: s, plan: last} }

// Plan returns the plan after the last Next. It belongs to the deriver.
func (d *Deriver) Plan() *Plan { return d.plan }

// Next returns what leads from the plan before to the one of the state now, which holds at least the command with this index.
func (d *Deriver) Next(index uint64) *Delta {
	changed := d.s.Changes() // what changes after this is in the next ones too
	touched := newTouched()
	delta := &Delta{Index: index}
	d.s.View(func(v state.View) {
		if d.begun {
			touched.changed(v, changed)
		} else {
			touched.everything(v, d.plan)
		}
		if r := v.FleetRevision(); r != d.fleet || !d.begun {
			d.fleet = r
			touched.fleet(v, d.plan)
		}
		l := look{v}
		collect(touched.hosts, d.plan.Hosts, l.host, &delta.Hosts)
		collect(touched.workers, d.plan.Workers, l.worker, &delta.Workers)
		collect(touched.versions, d.plan.Versions, l.version, &delta.Versions)
		collect(touched.bundles, d.plan.Bundles, l.bundle, &delta.Bundles)
		collect(touched.crons, d.plan.Crons, l.cron, &delta.Crons)
		collect(touched.consumers, d.plan.Consumers, l.consumer, &delta.Consumers)
		collect(touched.data, d.plan.Data, l.data, &delta.Data)
		collect(touched.members, d.plan.Members, l.member, &delta.Members)
	})
	d.begun = true
	d.plan.Apply(delta)
	return delta
}

// collect compares the touched parts of one kind with what they are now.
func collect[T any, P part[T]](ids map[string]struct{}, have map[string]*T, now func(id string) *T, out *Changes[T]) {
	for id := range ids {
		old, is := have[id]
		switch x := now(id); {
		case x == nil && is:
			out.Gone = append(out.Gone, id)
		case x != nil && !(is && reflect.DeepEqual(x, old)):
			out.Put = append(out.Put, x)
		}
	}
	out.sort(func(x *T) string { return P(x).id() })
}

type ids = map[string]struct{}

// touched are the ids of the parts that may have changed.
type touched struct{ hosts, workers, versions, bundles, crons, consumers, data, members ids }

func newTouched() *touched { return &touched{ids{}, ids{}, ids{}, ids{}, ids{}, ids{}, ids{}, ids{}} }

func (t *touched) changed(v state.View, changed map[string]*state.Resource) {
	for uid, before := range changed {
		if before != nil {
			t.add(v, before)
		}
		if r := v.Resource(uid); r != nil {
			t.add(v, r)
		}
	}
}

// everything adds what the state has and what an earlier plan had.
func (t *touched) everything(v state.View, last *Plan) {
	v.Each(func(r *state.Resource) { t.add(v, r) })
	addAll(t.hosts, last.Hosts)
	addAll(t.workers, last.Workers)
	addAll(t.versions, last.Versions)
	addAll(t.bundles, last.Bundles)
	addAll(t.crons, last.Crons)
	addAll(t.consumers, last.Consumers)
	addAll(t.data, last.Data)
}

// fleet adds every member: there are few, and they seldom change.
func (t *touched) fleet(v state.View, last *Plan) {
	v.EachMember(func(m *state.Member) { t.members[m.ID] = struct{}{} })
	addAll(t.members, last.Members)
}

func addAll[T any](set ids, m map[string]*T) {
	for id := range m {
		set[id] = struct{}{}
	}
}

// add adds the parts that a Resource can be seen in. Readiness of a version that depends on others is part of its own served
// representation, so that the version's record changes with it.
func (t *touched) add(v state.View, r *state.Resource) {
	spec := r.Parsed()
	switch r.Driver().Role {
	case rules.Worker:
		t.workers[r.UID] = struct{}{}
	case rules.Deployment:
		t.workers[spec.Worker] = struct{}{}
	case rules.Version:
		t.versions[r.UID] = struct{}{}
	case rules.Artifact:
		t.bundles[r.UID] = struct{}{}
	case rules.Data:
		t.data[r.UID] = struct{}{}
	case rules.Attachment:
		switch {
		case spec.Hostname != "":
			t.hosts[spec.Hostname] = struct{}{}
		case r.Address != "":
			t.hosts[r.Address] = struct{}{}
		case spec.Cron.String() != "":
			t.crons[r.UID] = struct{}{}
		case spec.Consumer.Queue != "":
			t.consumers[r.UID] = struct{}{}
		}
	}
}
