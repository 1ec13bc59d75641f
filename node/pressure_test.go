package node

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"edged/node/machine"
)

const gib = 1 << 30

// What is left decides, a part of the limit or a fixed amount; a level ends later than it begins.
func TestPressure(t *testing.T) {
	for _, tt := range []struct {
		was  pressure
		m    machine.Memory
		want pressure
	}{
		{pressureShut, machine.Memory{}, pressureNone},
		{pressureNone, machine.Memory{Limit: gib, Available: gib / 5, Own: gib / 2}, pressureNone},
		{pressureNone, machine.Memory{Limit: gib, Available: gib / 5, Own: gib / 2, Stalled: 25}, pressureShed},
		{pressureNone, machine.Memory{Limit: gib, Available: gib / 8, Own: gib / 2}, pressureShed},
		{pressureNone, machine.Memory{Limit: gib, Available: gib / 16, Own: gib / 2}, pressureTight},
		{pressureNone, machine.Memory{Limit: gib, Available: gib / 32, Own: gib / 2}, pressureShut},
		{pressureNone, machine.Memory{Limit: gib, Available: gib / 32, Own: gib / 32}, pressureTight}, // others have it all
		{pressureNone, machine.Memory{Limit: 256 * gib, Available: 3 * gib, Own: 100 * gib}, pressureNone},
		{pressureNone, machine.Memory{Limit: 256 * gib, Available: gib / 4, Own: 100 * gib}, pressureShut},
		{pressureShed, machine.Memory{Limit: gib, Available: gib * 17 / 100, Own: gib / 2}, pressureShed},
		{pressureNone, machine.Memory{Limit: gib, Available: gib * 17 / 100, Own: gib / 2}, pressureNone},
		{pressureShut, machine.Memory{Limit: gib, Available: gib * 45 / 1000, Own: gib / 2}, pressureShut},
		{pressureShut, machine.Memory{Limit: gib, Available: gib * 6 / 100, Own: gib / 2}, pressureTight},
	} {
		if got := tt.was.next(tt.m); got != tt.want {
			t.Errorf("%v after %+v: %v, want %v", tt.was, tt.m, got, tt.want)
		}
	}
}

// Idle sandboxes go first and for as long as it takes, then new ones, then new work; all of it comes back by itself.
func TestMemoryWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left, shed atomic.Int64
		var tight, shut atomic.Bool
		left.Store(gib / 2)
		w := &memoryWatch{read: func() machine.Memory { return machine.Memory{Limit: gib, Available: left.Load(), Own: gib / 2} },
			shed: func() int { shed.Add(1); return 1 }, tight: tight.Store, shut: shut.Store, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.run(ctx) }() // ends below
		check := func(what string, free int64, wantShed, wantTight, wantShut bool) {
			t.Helper()
			left.Store(free)
			shed.Store(0)
			time.Sleep(3 * pressureLook)
			synctest.Wait()
			if (shed.Load() >= 2) != wantShed || tight.Load() != wantTight || shut.Load() != wantShut || (w.problem() != "") != wantShut {
				t.Errorf("%s: shed %d times, tight %t, shut %t, %q", what, shed.Load(), tight.Load(), shut.Load(), w.problem())
			}
		}
		check("enough", gib/2, false, false, false)
		check("less", gib/8, true, false, false)
		check("little", gib/16, true, true, false)
		check("nothing", gib/64, true, true, true)
		if !strings.Contains(w.problem(), "16 MiB of memory are left of 1024") {
			t.Errorf("readyz says %q", w.problem())
		}
		check("little again", gib/16, true, true, false)
		check("enough again", gib/2, false, false, false)
		check("nothing again", gib/64, true, true, true)
		stop()
		if err := <-done; err != nil || tight.Load() || shut.Load() {
			t.Errorf("stopped: %v, tight %t, shut %t", err, tight.Load(), shut.Load())
		}
	})
}
