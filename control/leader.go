package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"edged/internal/fault"
)

// lead does the work that only the leader of the log does, for as long as this node is it, each time anew. It returns when ctx is
// done, or with what keeps the node from doing that work.
func (c *Control) lead(ctx context.Context) error {
	failed := make(chan error, 1)
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-failed:
			return err
		case <-c.machine.halt.done:
			end()
			end = func() {}
			return c.stopVoting(ctx)
		case leads := <-c.raft.Load().LeaderCh(): // one that was missed is told by the next
			end()
			end = func() {}
			if leads {
				end = c.begin(ctx, failed)
			}
		}
	}
}

// begin starts a term of leadership. end ends it and returns when none of its work is left.
func (c *Control) begin(ctx context.Context, failed chan<- error) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var job sync.WaitGroup
	job.Go(func() {
		if err := c.serveTerm(ctx); err != nil && ctx.Err() == nil && !lostLeadership(err) {
			failed <- err // the loop that reads it ends this term first
		}
	})
	return func() {
		cancel()
		c.abdicate()
		job.Wait()
	}
}

// abdicate takes back that this node leads.
func (c *Control) abdicate() {
	c.leading.Store(0)
	c.leads.set(false)
}

// serveTerm brings the state up to date with the log, founds it if it is new, and works until ctx is done.
func (c *Control) serveTerm(ctx context.Context) error {
	start := time.Now()
	r := c.raft.Load()
	term := r.CurrentTerm()
	if err := r.Barrier(time.Minute).Error(); err != nil {
		return raftFault("control.Run", err)
	}
	c.opt.Log.Info("control state is current", "index", r.AppliedIndex(), "took", time.Since(start))
	if !c.haveKeys(ctx) {
		return nil
	}
	if err := c.bootstrap(); err != nil {
		return err
	}
	if err := c.readySecrets(); err != nil {
		return err
	}
	c.takeOver()
	defer c.abdicate() // again: the term may have ended just before the next line
	c.leading.Store(term)
	c.readyOnce()
	c.leads.set(true)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	jobs.Go(func() { c.runOperations(ctx) })
	jobs.Go(func() { c.sweep(ctx) })
	jobs.Go(func() { c.resumeRotation(ctx) })
	<-ctx.Done()
	return nil
}

// haveKeys makes sure that a leader of several voters has the keys that something stored is sealed with: it would take values for lost
// that the others can open. One that cannot get them leaves leadership to another. false says that the term is over.
func (c *Control) haveKeys(ctx context.Context) bool {
	f := c.opt.Fleet
	if f == nil {
		return true
	}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		missing := c.missingKeys()
		if len(missing) == 0 {
			return true
		}
		if f.Keys != nil {
			if err := f.Keys(ctx); err != nil { // of one voter; another's may do
				c.opt.Log.Warn("the node key file cannot be brought up to date", "err", err)
			}
			if missing = c.missingKeys(); len(missing) == 0 {
				return true
			}
		}
		if voters, err := c.voters(); err == nil && len(voters) == 1 {
			return true // nobody else has them either: the state says what cannot be opened
		}
		c.opt.Log.Error("this voter lacks keys of the fleet and leaves leadership to another", "keys", missing, "do", "bring the other voters up, from which it takes the keys")
		if err := c.passLeadership(); err != nil {
			c.opt.Log.Warn("leadership was not taken over", "err", err)
		}
		if !pause(ctx, wait) {
			return false
		}
	}
}

func (c *Control) missingKeys() (missing []string) {
	have := map[string]bool{}
	for _, id := range c.secrets.ring.IDs() {
		have[id] = true
	}
	for id := range c.keysInUse() {
		if !have[id] && id != "" {
			missing = append(missing, id)
		}
	}
	return missing
}

