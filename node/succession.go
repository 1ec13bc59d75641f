package node

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"edged/internal/fault"
	"edged/router"
)

// settleTime is how long requests and tasks may still run in a hand-over when the listeners are closed already and clients wait. It is part
// of the second that they may wait at most.
const settleTime = 500 * time.Millisecond

// What may be at work when the listeners are closed: a request that is this young is expected to end within settleTime, unless it answers for
// longer than an answer takes, and a stream or a task of waitUntil only while it cannot be told from the end of an ordinary request.
const (
	calmAge  = settleTime / 2
	calmTail = 50 * time.Millisecond
)

// Succession is what a node has to do with the process before it and the one after it, on the same data directory. Every field may be empty.
type Succession struct {
	// Inherited are listeners that somebody else keeps open; New uses those that fit and closes all of them.
	Inherited []Listening
	// Bound is told the listeners of this node once it has them, so that they can be kept open for the process after. They stay the node's.
	Bound func([]Listening)
	// Await returns once the process before has let the data directory go. New calls it when everything that needs nothing of that is
	// ready; an error is New's.
	Await func() error
	// Opened is called when requests begin to be accepted.
	Opened func()
}

// Listening is a listener with the name of its flag and the address that it was asked for there; "" fits any.
type Listening struct {
	Name, Addr string
	Listener   net.Listener
}

// listen takes over the listener that somebody keeps open for this address, or makes one.
func (o Options) listen(l namedAddr) (net.Listener, error) {
	for _, in := range o.Inherited {
		if in.Name == l.name && (in.Addr == l.addr || in.Addr == "") {
			return in.Listener, nil
		}
	}
	return net.Listen("tcp", l.addr)
}

// listening is what this node listens on.
func (n *Node) listening() (out []Listening) {
	for _, l := range n.opt.listeners() {
		if ln := n.bound[l.name]; ln != nil {
			out = append(out, Listening{Name: l.name, Addr: l.addr, Listener: ln})
		}
	}
	return out
}

// closeUnused closes inherited listeners that no flag wants any more.
func (n *Node) closeUnused() {
	for _, in := range n.opt.Inherited {
		if n.bound[in.Name] != in.Listener {
			_ = in.Listener.Close()
		}
	}
}

// Way is how a node gives way to the process after it.
type Way struct {
	// Take hands a connection on (router.HandOver). It is called until Rest has returned.
	Take func(router.Handed) bool
	// Closing is called just before the listeners are closed: from then on clients wait.
	Closing func()
}

// GiveWay makes the node end for the process after it, at most once: Run goes on serving until a moment at which little is at work, at
// most DrainTimeout, then closes everything within a second and returns nil. Rest has to be called then. Any goroutine.
func (n *Node) GiveWay(w Way) {
	select {
	case n.way <- w:
	default:
	}
}

// Adopt goes on with a connection of the process before, whose socket it owns. It may be called from when New has returned. Any goroutine.
func (n *Node) Adopt(h router.Handed) { n.router.Adopt(h) }

// Rest waits until no connection is left that only this process can carry, TLS after GiveWay, or until ctx is done. Call it after Run.
func (n *Node) Rest(ctx context.Context) { n.router.Rest(ctx) }

// giveWay waits for GiveWay and then prepares the end of Run, stop: everything that can take long ends while requests are still served.
func (n *Node) giveWay(ctx context.Context, stop context.CancelFunc) {
	var w Way
	select {
	case w = <-n.way:
	case <-ctx.Done():
		return
	}
	n.log.Info("giving way to another process")
	limit, cancel := context.WithTimeout(ctx, n.opt.DrainTimeout)
	defer cancel()
	n.events.over(limit) // no batch and no schedule begins; what was begun has the limit
	n.awaitCalm(limit)
	n.yieldLead()     // while its door is open
	n.doors.over(ctx) // bounds itself
	if ctx.Err() != nil {
		return // told to stop for good in the meantime
	}
	n.handing.Store(true)
	n.router.HandOver(w.Take)
	if w.Closing != nil {
		w.Closing()
	}
	stop()
}

// awaitCalm returns at a moment at which nothing is at work that would have to be cut soon, or when ctx is done.
func (n *Node) awaitCalm(ctx context.Context) {
	asked := time.Now()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !n.calm(asked, time.Now()) {
		select {
		case <-ctx.Done():
			n.log.Warn("what is still at work is cut for the process that follows")
			return
		case <-look.C:
		}
	}
}

// calm reports whether nothing is at work that was when the hand-over was asked for, and nothing else that would have to be cut.
func (n *Node) calm(asked, now time.Time) bool {
	h := n.router.Holding(now, 1)
	if len(h.Oldest) > 0 && (h.Oldest[0].Since.Before(asked) || h.Oldest[0].Age > calmAge) || h.LongestAnswer > calmTail {
		return false
	}
	for _, v := range n.box.Holding() {
		if v.Tails > 0 && (v.OldestTail.Before(asked) || now.Sub(v.OldestTail) > calmTail) {
			return false
		}
	}
	return true
}

// runRouter runs the router and tells when it begins.
func (n *Node) runRouter(ctx context.Context) error {
	if n.opt.Opened != nil {
		n.opt.Opened()
	}
	return n.router.Run(ctx)
}

// stage is a group of parts that a hand-over ends before the others, while these still serve.
type stage struct {
	ended context.Context
	end   context.CancelFunc
	parts *sync.WaitGroup
}

func newStage() stage {
	ctx, cancel := context.WithCancel(context.Background())
	return stage{ctx, cancel, new(sync.WaitGroup)}
}

// early makes a part's Run one that ends with the stage too; it then waits for its turn to stop, as if it still ran.
func (s stage) early(run func(context.Context) error) func(context.Context) error {
	s.parts.Add(1)
	return func(ctx context.Context) error {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ended, cancel)()
		err := run(inner)
		s.parts.Done()
		if s.ended.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			<-ctx.Done()
			return nil
		}
		return err
	}
}

// over ends the parts of the stage and waits for that until ctx is done.
func (s stage) over(ctx context.Context) {
	s.end()
	done := make(chan struct{})
	go func() { s.parts.Wait(); close(done) }() // ends with the parts, which the node's end waits for
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// ErrStopped is what Await returns where the wait has no sense any more: somebody wants the program to stop.
var ErrStopped = fault.New(fault.Canceled, "node.New", "stopped before it began")
