package feed

import (
	"runtime"
	"testing"

	"edged/control/plan"
)

// A whole plan that is still being sent is not given to those who come in another epoch, whose indexes may be the same.
func TestSnapshotIsOfOneEpoch(t *testing.T) {
	s := newServer(t, ServerOptions{})
	of := func(epoch uint64, name string) *snapshot {
		t.Helper()
		d := &plan.Delta{Index: 5}
		d.Workers.Put = []*plan.Worker{{UID: "w", Name: name}}
		publish(t, s, epoch, d)
		snap, err := s.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	first := of(1, "before")
	if again, err := s.snapshot(); err != nil || again != first {
		t.Errorf("two who ask at the same time are not sent the same bytes: %v", err)
	}
	if second := of(2, "after"); second == first || string(second.frames) == string(first.frames) {
		t.Error("the plan of the epoch before is sent")
	}
	runtime.KeepAlive(first) // somebody is still being sent it
}
