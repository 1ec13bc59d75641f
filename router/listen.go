package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"edged/router/proxyproto"
)

// accept takes connections until the listener is closed. stop ends waiting between failures; base is what connections
// live on.
func (r *Router) accept(base, stop context.Context, l net.Listener, secure bool) error {
	var failures acceptFailures
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			failures.pause = 0
			if c := newConn(r, nc); r.crowd.enlist(c, time.Now()) {
				r.serving.Go(func() { r.own(base, c, func(c *conn) bool { return c.open(secure) }) }) // before close, which waits for this loop
			} else {
				r.opt.Metrics.connsOver.Inc()
				refuseConn(nc, secure)
			}
			continue
		case r.draining.Load() || stop.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept: %w", err)
		}
		if !failures.failed(stop, r, err) { // out of descriptors, most likely: it passes when connections end
			return nil
		}
	}
}

// own serves a connection, which was enlisted, to its end, or to where the process after this one goes on with it. open does what
// comes before its first request here.
func (r *Router) own(base context.Context, c *conn, open func(*conn) bool) {
	m := r.opt.Metrics
	defer r.delist(c)
	c.now, c.out = time.Now(), make([]byte, 0, firstBuffer)
	if c.in == nil {
		c.in = make([]byte, firstBuffer)
	}
	m.connsTotal.Inc()
	m.conns.Inc()
	defer m.conns.Dec()
	c.ctx, c.cancel = context.WithCancelCause(base)
	defer c.end()
	if !open(c) {
		if c.leaving {
			c.give()
		} else {
			m.connsOver.Inc()
		}
		return
	}
	defer r.watch.add(c)()
	c.loop()
	if c.leaving {
		c.give()
	}
}

// open does what comes before the first request: PROXY header, TLS handshake, whom to trust.
func (c *conn) open(secure bool) bool {
	c.fresh, c.secure = true, secure
	c.peer = peerOf(c.nc)
	if c.trusted = within(c.r.opt.TrustedProxies, c.peer); c.trusted && !c.readProxyHeader() {
		return false
	}
	c.judgePeer()
	return !secure || c.handshake()
}

// judgePeer decides whom to trust, once it is known who speaks. Who speaks behind a PROXY header is the client: its own
// fields are not the proxy's.
func (c *conn) judgePeer() {
	c.fresh = false
	c.trusted = within(c.r.opt.TrustedProxies, c.peer)
	c.diagnosed = !c.trusted && within(c.r.opt.Diagnostics, c.peer)
}

func peerOf(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// readProxyHeader takes a PROXY header off the start of the connection, if there is one. A proxy that has connected
// ahead of its need waits like any idle connection, so that it does not hold up a drain.
func (c *conn) readProxyHeader() bool {
	defer c.enter(opening)
	c.now = time.Now()
	for {
		if c.filled > c.pos {
			source, n, more, err := proxyproto.Parse(c.in[c.pos:c.filled])
			if err != nil {
				return false
			}
			if !more {
				c.pos += n
				if source.IsValid() {
					c.peer = source
				}
				return true
			}
		}
		if c.filled == 0 {
			if !c.enterIdle() {
				return false
			}
		} else {
			c.enter(opening)
			c.readUntil(time.Now(), c.r.opt.HeadTimeout)
			if c.mustLeave() {
				return false
			}
		}
		if !c.fill(proxyproto.MaxHeader) {
			return false
		}
	}
}

func (c *conn) handshake() bool {
	if !c.r.setApart(c) { // this process would only relay it
		c.leaving = true
		return false
	}
	c.enter(shaking)
	inner := c.nc
	if c.filled > c.pos { // read past the PROXY header
		inner = &prefixed{Conn: inner, rest: append([]byte(nil), c.in[c.pos:c.filled]...)}
	}
	c.pos, c.filled = 0, 0
	t := tls.Server(inner, c.r.tls)
	c.nc, c.tls = t, t
	if err := t.SetDeadline(time.Now().Add(c.r.opt.HeadTimeout)); err != nil {
		return false
	}
	if err := t.HandshakeContext(c.ctx); err != nil {
		return false
	}
	if err := t.SetDeadline(time.Time{}); err != nil {
		return false
	}
	c.dmu.Lock()
	c.readBy, c.phase = time.Time{}, opening
	c.dmu.Unlock()
	c.sni = []byte(t.ConnectionState().ServerName)
	c.r.endApart(c)
	return true
}

// prefixed is a connection of which some bytes were already read.
type prefixed struct {
	net.Conn
	rest []byte
}

// Read gives the bytes that were read too early, then the connection's own.
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.rest) > 0 {
		n := copy(b, p.rest)
		p.rest = p.rest[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
