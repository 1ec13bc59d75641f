package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// stopper counts the wishes to stop: the signals this process gets, and those its supervisor got. Signals often reach
// both (a terminal and a service manager send them to the whole group), so the larger count is the one that holds. The
// first wish ends the context, the second calls atOnce (node-surface §2).
type stopper struct {
	ctx    context.Context // base of the command's run
	cancel context.CancelFunc
	caught chan os.Signal // capacity 2: more signals than two say nothing new

	mu     sync.Mutex // guards the fields below
	own    int
	passed int
	atOnce func()
}

func newStopper() *stopper {
	ctx, cancel := context.WithCancel(context.Background())
	return &stopper{ctx: ctx, cancel: cancel, caught: make(chan os.Signal, 2), atOnce: func() { os.Exit(exitFailed) }}
}

// listen counts this process's signals until close.
func (s *stopper) listen() {
	signal.Notify(s.caught, syscall.SIGINT, syscall.SIGTERM)
	go func() { // ends with close
		for range s.caught {
			s.count(&s.own)
		}
	}()
}

func (s *stopper) close() {
	signal.Stop(s.caught)
	close(s.caught)
	s.cancel()
}

// wish begins a stop that no signal asks for; it is not counted, so that a signal afterwards is the first.
func (s *stopper) wish() { s.cancel() }

// pass counts a signal that the supervisor got.
func (s *stopper) pass() { s.count(&s.passed) }

func (s *stopper) count(n *int) {
	s.mu.Lock()
	before := max(s.own, s.passed)
	*n++
	wishes, atOnce := max(s.own, s.passed), s.atOnce
	s.mu.Unlock()
	if wishes == before {
		return
	}
	if s.cancel(); wishes == 2 {
		atOnce()
	}
}

// onSecond sets what the second wish does in place of ending the process.
func (s *stopper) onSecond(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atOnce = do
}
