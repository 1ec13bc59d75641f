package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/plan"
	"edged/internal/testkit"
	"edged/sandbox/event"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// busyCode is code whose contexts go on until they are told to end, and take a while for it.
type busyCode struct {
	leave chan struct{} // closed: its contexts end by themselves
	err   error         // of Retire; set before it can be called

	mu                 sync.Mutex // guards the field below
	retired, cancelled time.Time  // when Retire was called, and when the contexts were cancelled
}

func (c *busyCode) times() (retired, cancelled time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retired, c.cancelled
}

func (c *busyCode) note(at *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*at = time.Now()
}

func (c *busyCode) Serve(context.Context, *event.Request, *event.Response) error { return nil }

func (c *busyCode) Retire(ctx context.Context) error {
	c.note(&c.retired)
	select {
	case <-c.leave:
	case <-ctx.Done():
		c.note(&c.cancelled)
		time.Sleep(3 * time.Second) // physically stopping them takes a moment
	}
	return c.err
}

// switched is a node whose worker was switched from v1, whose contexts go on, to v2. It is called inside a bubble.
func switched(t *testing.T, base context.Context, unproven error) (v *versions, old *busyCode) {
	t.Helper()
	v, _ = served(t)
	v.base = base
	var mu sync.Mutex // versions are opened side by side
	opened := map[string]*busyCode{}
	v.run = func(pv *plan.Version, _ *plan.Bundle) (code, error) {
		mu.Lock()
		defer mu.Unlock()
		opened[pv.UID] = &busyCode{leave: make(chan struct{}), err: unproven}
		return opened[pv.UID], nil
	}
	d := &plan.Delta{Bundles: plan.Changes[plan.Bundle]{Put: []*plan.Bundle{{Resource: "b"}}}}
	d.Versions.Put = []*plan.Version{{UID: "v1", Worker: "w", Ready: true, Bundle: "b"}, {UID: "v2", Worker: "w", Ready: true, Bundle: "b"}}
	d.Workers.Put = []*plan.Worker{worker("w", "v1", 10000)}
	v.apply(d)
	if !v.inUse("v1") || v.inUse("v2") {
		t.Fatal("only the weighted version is open")
	}
	v.apply(&plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w", "v2", 10000)}}})
	return v, opened["v1"]
}

// worker-deployment §4: new work follows a switch at once; what still runs on the dropped version is cancelled 15 minutes after it,
// and the version is in use, so that it cannot be deleted, until the end of its contexts is confirmed.
func TestDroppedVersionDrainsForFifteenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		v, old := switched(t, t.Context(), nil)
		time.Sleep(15*time.Minute - time.Second)
		synctest.Wait()
		if retired, cancelled := old.times(); retired != start || !cancelled.IsZero() || !v.inUse("v1") {
			t.Errorf("a second before the limit: retired %v, cancelled %v, in use %t", retired, cancelled, v.inUse("v1"))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, cancelled := old.times(); cancelled.Sub(start) != 15*time.Minute {
			t.Errorf("cancelled after %v", cancelled.Sub(start))
		}
		if !v.inUse("v1") {
			t.Error("a cancelled context counts as stopped before its end is confirmed")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if v.inUse("v1") || !v.inUse("v2") {
			t.Error("after the confirmed end the dropped version is still in use, or the new one is not")
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
}

// A plan that cannot be taken into use changes nothing of what is served; the next that can catches up with all of it: versions that
// were dropped meanwhile are retired then, those that have weight again are not, and workers are found as they stand.
func TestDroppedByAPlanThatWasNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, old := switched(t, t.Context(), nil)
		close(old.leave)
		d := &plan.Delta{Hosts: hosts("Not Canonical", "w")}
		d.Versions.Put = []*plan.Version{{UID: "v3", Worker: "x", Ready: true, Bundle: "b"}}
		d.Workers.Put = []*plan.Worker{worker("w", "v1", 10000), worker("x", "v3", 10000)}
		v.apply(d)
		if !v.inUse("v2") || v.worker("x") != nil {
			t.Error("what still serves was retired, or what does not serve is found")
		}
		v.apply(&plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("x")}}}) // still broken: v3 was never served
		v.apply(&plan.Delta{Hosts: plan.Changes[plan.Host]{Gone: []string{"Not Canonical"}}})
		if w := v.worker("w"); w == nil || w.Pick(0).UID != "v1" || v.worker("x") == nil {
			t.Errorf("the worker is found as %+v", w)
		}
		if !v.inUse("v1") || v.loaded["v2"] != nil || v.loaded["v3"] != nil {
			t.Errorf("loaded are %v, want v1 alone", v.loaded)
		}
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if !v.inUse("v1") || v.inUse("v2") || v.inUse("v3") {
			t.Errorf("in use: %t %t %t, want v1 alone", v.inUse("v1"), v.inUse("v2"), v.inUse("v3"))
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
}

// A version whose contexts end by themselves is free at once; one that is dropped, taken back and dropped again is in use until
// both runs have ended.
func TestDroppedVersionEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, old := switched(t, t.Context(), nil)
		back := &plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w", "v1", 10000)}}}
		v.apply(back)
		v.apply(&plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w", "v2", 10000)}}})
		second := v.serving.plan.Workers["w"]
		if second.Weights[0].Version != "v2" || !v.inUse("v1") {
			t.Fatal("v1 is not draining")
		}
		close(old.leave)
		synctest.Wait()
		if !v.inUse("v1") {
			t.Error("the first run ended, the second goes on: v1 is in use")
		}
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if v.inUse("v1") {
			t.Error("both runs have ended: v1 is free")
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
}

// An end that is not confirmed never counts as one.
func TestUnconfirmedEndIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := switched(t, t.Context(), errors.New("a thread did not answer"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if !v.inUse("v1") {
			t.Error("a version whose end is not confirmed counts as stopped")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := v.retire(ctx, []string{"v1"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a retirement without proof ends with %v", err)
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
}

// worker-deployment §4, delete: what runs is cancelled after a short grace, also what an earlier switch left draining; the
// retirement returns when the end is confirmed. A restart owns a version anew that its last plan weights: it is in use from
// then until the next plan dropped it and its contexts ended.
func TestRetirementOfADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := switched(t, t.Context(), nil)
		v.apply(&plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w")}}})
		start := time.Now()
		if err := v.retire(t.Context(), []string{"v1", "v2"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != deleteGrace+3*time.Second || v.inUse("v1") || v.inUse("v2") {
			t.Errorf("retired after %v, in use: %t %t", took, v.inUse("v1"), v.inUse("v2"))
		}
		last := plan.New()
		last.Apply(v.serving.plan.Delta())
		last.Workers["w"] = worker("w", "v1", 10000)
		again, _ := served(t)
		again.base, again.run = t.Context(), func(*plan.Version, *plan.Bundle) (code, error) { return &busyCode{leave: make(chan struct{})}, nil }
		again.apply(last.Delta())
		if !again.inUse("v1") {
			t.Error("a restarted node does not own what its last plan weights")
		}
		again.apply(&plan.Delta{Workers: plan.Changes[plan.Worker]{Put: []*plan.Worker{worker("w", "v2", 10000)}}})
		if !again.inUse("v1") {
			t.Error("a version that drains is free")
		}
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if again.inUse("v1") {
			t.Error("a drained version is not free")
		}
		for _, x := range []*versions{v, again} {
			if err := x.close(); err != nil {
				t.Error(err)
			}
		}
	})
}
