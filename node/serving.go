package node

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"edged/control/plan"
	"edged/internal/fault"
	"edged/router/table"
)

// serving is the plan as it is in use here, with what is looked up to take a delta into use at the cost of that delta.
type serving struct {
	plan    *plan.Plan
	table   *table.Table
	workers map[string]*table.Worker       // as they stand in the table, by UID
	tenants tenants                        // of those workers
	hosts   map[string]map[string]struct{} // names of a worker
	weighed map[string]string              // version to the worker whose active deployment weights it
	failed  map[string]struct{}            // weighted versions that could not be opened
	leaving []string                       // versions that lost their weight and may still stand in the table
	broken  bool                           // the table does not have all of the plan
}

func emptyTable() *table.Table {
	empty, err := table.Build(nil)
	if err != nil {
		panic("node: an empty table is refused: " + err.Error())
	}
	return empty
}

func newServing() serving {
	return serving{plan: plan.New(), table: emptyTable(), workers: map[string]*table.Worker{}, tenants: tenants{}, hosts: map[string]map[string]struct{}{},
		weighed: map[string]string{}, failed: map[string]struct{}{}}
}

// apply takes a delta into use: it opens what is new, swaps the routing table, and retires what was dropped. A version that cannot
// be opened answers 503, is tried again with the next delta and never keeps the others from changing. The cost is that of
// the parts that change and of what hangs on them: the names of a worker whose weights change.
func (v *versions) apply(d *plan.Delta) {
	s := &v.serving
	v.noteNames(d)
	v.planMu.Lock()
	s.take(d)
	v.planMu.Unlock()
	open, again := s.toOpen(d)
	v.withdraw(again)
	v.openAll(open)
	names := s.rebuild(d, open, v.routeOf)
	base, behind := s.table, s.broken
	if behind {
		base, names = emptyTable(), slices.Collect(maps.Keys(s.plan.Hosts))
	}
	next, err := base.With(s.routes(names), d.Hosts.Gone)
	if s.broken = err != nil; s.broken {
		v.log.Error("plan not applied; the routes before go on serving", "err", err, "index", d.Index, "do", fault.ReportBug)
		return
	}
	s.table = next
	v.publish(next)
	if behind {
		v.tellAllWorkers()
	} else {
		v.tellWorkers(d, open)
	}
	v.retireDropped(s.left())
}

// noteNames keeps what people call the workers of a delta.
func (v *versions) noteNames(d *plan.Delta) {
	for _, w := range d.Workers.Put {
		v.names.Store(w.UID, w.Space+"/"+w.Name)
	}
	for _, uid := range d.Workers.Gone {
		v.names.Delete(uid)
	}
	for _, pv := range d.Versions.Put {
		v.owners.Store(pv.UID, pv.Worker)
	}
	for _, uid := range d.Versions.Gone {
		v.owners.Delete(uid)
	}
}

// workerOf is the UID of a version's worker, "" if it is not in the plan any more.
func (v *versions) workerOf(version string) string {
	uid, _ := v.owners.Load(version)
	worker, _ := uid.(string)
	return worker
}

// tellWorkers lets worker find what a delta, or a version that was opened, has changed.
func (v *versions) tellWorkers(d *plan.Delta, opened []string) {
	tell := func(uid string) {
		if w := v.serving.workers[uid]; w != nil {
			v.byUID.Store(uid, w)
		} else {
			v.byUID.Delete(uid)
		}
	}
	for _, uid := range d.Workers.Gone {
		tell(uid)
	}
	for _, w := range d.Workers.Put {
		tell(w.UID)
	}
	for _, uid := range opened {
		tell(v.serving.weighed[uid])
	}
}

// tellAllWorkers is tellWorkers after deltas that were not taken into use.
func (v *versions) tellAllWorkers() {
	for uid, w := range v.serving.workers {
		v.byUID.Store(uid, w)
	}
	v.byUID.Range(func(uid, _ any) bool {
		if v.serving.workers[uid.(string)] == nil {
			v.byUID.Delete(uid)
		}
		return true
	})
}

// worker returns what a worker serves now, nil if this node knows none of this UID.
func (v *versions) worker(uid string) *table.Worker {
	w, _ := v.byUID.Load(uid)
	worker, _ := w.(*table.Worker)
	return worker
}

// take makes s.plan the plan after d, with the indexes of names and weights.
func (s *serving) take(d *plan.Delta) {
	for _, name := range d.Hosts.Gone {
		s.forget(name)
	}
	for _, h := range d.Hosts.Put {
		s.forget(h.Name)
		if s.hosts[h.Worker] == nil {
			s.hosts[h.Worker] = map[string]struct{}{}
		}
		s.hosts[h.Worker][h.Name] = struct{}{}
	}
	unweigh := func(worker string) {
		if old := s.plan.Workers[worker]; old != nil {
			for _, w := range old.Weights {
				delete(s.weighed, w.Version)
				s.leaving = append(s.leaving, w.Version)
			}
		}
	}
	for _, uid := range d.Workers.Gone {
		unweigh(uid)
		if old := s.plan.Workers[uid]; old != nil && s.workers[uid] != nil {
			s.tenants.leave(old.Tenant)
			delete(s.workers, uid)
		}
	}
	for _, w := range d.Workers.Put {
		unweigh(w.UID)
		for _, share := range w.Weights {
			s.weighed[share.Version] = w.UID
		}
	}
	s.plan.Apply(d)
}

