package router

import (
	"bytes"
	"time"

	"edged/router/h1"
)

// readHead waits for the next request head and parses it. False ends the connection; a refusal was answered then.
func (c *conn) readHead() bool {
	limits := c.r.opt.headLimits()
	var scan h1.Scanner
	began := false // some of the head is here, and its time runs
	if c.pos == c.filled {
		c.shrink()
	}
	for {
		if c.pos < c.filled && !c.mustLeave() {
			n, err := scan.Scan(c.in[c.pos:c.filled], limits)
			switch {
			case err != nil:
				c.method = c.method[:0]
				return c.refuseEarly(refuseHead(err))
			case n > 0:
				return c.parseHead(n)
			}
		}
		if c.pos == c.filled {
			if !c.awaitHead(limits) {
				return false
			}
			continue
		}
		if !began {
			began = true
			c.enter(opening)
			c.readUntil(time.Now(), c.r.opt.HeadTimeout)
		}
		if c.mustLeave() {
			return false
		}
		if n, err := c.read(limits.MaxHead()); n == 0 && err != nil {
			c.method = c.method[:0]
			return isTimeout(err) && !c.mustLeave() && c.refuseEarly(refBadRequest)
		}
	}
}

// awaitHead waits for the first byte of a head.
func (c *conn) awaitHead(limits h1.Limits) bool {
	return c.enterIdle() && c.fill(limits.MaxHead())
}

// shrink gives large buffers back before the connection waits for its next request.
func (c *conn) shrink() {
	if len(c.in) > keptBuffer {
		c.in = make([]byte, firstBuffer)
	}
	if cap(c.out) > keptBuffer {
		c.out = make([]byte, 0, firstBuffer)
	}
	c.pos, c.filled = 0, 0
}

// parseHead parses the n bytes at pos, moves past them and fills c.req. What it keeps is copied out of c.in.
func (c *conn) parseHead(n int) bool {
	c.now = time.Now()
	c.enter(busy)
	var err error
	c.fields, err = c.head.Parse(c.in[c.pos:c.pos+n], c.fields[:0], c.trusted)
	h := &c.head
	c.method = append(c.method[:0], h.Method...)
	if err != nil {
		return c.refuseEarly(refuseHead(err))
	}
	if len(h.Path) > c.r.opt.MaxTargetBytes { // Scan counts whole lines, and lets a little more through
		return c.refuseEarly(refURLTooLong)
	}
	scheme := "http"
	if c.secure {
		scheme = "https"
	}
	switch { // nil unless a trusted proxy said it
	case bytes.EqualFold(h.ForwardedProto, []byte("https")):
		scheme = "https"
	case bytes.EqualFold(h.ForwardedProto, []byte("http")):
		scheme = "http"
	}
	c.url = append(append(c.url[:0], scheme...), "://"...)
	hostAt := len(c.url)
	c.url = append(c.url, h.Host...)
	pathAt := len(c.url)
	if len(h.Path) == 0 || h.Path[0] != '/' {
		c.url = append(c.url, '/')
	}
	c.url = append(c.url, h.Path...)
	h.Method, h.Host, h.Path = c.method, c.url[hostAt:pathAt], c.url[pathAt:]
	c.appendForwarding(scheme)
	c.pos += n
	return true
}

// appendForwarding adds what the node saw of the client where no trusted proxy said it.
func (c *conn) appendForwarding(scheme string) {
	h := &c.head
	if !h.ForwardedFor && c.peer.IsValid() {
		c.fields = append(c.fields, "x-forwarded-for\n"...)
		c.fields = c.peer.AppendTo(c.fields)
		c.fields = append(c.fields, '\n')
	}
	if h.ForwardedProto == nil {
		c.fields = append(c.fields, "x-forwarded-proto\n"...)
		c.fields = append(c.fields, scheme...)
		c.fields = append(c.fields, '\n')
	}
	if !h.ForwardedHost {
		c.fields = append(c.fields, "x-forwarded-host\n"...)
		c.fields = append(c.fields, h.Host...)
		c.fields = append(c.fields, '\n')
	}
}
