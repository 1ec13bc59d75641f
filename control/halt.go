package control

import (
	"context"
	"sync"

	"edged/internal/fault"
)

// halt is why this program carries out no more of the log: something in it was written by a newer one. It is for good, until the newer
// program is started: what stands behind it cannot be carried out without it.
type halt struct {
	once *sync.Once
	done chan struct{} // closed once err is set
	err  *error
}

func newHalt() halt { return halt{new(sync.Once), make(chan struct{}), new(error)} }

func (h halt) set(err error) {
	h.once.Do(func() {
		*h.err = err
		close(h.done)
	})
}

// reason is nil while the log is carried out.
func (h halt) reason() error {
	select {
	case <-h.done:
		return *h.err
	default:
		return nil
	}
}

// Halted says why this node takes no part in the control room for as long as this program runs, nil if it does: the log holds what a newer
// program wrote. What was served by then is served on. The error is a Conflict.
func (c *Control) Halted() error {
	if err := c.machine.halt.reason(); err != nil {
		return because(errHalted, err)
	}
	return nil
}

var errHalted = fault.New(fault.Conflict, "control", "the control log was written by a newer edged than this one, so this node takes no part in the "+
	"control room and serves its last plan: run the newer edged on it")

// stopVoting takes this voter out of the log's business: it neither votes nor leads with a state that lacks commands. It returns when ctx
// is done.
func (c *Control) stopVoting(ctx context.Context) error {
	c.opt.Log.Error("this node takes no part in the control room", "err", c.Halted(), "do", "upgrade this node to the program that its fellows run")
	if err := c.questions.stop(c.raft.Load()); err != nil {
		c.opt.Log.Error("this voter did not leave the control log's business", "err", err, "do", fault.ReportBug)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
