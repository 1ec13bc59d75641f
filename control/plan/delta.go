package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Delta is what changes from one plan to the next. It is immutable.
type Delta struct {
	Index     uint64 // of the plan after it
	Hosts     Changes[Host]
	Workers   Changes[Worker]
	Versions  Changes[Version]
	Bundles   Changes[Bundle]
	Crons     Changes[Cron]
	Consumers Changes[Consumer]
	Data      Changes[Data]
	Members   Changes[Member]
}

// Changes are the parts of one kind that come, or come anew, and the ids of those that go; no id stands in both. Ascending by id.
type Changes[T any] struct {
	Put  []*T
	Gone []string
}

// Empty reports whether the delta changes nothing but the index.
func (d *Delta) Empty() bool {
	return d.Hosts.empty() && d.Workers.empty() && d.Versions.empty() && d.Bundles.empty() && d.Crons.empty() && d.Consumers.empty() &&
		d.Data.empty() && d.Members.empty()
}

func (c *Changes[T]) empty() bool { return len(c.Put)+len(c.Gone) == 0 }

// The ids of parts.
func (h *Host) id() string     { return h.Name }
func (w *Worker) id() string   { return w.UID }
func (v *Version) id() string  { return v.UID }
func (b *Bundle) id() string   { return b.Resource }
func (c *Cron) id() string     { return c.UID }
func (c *Consumer) id() string { return c.UID }
func (d *Data) id() string     { return d.UID }
func (m *Member) id() string   { return m.ID }

// part is a pointer to a kind of part.
type part[T any] interface {
	*T
	id() string
}

// Apply makes p the plan after d.
func (p *Plan) Apply(d *Delta) {
	p.Index = d.Index
	apply(p.Hosts, &d.Hosts)
	apply(p.Workers, &d.Workers)
	apply(p.Versions, &d.Versions)
	apply(p.Bundles, &d.Bundles)
	apply(p.Crons, &d.Crons)
	apply(p.Consumers, &d.Consumers)
	apply(p.Data, &d.Data)
	apply(p.Members, &d.Members)
}

func apply[T any, P part[T]](m map[string]*T, c *Changes[T]) {
	for _, x := range c.Put {
		m[P(x).id()] = x
	}
	for _, id := range c.Gone {
		delete(m, id)
	}
}

// Delta returns what leads from an empty plan to p.
func (p *Plan) Delta() *Delta {
	return &Delta{Index: p.Index, Hosts: whole(p.Hosts), Workers: whole(p.Workers), Versions: whole(p.Versions), Bundles: whole(p.Bundles),
		Crons: whole(p.Crons), Consumers: whole(p.Consumers), Data: whole(p.Data), Members: whole(p.Members)}
}

func whole[T any](m map[string]*T) (c Changes[T]) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		c.Put = append(c.Put, m[id])
	}
	return c
}

func (c *Changes[T]) sort(id func(*T) string) {
	slices.SortFunc(c.Put, func(a, b *T) int { return cmp.Compare(id(a), id(b)) })
	slices.Sort(c.Gone)
}
