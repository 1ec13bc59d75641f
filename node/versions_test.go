package node

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"edged/control/plan"
	"edged/internal/testkit"
	"edged/router/table"
)

// served is versions without a sandbox: of versions without code nothing has to be opened.
func served(t testing.TB) (v *versions, current func() *table.Table) {
	t.Helper()
	tbl := emptyTable()
	v = newVersions(t.Context(), nil, nil, nil, func(next *table.Table) { tbl = next }, slog.New(slog.DiscardHandler))
	return v, func() *table.Table { return tbl }
}

func worker(uid string, shares ...any) *plan.Worker {
	w := &plan.Worker{UID: uid}
	for i := 0; i < len(shares); i += 2 {
		w.Weights = append(w.Weights, plan.Weight{Version: shares[i].(string), Weight: shares[i+1].(int)})
	}
	return w
}

func ready(uids ...string) (c plan.Changes[plan.Version]) {
	for _, uid := range uids {
		c.Put = append(c.Put, &plan.Version{UID: uid, Ready: true})
	}
	return c
}

func hosts(pairs ...string) (c plan.Changes[plan.Host]) {
	for i := 0; i < len(pairs); i += 2 {
		c.Put = append(c.Put, &plan.Host{Name: pairs[i], Worker: pairs[i+1]})
	}
	return c
}