// follow waits until this voter's state holds everything that was acknowledged before, as the leader tells. Until then its plan could
// be older than the one that the node serves already.
func (c *Control) follow(ctx context.Context) {
	for wait := firstRetry; !c.Ready(); wait = min(2*wait, time.Second) {
		if leader := c.leader(); leader != "" && leader != c.opt.NodeID {
			var at position
			tell, cancel := context.WithTimeout(ctx, askTimeout)
			err := c.opt.Fleet.ask(tell, leader, "position", position{}, &at)
			cancel()
			if err == nil && c.machine.applied.reach(ctx, at.Index) == nil {
				c.opt.Log.Info("control state is current", "index", at.Index, "leader", leader)
				c.readyOnce()
				return
			}
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// position is how far a voter's state is: the index of a command.
type position struct {
	Index uint64 `json:"index"`
}

// leader names the voter that leads, as far as this one knows; "" if it knows of none.
func (c *Control) leader() string {
	r := c.raft.Load()
	if r == nil {
		return ""
	}
	_, id := r.LeaderWithID()
	return string(id)
}

var errNoLeader = fault.New(fault.Unavailable, "control", "this node does not lead the control room now, or too few voters can be reached; retry")

// confirm returns nil once it is certain that this node leads and its state holds everything acknowledged before the call. Calls that
// come together share one round to the other voters.
func (c *Control) confirm(ctx context.Context) error {
	term := c.leading.Load()
	if term == 0 {
		return errNoLeader
	}
	if c.opt.Fleet == nil {
		return nil // nobody else can lead
	}
	if err := c.rounds.join(ctx, c.verifyLeader); err != nil {
		return because(errNoLeader, err)
	}
	// In a later term of this node the state may lack what another leader has accepted in between.
	if c.leading.Load() != term || c.raft.Load().CurrentTerm() != term {
		return errNoLeader
	}
	return nil
}

// rounds lets callers share the answer to a question that was asked after each of them came.
type rounds struct {
	mu   sync.Mutex
	next *round // those who wait for the next round; nil if nobody does
	busy bool   // a round is under way
}

type round struct {
	done chan struct{}
	err  error // valid once done is closed
}

// join waits for a round that begins after the call. The error is that of ask, or of ctx.
func (s *rounds) join(ctx context.Context, ask func() error) error {
	s.mu.Lock()
	if s.next == nil {
		s.next = &round{done: make(chan struct{})}
	}
	mine := s.next
	if !s.busy {
		s.busy = true
		go s.run(ask) // ends when nobody waits
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *rounds) run(ask func() error) {
	for {
		s.mu.Lock()
		mine := s.next
		s.next = nil
		s.busy = mine != nil
		s.mu.Unlock()
		if mine == nil {
			return
		}
		mine.err = ask()
		close(mine.done)
	}
}

// lostLeadership tells whether raft refused or gave up because this node does not lead.
func lostLeadership(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrLeadershipTransferInProgress) ||
		errors.Is(err, raft.ErrRaftShutdown)
}

// raftFault says what an error of raft means for who asked.
func raftFault(op string, err error) error {
	switch {
	case errors.Is(err, raft.ErrLeadershipLost):
		return because(fault.New(fault.Unavailable, op, "the control room's leader changed meanwhile, so whether this was carried out is open; "+
			"repeat it with the same Idempotency-Key"), err)
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return because(fault.New(fault.Unavailable, op, "nothing was done: this node does not lead the control room; retry"), err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return because(fault.New(fault.Unavailable, op, "nothing was done: the control log is too busy; retry"), err)
	}
	return fault.Wrap(fault.Unavailable, op, err)
}

// leads tells others in this process whether this node leads. The zero value says that it does not.
type leads struct {
	mu    sync.Mutex
	now   bool
	moved chan struct{} // closed when now changes; nil while nobody waits
}

func (l *leads) set(now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == now {
		return
	}
	if l.now = now; l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

// Leads reports whether this node leads the control room, and returns a channel that is closed when that changes.
func (c *Control) Leads() (now bool, moved <-chan struct{}) {
	l := &c.leads
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	return l.now, l.moved
}

// Fresh returns when this node's state was last known to be that of the leader; the zero time before it was.
func (c *Control) Fresh() time.Time {
	if c.leading.Load() != 0 {
		return time.Now()
	}
	if r := c.raft.Load(); r != nil {
		return r.LastContact()
	}
	return time.Time{}
}
