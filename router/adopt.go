package router

import (
	"context"
	"time"
)

// Adopt goes on with a connection of the process before, and owns its Conn from now on. Before Run it waits for that; once Run takes no more
// connections it is closed. Any goroutine.
func (r *Router) Adopt(h Handed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		_ = h.Conn.Close()
	case r.base == nil:
		r.adopted = append(r.adopted, h)
	default:
		r.adoptLocked(r.base, h)
	}
}

// begin lets connections in.
func (r *Router) begin(base context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = base
	for _, h := range r.adopted {
		r.adoptLocked(base, h)
	}
	r.adopted = nil
}

// close lets no more connections in; the listeners were closed before.
func (r *Router) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

func (r *Router) adoptLocked(base context.Context, h Handed) {
	c := newConn(r, h.Conn)
	c.in = make([]byte, len(h.Unread)+firstBuffer)
	c.filled = copy(c.in, h.Unread)
	r.opt.Metrics.adopted.Inc()
	r.serving.Go(func() {
		if !r.crowd.enlist(c, time.Now()) {
			r.opt.Metrics.connsOver.Inc()
			_ = c.nc.Close()
			return
		}
		r.own(base, c, func(c *conn) bool { return c.resume(h) })
	})
}

// resume is open for a connection that another process has opened.
func (c *conn) resume(h Handed) bool {
	_ = h.Conn.SetDeadline(time.Time{})
	if h.Fresh {
		return c.open(h.Secure)
	}
	c.secure, c.relayed = h.Secure, h.Relayed
	if c.peer = h.Peer; !c.peer.IsValid() {
		c.peer = peerOf(c.nc)
	}
	c.sni = []byte(h.SNI)
	c.judgePeer()
	return !h.Secure || h.Relayed || c.handshake()
}
