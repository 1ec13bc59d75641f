package feed

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/plan"
)

func gatePlan() *plan.Delta {
	d := &plan.Delta{Index: 5}
	d.Hosts.Put = []*plan.Host{{Name: "a.edge.test", Worker: "w", Endpoint: true}, {Name: "shop.test", Worker: "w"}}
	d.Versions.Put = []*plan.Version{{UID: "plain", Ready: true}, {UID: "secret", Ready: true, Secrets: map[string][]byte{"KEY": {1}}}}
	d.Workers.Put = []*plan.Worker{{UID: "w"}}
	d.Crons.Put = []*plan.Cron{{UID: "c"}}
	return d
}

// node-surface §2, --revalidate-after: what can be revoked is withheld once the node was cut off for longer, all else is served without
// limit; what comes meanwhile is withheld too, and everything is back when the node is not cut off any more.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		since, cut := time.Now(), false
		state := func() (time.Time, bool) { mu.Lock(); defer mu.Unlock(); return since, cut }
		set := func(s time.Time, c bool) { mu.Lock(); defer mu.Unlock(); since, cut = s, c }
		got := plan.New()
		g := NewGate(15*time.Minute, state, func(d *plan.Delta) { mu.Lock(); defer mu.Unlock(); got.Apply(d) }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = g.Run(ctx) })
		want := plan.New()
		use := func(d *plan.Delta) { want.Apply(d); g.Use(d) }
		use(gatePlan())
		open := func(what string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the node has %+v, want all", what, got.To(want))
			}
		}
		closed := func(what string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			rest := *want
			rest.Hosts, rest.Versions = map[string]*plan.Host{"a.edge.test": want.Hosts["a.edge.test"]}, map[string]*plan.Version{}
			for uid, v := range want.Versions {
				c := *v
				c.Ready = c.Ready && len(c.Secrets) == 0
				rest.Versions[uid] = &c
			}
			if !reflect.DeepEqual(got, &rest) {
				t.Errorf("%s: the node has %+v more or less than it may", what, got.To(&rest))
			}
		}
		open("connected")
		set(time.Now(), true)
		time.Sleep(15*time.Minute - time.Second)
		open("cut off for less")
		time.Sleep(3 * time.Second)
		closed("cut off for longer")
		more := &plan.Delta{Index: 6}
		more.Hosts.Put = []*plan.Host{{Name: "other.test", Worker: "w"}}
		more.Versions.Put = []*plan.Version{{UID: "late", Ready: true, Secrets: map[string][]byte{"KEY": {2}}}}
		more.Hosts.Gone = []string{"shop.test"}
		use(more)
		closed("a change while cut off")
		set(time.Now(), false)
		time.Sleep(2 * time.Second)
		open("connected again")
		if again := NewGate(time.Minute, func() (time.Time, bool) { return time.Now().Add(-time.Hour), true }, func(d *plan.Delta) {
			if len(d.Hosts.Put) != 1 {
				t.Errorf("a restart while cut off serves %d hosts, want the endpoint alone", len(d.Hosts.Put))
			}
		}, slog.New(slog.DiscardHandler)); again != nil {
			again.Use(gatePlan())
		}
		cancel()
		run.Wait()
	})
}

// Closed withholds what can be revoked and changes nothing of what it is given.
func TestClosed(t *testing.T) {
	d := gatePlan()
	c := Closed(d)
	if !reflect.DeepEqual(d, gatePlan()) {
		t.Error("Closed changed its argument")
	}
	if len(c.Hosts.Put) != 1 || !c.Hosts.Put[0].Endpoint || !reflect.DeepEqual(c.Hosts.Gone, []string{"shop.test"}) {
		t.Errorf("hosts %+v: the custom domain alone goes", c.Hosts)
	}
	if !c.Versions.Put[0].Ready || c.Versions.Put[1].Ready {
		t.Errorf("versions %+v: only the one with secrets is not ready", c.Versions.Put)
	}
	if !reflect.DeepEqual(c.Workers, d.Workers) || !reflect.DeepEqual(c.Crons, d.Crons) || c.Index != d.Index {
		t.Error("something else was changed")
	}
}

// docs/fleet.md, Revocation: a node that was removed serves nothing from then on, whether it was cut off or not and whatever still comes;
// its names stay routed. The order of the removal and the last change does not matter.
func TestGateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := gatePlan()
		first.Consumers.Put = []*plan.Consumer{{UID: "q"}}
		got := plan.New()
		g := NewGate(time.Minute, func() (time.Time, bool) { return time.Now(), false }, got.Apply, slog.New(slog.DiscardHandler))
		g.Use(first)
		g.End(func() *plan.Plan { return got })
		late := &plan.Delta{Index: 6}
		late.Versions.Put = []*plan.Version{{UID: "late", Ready: true}}
		g.Use(late)
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = g.Run(ctx) })
		time.Sleep(2 * gateEvery)
		cancel()
		run.Wait()
		for uid, v := range got.Versions {
			if v.Ready {
				t.Errorf("version %s is ready", uid)
			}
		}
		if len(got.Versions) != 3 || len(got.Hosts) != 2 || len(got.Crons) != 0 || len(got.Consumers) != 0 {
			t.Errorf("it has %+v", got)
		}
		if !first.Versions.Put[0].Ready || len(first.Consumers.Put) != 1 {
			t.Error("what others share was changed")
		}
	})
}
