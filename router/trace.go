package router

import (
	"strconv"
	"time"

	"edged/internal/trace"
)

// startTrace begins the span of a request whose head was read. The fields of a trusted proxy are believed and its decision
// holds; what others send is theirs alone, and no more than linked.
func (c *conn) startTrace() {
	t := c.r.opt.Tracer
	if t == nil {
		return
	}
	c.status = 0
	name := trace.Method(c.method)
	if !c.trusted {
		c.req.Trace = t.Root(trace.Server, name, c.now)
		if c.req.Trace.Recorded() {
			if theirs, ok := trace.FromPacked(c.fields); ok {
				c.req.Trace.Link(theirs)
			}
		}
	} else if parent, ok := trace.FromPacked(c.fields); ok {
		c.req.Trace = t.Join(&parent, trace.Server, name, c.now)
	} else {
		c.req.Trace = t.Root(trace.Server, name, c.now)
	}
	if s := c.req.Trace; s.Recorded() {
		c.describe(s)
	}
}

// describe notes what is known of a request: no field, no query, no address of a client.
func (c *conn) describe(s *trace.Span) {
	s.Set("http.request.method", trace.Method(c.method))
	scheme, path := splitURL(c.url)
	s.SetBytes("url.scheme", scheme)
	s.SetBytes("url.path", path)
	s.SetBytes("server.address", c.head.Host)
	if c.head.Minor == 0 {
		s.Set("network.protocol.version", "1.0")
	} else {
		s.Set("network.protocol.version", "1.1")
	}
}

// splitURL returns scheme and path of an absolute URL.
func splitURL(url []byte) (scheme, path []byte) {
	for i := range url {
		switch {
		case url[i] == ':' && scheme == nil:
			scheme = url[:i]
		case url[i] == '/' && i > len(scheme)+len("://")-1:
			path = url[i:]
			for j := range path {
				if path[j] == '?' {
					return scheme, path[:j]
				}
			}
			return scheme, path
		}
	}
	return scheme, nil
}

// endTrace ends the span, with the response that was sent, and counts the time of the request, with its trace as an example
// if that is recorded.
func (c *conn) endTrace(took time.Duration) {
	s := c.req.Trace
	if !s.Recorded() {
		c.r.opt.Metrics.seconds.Observe(took.Seconds())
		return
	}
	trace.Observe(c.r.opt.Metrics.seconds, took, s)
	if c.version != nil {
		s.Set("edged.version", c.version.UID)
	}
	s.SetInt("http.response.status_code", int64(c.status))
	switch { // a refusal has said before what it is
	case c.broken && c.ctx.Err() != nil:
		s.FailAs("client_gone", false)
	case c.broken:
		s.FailAs("cut", true)
	case c.status >= 500:
		s.FailAs(strconv.Itoa(c.status), true)
	}
	s.EndAt(c.now)
	c.req.Trace = nil // a head that is refused next has no span
}
