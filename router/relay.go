package router

import (
	"io"
	"sync"
	"time"
)

// relayBuffer is what a relayed connection has in either direction: there may be thousands, and most are idle.
const relayBuffer = 4 << 10

// relay goes on with TLS alone: the plain side of the connection is handed on as one end of a pair of local sockets, and the bytes are
// carried between the other end and the client. It returns when both directions have ended. The next process answers such a client with
// "Connection: close", so that it soon connects anew.
func (c *conn) relay(h Handed) {
	ours, theirs, err := socketPair()
	if err != nil {
		c.r.opt.Log.Warn("a connection over TLS is not handed on", "err", err)
		return
	}
	defer func() { _ = ours.Close() }()
	c.enter(relaying)
	h.Conn, h.Relayed = theirs, true
	taken := c.r.take(h)
	_ = theirs.Close() // the next process has its own descriptor
	if !taken {
		return
	}
	c.in = nil // handed on
	c.r.opt.Metrics.handed.Inc()
	c.r.opt.Metrics.relayed.Inc()
	defer c.r.opt.Metrics.relayed.Dec()
	c.r.setApart(c)
	c.endIfOver()

	var answers sync.WaitGroup
	answers.Go(func() { // ends with the next process's end of the pair, which the other direction closes if the client is gone
		_, _ = carry(timed{c}, ours) // whoever failed, it is over
		_ = c.tls.CloseWrite()
		c.dmu.Lock()
		_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime)) // as in linger
		c.dmu.Unlock()
	})
	switch read, write := carry(ours, c.nc); {
	case write != nil: // the answer is complete, and nobody takes more: as in linger
		_, _ = carry(io.Discard, c.nc)
	case read == io.EOF:
		_ = ours.CloseWrite() // the client sends no more; it may still have an answer to come
	default:
		_ = ours.Close()
	}
	answers.Wait()
}

// carry copies until from ends (io.EOF) or fails, or to fails.
func carry(to io.Writer, from io.Reader) (read, write error) {
	for buf := make([]byte, relayBuffer); ; {
		n, err := from.Read(buf)
		if n > 0 {
			if _, write = to.Write(buf[:n]); write != nil {
				return nil, write
			}
		}
		if err != nil {
			return err, nil
		}
	}
}

// timed writes to a client that has to take each piece within WriteTimeout.
type timed struct{ c *conn }

// Write is io.Writer's.
func (t timed) Write(p []byte) (int, error) {
	_ = t.c.nc.SetWriteDeadline(time.Now().Add(t.c.r.opt.WriteTimeout)) // the write fails where this does
	return t.c.nc.Write(p)
}

// endIfOver makes the wait for the client's bytes endless, unless the time of relays is over already.
func (c *conn) endIfOver() {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	c.readBy = time.Time{}
	if !c.ended {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
}

// endRelay ends what is left after a hand-over: a relay in TLS's own way, a handshake at once. Any goroutine.
func (c *conn) endRelay() {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	c.ended = true
	if c.phase == relaying {
		_ = c.nc.SetReadDeadline(past)
	} else {
		_ = c.bare.Close()
	}
}
