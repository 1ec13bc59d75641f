package sandbox

import (
	"testing"

	"edged/sandbox/event"
)

// For memory sandboxes without work go, the least used first; what works is not touched, and the version serves on.
func TestShed(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	slow := openWorker(t, s, fetcher(`console.log('begun'); await new Promise(r => setTimeout(r, 100)); return new Response('done')`))
	quick := openWorker(t, s, fetcher(`return new Response('quick')`))
	done := make(chan error, 1)
	go func() { done <- serveErr(slow) }()
	l.await(t, "begun")
	text(t, quick)
	for _, want := range []int{1, 0} { // quick's one goes, and there is no other without work
		if n := s.Shed(); n != want {
			t.Errorf("%d were closed, want %d", n, want)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("the one at work: %v", err)
	}
	idle(t, slow)
	if live, _ := s.Instances(); live != 1 {
		t.Errorf("%d sandboxes are left", live)
	}
	if got := text(t, quick); got != "quick" {
		t.Errorf("got %q", got)
	}
}

// Those that can run at once are the brief too: while memory is short they are not refused for want of a sandbox.
func TestTightCountsTheBrief(t *testing.T) {
	var l logs
	s := newBox(t, Options{MaxRunning: 1, MaxBrief: 1, Console: l.add})
	waits := openWorker(t, s, fetcher(`console.log('begun'); await new Promise(r => setTimeout(r, 100)); return new Response('done')`))
	brief := openWorker(t, s, fetcher(`return new Response('brief')`))
	s.SetTight(true)
	done := make(chan error, 1)
	go func() { done <- serveErr(waits) }()
	l.await(t, "begun")
	if got := text(t, brief); got != "brief" {
		t.Errorf("got %q", got)
	}
	if live, _ := s.Instances(); live != 2 {
		t.Errorf("%d sandboxes", live)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// While memory is short no more sandboxes are made than can run at once: a version takes what another can miss.
func TestTight(t *testing.T) {
	var l logs
	s := newBox(t, Options{MaxRunning: 1, Console: l.add})
	slow := openWorker(t, s, fetcher(`console.log('begun'); await new Promise(r => setTimeout(r, 100)); return new Response('done')`))
	quick := openWorker(t, s, fetcher(`return new Response('quick')`))
	text(t, quick)
	s.SetTight(true)
	done := make(chan error, 1)
	go func() { done <- serveErr(slow) }() // in quick's sandbox, mapped anew
	l.await(t, "begun")
	if live, _ := s.Instances(); live != 1 {
		t.Errorf("%d sandboxes", live)
	}
	wantErr(t, serveErr(quick), event.ErrOverloaded) // the only one waits for its timer
	s.SetTight(false)
	if got := text(t, quick); got != "quick" {
		t.Errorf("afterwards: %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