// left returns the versions that lost their weight since it was called last, but for those that have one again.
func (s *serving) left() []string {
	left := slices.DeleteFunc(s.leaving, func(uid string) bool { _, still := s.weighed[uid]; return still })
	s.leaving = nil
	return left
}

func (s *serving) forget(name string) {
	if h := s.plan.Hosts[name]; h != nil {
		if delete(s.hosts[h.Worker], name); len(s.hosts[h.Worker]) == 0 {
			delete(s.hosts, h.Worker)
		}
	}
}

// toOpen returns the weighted versions that have to be opened, ascending, and those among them that may be open as something that
// does not hold any more.
func (s *serving) toOpen(d *plan.Delta) (open, again []string) {
	set := maps.Clone(s.failed)
	for _, w := range d.Workers.Put {
		for _, share := range w.Weights {
			set[share.Version] = struct{}{}
		}
	}
	for _, pv := range d.Versions.Put {
		set[pv.UID] = struct{}{}
		again = append(again, pv.UID)
	}
	for uid := range set {
		if _, weighed := s.weighed[uid]; !weighed {
			delete(set, uid)
		}
	}
	clear(s.failed)
	return slices.Sorted(maps.Keys(set)), again
}

// withdraw closes versions whose readiness is not the one with which they were opened.
func (v *versions) withdraw(uids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, uid := range uids {
		lv, pv := v.loaded[uid], v.serving.plan.Versions[uid]
		if lv == nil || pv != nil && pv.Ready == lv.ready {
			continue
		}
		delete(v.loaded, uid)
		if lv.code != nil {
			v.retireLocked(uid, lv.code)
		}
	}
}

// openAll opens those of the versions that are not open, a few at a time.
func (v *versions) openAll(uids []string) {
	var opening sync.WaitGroup
	slots := make(chan struct{}, openAtOnce)
	for _, uid := range uids {
		pv := v.serving.plan.Versions[uid]
		v.mu.Lock()
		have := v.loaded[uid]
		v.mu.Unlock()
		if pv == nil || have != nil && have.err == nil {
			continue
		}
		slots <- struct{}{} // freed by an opening that always ends: loading has limits of its own
		opening.Go(func() {
			defer func() { <-slots }()
			lv := v.load(pv)
			switch {
			case lv.err == nil:
			case !pv.Ready: // whoever found that has said why
				v.log.Warn("version is not ready and does not run here", "version", pv.UID, "worker", pv.Worker)
			default:
				v.log.Error("version cannot run here", "version", pv.UID, "worker", pv.Worker, "err", lv.err,
					"do", "see the cause in err; deploy the worker again if its code or a binding is at fault")
			}
			v.mu.Lock()
			v.loaded[pv.UID] = lv
			v.mu.Unlock()
		})
	}
	opening.Wait()
}

// routeOf returns a version as the table has it; ok is false for one that could not be opened and may be another time.
func (v *versions) routeOf(uid string) (*table.Version, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	lv := v.loaded[uid]
	if lv == nil {
		return &table.Version{UID: uid, HasFetch: true}, false
	}
	return lv.route, lv.err == nil || errors.Is(lv.err, errNotReady)
}

// rebuild makes the workers anew that a delta or a version that was opened changes, and returns the names that lead to them.
func (s *serving) rebuild(d *plan.Delta, opened []string, route func(uid string) (*table.Version, bool)) (names []string) {
	changed := map[string]struct{}{}
	for _, w := range d.Workers.Put {
		changed[w.UID] = struct{}{}
	}
	for _, uid := range opened {
		changed[s.weighed[uid]] = struct{}{}
	}
	for _, uid := range d.Workers.Gone {
		names = slices.AppendSeq(names, maps.Keys(s.hosts[uid]))
		changed[uid] = struct{}{}
	}
	for uid := range changed {
		w := s.plan.Workers[uid]
		if w == nil {
			continue // gone
		}
		tw := &table.Worker{UID: uid, Deployment: w.Deployment}
		if old := s.workers[uid]; old != nil {
			tw.Party = old.Party
		} else {
			tw.Party = s.tenants.join(w.Tenant)
		}
		for _, share := range w.Weights {
			version, ok := route(share.Version)
			if !ok {
				s.failed[share.Version] = struct{}{}
			}
			tw.Versions = append(tw.Versions, table.Weighted{Version: version, Weight: share.Weight})
		}
		s.workers[uid] = tw
		names = slices.AppendSeq(names, maps.Keys(s.hosts[uid]))
	}
	for _, h := range d.Hosts.Put {
		if _, done := changed[h.Worker]; !done {
			names = append(names, h.Name)
		}
	}
	return names
}

// routes gives names their workers. A name whose worker is gone leads to one that serves nothing.
func (s *serving) routes(names []string) map[string]*table.Worker {
	out := make(map[string]*table.Worker, len(names))
	for _, name := range names {
		uid := s.plan.Hosts[name].Worker
		if out[name] = s.workers[uid]; out[name] == nil {
			out[name] = &table.Worker{UID: uid}
		}
	}
	return out
}

// retireDropped sends loaded versions on their way out.
func (v *versions) retireDropped(uids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, uid := range uids {
		lv := v.loaded[uid]
		if lv == nil {
			continue
		}
		delete(v.loaded, uid)
		if lv.code != nil {
			v.retireLocked(uid, lv.code)
		}
	}
}
