package kv

import (
	"fmt"
	"testing"
	"time"

	"edged/kv/replica"
)

// Tombstones go on all members once all have them, and stay everywhere while one is away.
func TestTombstonesGoInAFleet(t *testing.T) {
	fl := newFleet(t, 3, func(_ int, f *fleetNode) { f.opt.Grace = time.Millisecond })
	kept := func(f *fleetNode) (n int) {
		if err := f.ledger.eachRecord(f.db, func(_, _ string, _ replica.Record) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	gone := func() bool {
		for _, f := range fl.nodes {
			if f.Store == nil {
				continue
			}
			if err := f.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if kept(f) > 0 {
				return false
			}
		}
		return true
	}
	for i := range 20 {
		mustPut(t, fl.nodes[i%3].kv(), fmt.Sprint(i), "v", PutOptions{})
	}
	fl.equalSoon(t)
	for i := range 20 {
		if err := fl.nodes[(i+1)%3].kv().Delete(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, gone)

	fl.nodes[2].stop()
	mustPut(t, fl.nodes[0].kv(), "k", "v", PutOptions{})
	if err := fl.nodes[0].kv().Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	origin, seq := fl.nodes[0].Position()
	if err := fl.nodes[1].Wait(t.Context(), origin, seq); err != nil {
		t.Fatal(err)
	}
	if gone() || kept(fl.nodes[0]) != 1 || kept(fl.nodes[1]) != 1 {
		t.Errorf("a tombstone went although a member is away: %d and %d are kept", kept(fl.nodes[0]), kept(fl.nodes[1]))
	}
	fl.nodes[2].start(t)
	fl.introduce(t)
	eventually(t, gone)
	for _, f := range fl.nodes {
		if n := f.Lag().Resurrected; n != 0 {
			t.Errorf("%s counts %d deletes that came back", f.name, n)
		}
	}
}
