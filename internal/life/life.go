// Package life starts the parts of a node bottom-up and stops them in reverse, each within its own time.
//
//	life.go   Part, Stack
//
// Invariants: a part's Run is over before its Close begins; a part is told to stop only after every part above it has
// stopped; nothing that Stack.Run started outlives it, unless a part overran its time, and then the error says so.
//
// Not here: what the parts are. Package node lists them.
package life

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Part is one piece of a node. Run blocks until its context is done and everything it started has ended; a Run that
// returns before that takes the whole stack down. Either func may be nil.
type Part struct {
	Name  string
	Run   func(ctx context.Context) error
	Close func() error
	Stop  time.Duration // how long Run may take to end after its context was cancelled, 0 means 10 s
}

// Stack is a list of parts, lowest first. Not safe for concurrent use; Run once.
type Stack struct{ parts []Part }

// Push puts a part on top of those pushed before.
func (s *Stack) Push(p Part) {
	if p.Stop == 0 {
		p.Stop = 10 * time.Second
	}
	s.parts = append(s.parts, p)
}

type running struct {
	Part
	cancel context.CancelFunc
	done   chan error // capacity 1, closed by nobody: one value
}

// Run starts every part in order and blocks until ctx is done or a part ends by itself. Then it stops the parts from the
// top down: cancel, wait for Run to return, Close. It returns all that went wrong, nil after an orderly stop.
func (s *Stack) Run(ctx context.Context) error {
	ended := make(chan int, len(s.parts)) // which part's Run returned; room for all, so no sender waits
	live := make([]*running, len(s.parts))
	for i, p := range s.parts {
		// Not derived from ctx: a part is stopped in its turn, not when the node is told to stop.
		pctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r := &running{Part: p, cancel: cancel, done: make(chan error, 1)}
		live[i] = r
		go func() { // ends with r.Run; Run waits for it below, up to r.Stop
			var err error
			if r.Part.Run != nil {
				err = r.Part.Run(pctx)
			} else {
				<-pctx.Done()
			}
			r.done <- err
			ended <- i
		}()
	}
	var errs []error
	select {
	case <-ctx.Done():
	case i := <-ended:
		err := <-live[i].done
		live[i].done <- nil // seen; the wait below must not block
		if err == nil {
			err = errors.New("ended before it was told to")
		}
		errs = append(errs, fmt.Errorf("%s: %w", live[i].Name, err))
	}
	for i := len(live) - 1; i >= 0; i-- {
		errs = append(errs, live[i].stop())
	}
	return errors.Join(errs...)
}

func (r *running) stop() error {
	r.cancel()
	limit := time.NewTimer(r.Stop)
	defer limit.Stop()
	var err error
	select {
	case err = <-r.done:
		if errors.Is(err, context.Canceled) {
			err = nil
		}
	case <-limit.C:
		// Closing under a running part could corrupt what it uses.
		return fmt.Errorf("%s: still running %v after it was told to stop", r.Name, r.Stop)
	}
	if r.Close != nil {
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	return nil
}