// worker-version §9: what is sealed with another facade set is not opened, whatever the plan says: it may be the last plan of
// another program.
func TestVersionOfAnotherFacadeSetIsNotOpened(t *testing.T) {
	v, now := served(t)
	v.facades = "ours"
	versions := ready("v1", "v2")
	versions.Put[0].Sealed, versions.Put[1].Sealed = "ours", "theirs"
	v.apply(&plan.Delta{Hosts: hosts("a.test", "w1"), Versions: versions,
		Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w1", "v1", 5000, "v2", 5000)}}})
	if v.loaded["v1"].err != nil || !errors.Is(v.loaded["v2"].err, errNotReady) {
		t.Errorf("opened with %v and %v", v.loaded["v1"].err, v.loaded["v2"].err)
	}
	if w := now().Match([]byte("a.test")); w == nil {
		t.Error("the name is gone")
	}
}

// worker-deployment §3: the table gives every version its basis points; a name without an active deployment leads to a worker
// that nothing can serve (attachments §2), not to nowhere.
func TestApplyBuildsTheTable(t *testing.T) {
	v, now := served(t)
	v.apply(&plan.Delta{
		Hosts:    hosts("a.test", "w1", "b.test", "w1", "idle.test", "w2", "orphan.test", "gone"),
		Workers:  plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w1", "v1", 9500, "v2", 500), worker("w2")}},
		Versions: ready("v1", "v2", "v3"),
	})
	for _, host := range []string{"a.test", "b.test"} {
		w := now().Match([]byte(host))
		if w == nil || w.Pick(0).UID != "v1" || w.Pick(9499).UID != "v1" || w.Pick(9500).UID != "v2" || w.Pick(9999).UID != "v2" {
			t.Errorf("%s leads to %+v", host, w)
		}
	}
	for _, host := range []string{"idle.test", "orphan.test"} {
		if w := now().Match([]byte(host)); w == nil || w.Pick(0) != nil {
			t.Errorf("a worker without a deployment: %+v", w)
		}
	}
	if v.loaded["v3"] != nil || v.loaded["v1"] == nil {
		t.Errorf("loaded are %v: only what an active deployment weights is opened", v.loaded)
	}
	before := now().Match([]byte("b.test")).Party
	v.apply(&plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w1", "v3", 10000)}}})
	w := now().Match([]byte("b.test"))
	if w.Pick(0).UID != "v3" {
		t.Errorf("after other weights b.test leads to %+v", w)
	}
	if w.Party != before || w.Party.Tenant == nil || w.Party == now().Match([]byte("idle.test")).Party {
		t.Error("what a worker holds is not counted as its own over a change of weights")
	}
	if v.loaded["v1"] != nil || v.loaded["v3"] == nil {
		t.Errorf("loaded are %v: what was dropped is retired", v.loaded)
	}
	v.apply(&plan.Delta{Hosts: plan.Changes[plan.Host]{Put: hosts("idle.test", "w1").Put, Gone: []string{"a.test"}}})
	if now().Match([]byte("a.test")) != nil || now().Match([]byte("idle.test")).UID != "w1" {
		t.Error("a name that went is still routed, or one that moved is not")
	}
}

// A version that is not ready, or whose bundle the plan lacks, has nothing to run and holds nobody up; it runs once that changes.
func TestVersionThatCannotRun(t *testing.T) {
	v, now := served(t)
	v.apply(&plan.Delta{
		Hosts:   hosts("a.test", "w1", "b.test", "w2"),
		Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w1", "v1", 10000), worker("w2", "v2", 10000)}},
		Versions: plan.Changes[plan.Version]{Put: []*plan.Version{{UID: "v1", Assets: &plan.Assets{Bundle: "b"}},
			{UID: "v2", Ready: true, Assets: &plan.Assets{Bundle: "b"}}}},
	})
	assets := func(host string) bool { return now().Match([]byte(host)).Pick(0).Assets != nil }
	if assets("a.test") || assets("b.test") {
		t.Fatal("what cannot run is served")
	}
	v.apply(&plan.Delta{Bundles: plan.Changes[plan.Bundle]{Put: []*plan.Bundle{{Resource: "b"}}}})
	if assets("a.test") || !assets("b.test") {
		t.Error("the bundle came: only the version that is ready should run")
	}
	v.apply(&plan.Delta{Versions: plan.Changes[plan.Version]{Put: []*plan.Version{{UID: "v1", Ready: true, Assets: &plan.Assets{Bundle: "b"}}}}})
	if !assets("a.test") {
		t.Error("a version that became ready does not run")
	}
	v.apply(&plan.Delta{Versions: plan.Changes[plan.Version]{Put: []*plan.Version{{UID: "v1", Assets: &plan.Assets{Bundle: "b"}}}}})
	if assets("a.test") {
		t.Error("a version that lost its readiness runs")
	}
}

// Random deltas: what is served is what a fresh start with the plan after them would serve.
func TestDeltasServeLikeTheWholePlan(t *testing.T) {
	rng := testkit.Rand(t)
	v, now := served(t)
	p := plan.New()
	name := func(kind string, n int) string { return fmt.Sprint(kind, rng.IntN(n)) }
	for i := range uint64(400) {
		d := &plan.Delta{Index: i}
		switch rng.IntN(6) {
		case 0:
			d.Hosts = hosts(name("h", 8)+".test", name("w", 4))
		case 1:
			d.Hosts.Gone = []string{name("h", 8) + ".test"}
		case 2:
			n := rng.IntN(4)
			d.Workers.Put = []*plan.Worker{worker(fmt.Sprint("w", n), fmt.Sprintf("v%d%d", n, rng.IntN(3)), 10000)}
		case 3:
			d.Workers.Put = []*plan.Worker{worker(name("w", 4))}
		case 4:
			d.Workers.Gone = []string{name("w", 4)}
		case 5:
			d.Versions.Put = []*plan.Version{{UID: fmt.Sprintf("v%d%d", rng.IntN(4), rng.IntN(3)), Ready: rng.IntN(2) == 0}}
		}
		v.apply(d)
		p.Apply(d)
		fresh, want := served(t)
		fresh.apply(p.Delta())
		for h := range 8 {
			host := []byte(fmt.Sprintf("h%d.test", h))
			if got, want := show(now().Match(host)), show(want().Match(host)); got != want {
				t.Fatalf("after %d deltas %s leads to %s, a fresh start to %s", i+1, host, got, want)
			}
		}
		if got, want := loadedOf(v), loadedOf(fresh); got != want {
			t.Fatalf("after %d deltas loaded are %s, at a fresh start %s", i+1, got, want)
		}
	}
}

func show(w *table.Worker) string {
	if w == nil {
		return "nothing"
	}
	out := w.UID
	for _, v := range w.Versions {
		out += fmt.Sprint(" ", v.UID, v.Weight)
	}
	return out
}

func loadedOf(v *versions) string {
	var out []string
	for uid, lv := range v.loaded {
		out = append(out, fmt.Sprint(uid, lv.err == nil))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// One change of weights among many workers: the cost must not depend on how many there are.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			v, _ := served(b)
			d := &plan.Delta{}
			for i := range n {
				w, ver := fmt.Sprint("w", i), fmt.Sprint("v", i)
				d.Hosts.Put = append(d.Hosts.Put, hosts(fmt.Sprintf("h%d.test", i), w).Put...)
				d.Workers.Put = append(d.Workers.Put, worker(w, ver, 10000))
				d.Versions.Put = append(d.Versions.Put, ready(ver, ver+"b").Put...)
			}
			v.apply(d)
			one := [2]*plan.Delta{{}, {}}
			one[0].Workers.Put = []*plan.Worker{worker("w7", "v7b", 10000)}
			one[1].Workers.Put = []*plan.Worker{worker("w7", "v7", 10000)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				v.apply(one[i%2])
			}
		})
	}
}
