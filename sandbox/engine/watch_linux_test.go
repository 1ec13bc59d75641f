//go:build linux && (amd64 || arm64)

package engine

import (
	"testing"

	"edged/internal/testkit"
)

// settled returns a clone whose last reset knew every private page, and the function of its image.
func settled(t *testing.T) (in *Instance, run func()) {
	img := image(t, testEngine(t), "globalThis.keep = []; () => { keep.push({ a: 1, b: [2] }); return keep.length }", SnapshotOptions{MemoryBytes: 16 << 20})
	in = clone(t, img)
	run = func() {
		t.Helper()
		if v, err := in.Call(img.Roots()[0], Undefined); err != nil || v != Int(1) {
			t.Fatalf("the guest sees %v, %v: something of an earlier invocation is left", in.Text(v), err)
		}
	}
	for range 3 {
		in.Watch()
		run()
		restore(t, in)
	}
	return in, run
}

func restore(t *testing.T, in *Instance) {
	t.Helper()
	if err := in.Reset(); err != nil {
		t.Fatal(err)
	}
	if in.watch.on {
		t.Fatal("the watch outlives the reset")
	}
	if diff := differences(in); diff != "" {
		t.Fatal(diff)
	}
}

// A watched invocation that writes what the one before wrote is reset without asking the kernel.
func TestWatchSparesTheScan(t *testing.T) {
	if testEngine(t).ResetMethod() == ResetWhole {
		t.Skip("written pages cannot be found on this machine")
	}
	in, run := settled(t)
	before := in.stats.Scans
	for range 100 {
		in.Watch()
		run()
		restore(t, in)
	}
	// The thread may have faults that are not the guest's, say of a growing Go stack.
	if scans := in.stats.Scans - before; scans > 20 {
		t.Errorf("%d of 100 resets asked the kernel", scans)
	}
}

// Whatever is written, watched or not, in pages that no invocation wrote before, the next one does not see it.
func TestWatchMissesNothing(t *testing.T) {
	if testEngine(t).ResetMethod() == ResetWhole {
		t.Skip("written pages cannot be found on this machine")
	}
	rng := testkit.Rand(t)
	spoil := func(in *Instance) { // a page somewhere, most likely one that is not private yet
		in.mem.cur[rng.IntN(len(in.mem.cur))] ^= 0xFF
	}
	for name, invocation := range map[string]func(in *Instance, run func()){
		"watched":           func(in *Instance, run func()) { in.Watch(); run(); spoil(in) },
		"not watched":       func(in *Instance, run func()) { run(); spoil(in) },
		"watched to a wait": func(in *Instance, run func()) { in.Watch(); run(); in.Unwatch(); spoil(in) },
		"watched too late":  func(in *Instance, run func()) { run(); spoil(in); in.Watch() },
		"watched twice":     func(in *Instance, run func()) { in.Watch(); run(); in.Unwatch(); spoil(in); in.Watch() },
		"on another thread": func(in *Instance, run func()) {
			in.Watch()
			run()
			done := make(chan struct{})
			go func() { spoil(in); close(done) }() // waited for below
			<-done
			in.Unwatch() // as a guest that waits does
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, run := settled(t)
			for range 40 {
				invocation(in, run)
				restore(t, in)
			}
		})
	}
}
