package control

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"edged/control/form"
	"edged/control/seal"
	"edged/internal/fault"
)

// A fresh key that could not be given to most voters seals nothing: what is accepted after the rotation has failed does not hang on the
// disk of one node. The next rotation takes another, and a leader that comes back forgets the one that came to nothing.
func TestAKeyThatFewKeepSealsNothing(t *testing.T) {
	var f *fleet
	var refuse atomic.Bool
	f = newFleet(t, func(name string, o *Options) {
		o.Fleet.Keys = func(context.Context) error {
			if refuse.Load() {
				return errors.New("no keys are taken now")
			}
			return f.nodes[name].c.TakeRing(f.nodes[f.nodes[name].c.leader()].c.secrets.ring.File())
		}
	})
	first := f.found(t.TempDir())
	f.grow("n-2")
	f.grow("n-3")
	old := first.c.secrets.ring.Current()
	worker := first.made(form.ModuleWorkerURL, "w", spec{})
	sealedWith := func(by *member, uid string) string {
		return seal.Box(by.c.state.Resource(uid).Secrets.Boxes[0]).KeyID()
	}
	version := func(by *member, name string) string {
		t.Helper()
		return by.succeeded(by.createWith(form.WorkerVersionURL, name, by.secretSpec(worker, name, "KEY"), spec{"KEY": "value"}))
	}
	leader := f.leader()
	before := version(leader, "v1")

	refuse.Store(true)
	if _, err := leader.c.RotateKey(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Fatalf("without the others: %v", err)
	}
	staged := leader.c.secrets.ring.Newest()
	if staged == old || leader.c.markedKey() != old {
		t.Errorf("the staged key is %s, %s seals", staged, leader.c.markedKey())
	}
	if during := version(leader, "v2"); sealedWith(leader, during) != old || sealedWith(leader, before) != old {
		t.Error("a key seals that one voter keeps")
	}

	leader.stop()
	f.start(leader)
	f.poll(leader.c.Ready)
	refuse.Store(false)
	for f.leader() != leader {
		if err := f.leader().c.HandOver(); err != nil {
			t.Log(err)
		}
	}
	f.poll(func() bool { return !slices.Contains(leader.c.secrets.ring.IDs(), staged) })
	if after := version(leader, "v3"); sealedWith(leader, after) != old {
		t.Error("a restart has gone on with the key that one voter keeps")
	}

	if _, err := leader.c.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := leader.c.secrets.ring.IDs()
	if len(now) != 1 || now[0] == old || now[0] == staged || leader.c.markedKey() != now[0] || sealedWith(leader, before) != now[0] {
		t.Errorf("after the rotation the keys are %v, %s seals", now, leader.c.markedKey())
	}
	leader.stop()
	next := f.leader(f.others(leader)...)
	if late := version(next, "v4"); sealedWith(next, late) != now[0] {
		t.Error("the next leader seals with another key than the last")
	}
}
