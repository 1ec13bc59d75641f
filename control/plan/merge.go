package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Merge returns what leads to the same plan as all of ds, one after the other. ds are not changed; there is at least one.
func Merge(ds ...*Delta) *Delta {
	if len(ds) == 1 {
		return ds[0]
	}
	out := &Delta{Index: ds[len(ds)-1].Index}
	merge(ds, &out.Hosts, func(d *Delta) *Changes[Host] { return &d.Hosts })
	merge(ds, &out.Workers, func(d *Delta) *Changes[Worker] { return &d.Workers })
	merge(ds, &out.Versions, func(d *Delta) *Changes[Version] { return &d.Versions })
	merge(ds, &out.Bundles, func(d *Delta) *Changes[Bundle] { return &d.Bundles })
	merge(ds, &out.Crons, func(d *Delta) *Changes[Cron] { return &d.Crons })
	merge(ds, &out.Consumers, func(d *Delta) *Changes[Consumer] { return &d.Consumers })
	merge(ds, &out.Data, func(d *Delta) *Changes[Data] { return &d.Data })
	merge(ds, &out.Members, func(d *Delta) *Changes[Member] { return &d.Members })
	return out
}

func merge[T any, P part[T]](ds []*Delta, out *Changes[T], of func(*Delta) *Changes[T]) {
	last := map[string]*T{} // nil for what is gone
	for _, d := range ds {
		c := of(d)
		for _, x := range c.Put {
			last[P(x).id()] = x
		}
		for _, id := range c.Gone {
			last[id] = nil
		}
	}
	for id, x := range last {
		if x == nil {
			out.Gone = append(out.Gone, id)
		} else {
			out.Put = append(out.Put, x)
		}
	}
	out.sort(func(x *T) string { return P(x).id() })
}

// To returns what leads from p to next.
func (p *Plan) To(next *Plan) *Delta {
	d := &Delta{Index: next.Index}
	differ(p.Hosts, next.Hosts, &d.Hosts)
	differ(p.Workers, next.Workers, &d.Workers)
	differ(p.Versions, next.Versions, &d.Versions)
	differ(p.Bundles, next.Bundles, &d.Bundles)
	differ(p.Crons, next.Crons, &d.Crons)
	differ(p.Consumers, next.Consumers, &d.Consumers)
	differ(p.Data, next.Data, &d.Data)
	differ(p.Members, next.Members, &d.Members)
	return d
}

func differ[T any, P part[T]](have, want map[string]*T, out *Changes[T]) {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if old := have[id]; old == nil || old != want[id] && !reflect.DeepEqual(old, want[id]) {
			out.Put = append(out.Put, want[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(have)) {
		if want[id] == nil {
			out.Gone = append(out.Gone, id)
		}
	}
}

// Cut returns deltas with the index of d and at most most parts and ids of each kind, that are d one after the other: one at least.
// They share d's memory.
func (d *Delta) Cut(most int) (pieces []*Delta) {
	rest := *d
	for {
		piece := &Delta{Index: d.Index}
		left := cut(&rest.Hosts, &piece.Hosts, most) + cut(&rest.Workers, &piece.Workers, most) + cut(&rest.Versions, &piece.Versions, most) +
			cut(&rest.Bundles, &piece.Bundles, most) + cut(&rest.Crons, &piece.Crons, most) + cut(&rest.Consumers, &piece.Consumers, most) +
			cut(&rest.Data, &piece.Data, most) + cut(&rest.Members, &piece.Members, most)
		pieces = append(pieces, piece)
		if left == 0 {
			return pieces
		}
	}
}

// cut moves the first of from to to and returns how many are left.
func cut[T any](from, to *Changes[T], most int) (left int) {
	n := min(most, len(from.Put))
	to.Put, from.Put = from.Put[:n:n], from.Put[n:]
	n = min(most, len(from.Gone))
	to.Gone, from.Gone = from.Gone[:n:n], from.Gone[n:]
	return len(from.Put) + len(from.Gone)
}

// Check returns an error unless d, which another node sent, can be applied: every part is there and has an id.
func (d *Delta) Check() error {
	for _, err := range []error{check("host", &d.Hosts), check("worker", &d.Workers), check("version", &d.Versions), check("bundle", &d.Bundles),
		check("cron", &d.Crons), check("consumer", &d.Consumers), check("data", &d.Data), check("member", &d.Members)} {
		if err != nil {
			return err
		}
	}
	return nil
}

func check[T any, P part[T]](kind string, c *Changes[T]) error {
	for _, x := range c.Put {
		if x == nil || P(x).id() == "" {
			return fmt.Errorf("a %s of the plan is empty or has no id", kind)
		}
	}
	return nil
}
