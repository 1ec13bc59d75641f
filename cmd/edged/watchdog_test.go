package main

import (
	"slices"
	"testing"
	"time"
)

// A child is frozen after ten looks in a row without a heartbeat, and never before.
func TestWatchdogLooks(t *testing.T) {
	var w watchdog
	for round := range 3 {
		for i := range looks - 1 {
			if w.look(false) {
				t.Fatalf("round %d: frozen after %d looks", round, i+1)
			}
		}
		if round < 2 && w.look(true) {
			t.Fatal("a beating child is frozen")
		}
	}
	if !w.look(false) {
		t.Error("not frozen after ten silent looks")
	}
}

// node-surface §1: a start that fails and an orderly stop pass their exit codes through; all else is a crash, restarted with back-off.
func TestWatchdogVerdicts(t *testing.T) {
	const minute = time.Minute
	for _, tt := range []struct {
		name   string
		served bool // a child before it
		stop   bool
		end    childEnd
		again  bool
		code   int
	}{
		{"wrong configuration", false, false, childEnd{code: 2}, false, 2},
		{"failed start", false, false, childEnd{code: 1}, false, 1},
		{"killed before it served", false, false, childEnd{code: -1}, true, 0},
		{"stopped by itself", false, false, childEnd{code: 0, ready: true, served: minute}, false, 0},
		{"orderly stop", false, true, childEnd{code: 0, ready: true}, false, 0},
		{"stop that failed", false, true, childEnd{code: 1, ready: true}, false, 1},
		{"killed while it stopped", false, true, childEnd{code: -1, ready: true}, false, 1},
		{"panic after it served", false, false, childEnd{code: 2, ready: true}, true, 0},
		{"killed", false, false, childEnd{code: -1, ready: true}, true, 0},
		{"failed restart", true, false, childEnd{code: 1}, true, 0},
	} {
		w := watchdog{served: tt.served, stop: tt.stop}
		if again, _, code := w.ended(tt.end); again != tt.again || code != tt.code {
			t.Errorf("%s: restart %t, code %d; want %t, %d", tt.name, again, code, tt.again, tt.code)
		}
	}
}

// Restarts come slower and slower, until one has served for a minute.
func TestWatchdogBacksOff(t *testing.T) {
	var w watchdog
	var got []time.Duration
	for range 12 {
		_, pause, _ := w.ended(childEnd{code: -1, ready: true, served: time.Second})
		got = append(got, pause)
	}
	if !slices.IsSorted(got) || got[0] != backOffFirst || got[11] != backOffMost {
		t.Errorf("pauses: %v", got)
	}
	if _, pause, _ := w.ended(childEnd{code: -1, ready: true, served: steadyService}); pause != backOffFirst {
		t.Errorf("after a minute of service: %v", pause)
	}
}

// node-surface §2: a signal that reaches supervisor and child counts once; the second wish ends at once.
func TestStopperCountsOnce(t *testing.T) {
	s := newStopper()
	ended := 0
	s.onSecond(func() { ended++ })
	s.count(&s.own)
	s.pass()
	if s.ctx.Err() == nil || ended != 0 {
		t.Fatalf("after one signal to both: %v, ended %d times", s.ctx.Err(), ended)
	}
	s.count(&s.own)
	s.pass()
	s.pass()
	if ended != 1 {
		t.Errorf("ended %d times, want once", ended)
	}
}
