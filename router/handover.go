package router

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// Handed is a connection on its way from one process's router to the next one's, as it stands before its next request. Every
// byte of what was read and not used comes along, so neither side can tell that anything happened.
type Handed struct {
	Conn    net.Conn   // a socket: TCP, or one end of a local pair if Relayed. Whoever has the Handed closes it
	Unread  []byte     // read already of what comes next; at most a head and what was pipelined behind it
	Peer    netip.Addr // who speaks; means nothing while Fresh
	Fresh   bool       // nothing has been read but Unread: a PROXY header may begin it
	Secure  bool       // came to the listener for TLS
	Relayed bool       // Secure, and the process before goes on with TLS: what comes here is plain
	SNI     string     // the name that a Relayed client asked for
}

// HandOver makes the drain of Run a hand-over; it is called before Run's context is done. Connections are then not closed but
// given to take as soon as they have no request at work, with all of their state; take owns nothing after it returned (it
// duplicates the descriptor), may be called by several goroutines at once, and reports false if nobody takes them: then they are closed. What
// still has a request after SettleTime is cut. A connection over TLS cannot change its process: its plain side is given away, and this
// process goes on to encrypt and decrypt. Run returns once no connection needs the rest of the node any more, and Rest waits for these.
func (r *Router) HandOver(take func(Handed) bool) {
	r.take = take
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handing.Store(true)
}

// Rest waits for the connections over TLS that Run left behind after a hand-over, until ctx is done: then they are closed, in TLS's own
// way. It does nothing without a hand-over. Call it once, after Run.
func (r *Router) Rest(ctx context.Context) {
	if r.rest == nil {
		return
	}
	defer r.rest()
	stop := context.AfterFunc(ctx, func() { r.crowd.each((*conn).endRelay) })
	defer stop()
	r.serving.Wait()
}

// handAll gives every connection away, or cuts it when the time to settle is over.
func (r *Router) handAll() {
	r.crowd.each((*conn).interrupt)
	timer := time.NewTimer(r.opt.SettleTime)
	defer timer.Stop()
	for r.holds() > 0 {
		select {
		case <-r.moved:
		case <-timer.C:
			r.crowd.each((*conn).cutAtWork)
		}
	}
}

// holds returns how many connections may still need the node.
func (r *Router) holds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crowd.len() - r.apart
}

// nudge lets a hand-over look again.
func (r *Router) nudge() {
	if r.handing.Load() {
		select {
		case r.moved <- struct{}{}:
		default:
		}
	}
}

// setApart counts a connection as one that needs nothing of the node: it is about to shake hands, or to be relayed. It reports false if a
// hand-over has begun, and then counts those alone that are to be relayed.
func (r *Router) setApart(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	handing := r.handing.Load() && r.draining.Load()
	if handing && c.tls == nil {
		return false
	}
	if !c.apart {
		c.apart = true
		r.apart++
	}
	r.nudge()
	return !handing
}

// endApart is called after the handshake. In a hand-over the connection stays apart: its loop begins no request.
func (r *Router) endApart(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.apart && !(r.handing.Load() && r.draining.Load()) {
		c.apart = false
		r.apart--
	}
}

// interrupt ends a wait for a head or the rest of one. Any goroutine; a hand-over has begun.
func (c *conn) interrupt() {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if c.phase == opening || c.phase == idle {
		c.readBy = time.Time{}
		_ = c.nc.SetReadDeadline(past)
	}
}

// mustLeave tells the loop, which waits for bytes of a head, to leave them to the next process.
func (c *conn) mustLeave() bool {
	if c.r.draining.Load() && c.r.handing.Load() {
		c.leaving = true
	}
	return c.leaving
}

// goesAway reports whether the client has to be told that this connection takes no further request. In a hand-over one that is not over TLS
// takes more, of the next process.
func (c *conn) goesAway() bool {
	return c.relayed || c.r.draining.Load() && (c.tls != nil || !c.r.handing.Load())
}

// cutAtWork ends a request for which a hand-over waits no longer. Any goroutine.
func (c *conn) cutAtWork() {
	c.dmu.Lock()
	working := c.phase != relaying && c.phase != shaking
	c.dmu.Unlock()
	if working {
		c.cancel(errDrainOver)
		c.abort()
	}
}

// give hands the connection on. The loop has ended; own closes what is left here.
func (c *conn) give() {
	h := Handed{Conn: c.bare, Unread: c.in[c.pos:c.filled], Peer: c.peer, Fresh: c.fresh, Secure: c.secure, Relayed: c.relayed, SNI: string(c.sni)}
	switch {
	case c.fin.Load() && len(h.Unread) == 0 && !c.fresh: // the client has closed it already
	case c.tls != nil:
		c.relay(h)
	case c.r.take(h):
		c.r.opt.Metrics.handed.Inc()
	}
}
