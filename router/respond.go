package router

import (
	"math/rand/v2"
	"strconv"

	"edged/router/h1"
)

// smallBody is the size up to which a body goes out in one write with its head.
const smallBody = 16 << 10

// respondHosted sends a host-made response (node-surface §7).
func (c *conn) respondHosted(r *refusal) {
	m := c.r.opt.Metrics
	m.errors[r.code].Inc()
	c.req.Trace.FailAs(r.code, r.status >= 500)
	if r.closes {
		c.keep = false
	}
	c.settle()
	c.count(r.status)
	c.refused, c.answer = r.code, answerHosted
	dst := h1.AppendStatus(c.out[:0], r.status)
	dst = h1.AppendField(dst, "Content-Type", "text/plain; charset=utf-8")
	dst = h1.AppendField(dst, "Cache-Control", "no-store")
	dst = h1.AppendField(dst, "Edged-Error", r.code)
	if r.retryAfter {
		dst = h1.AppendField(dst, "Retry-After", strconv.Itoa(c.retryAfter(r)))
	}
	dst = c.diagnose(dst, answerHosted)
	dst = c.appendDate(dst)
	dst = h1.AppendLength(dst, int64(len(r.code)+1))
	dst = c.endHead(dst)
	if !c.isHead() {
		dst = append(append(dst, r.code...), '\n')
	}
	c.out = dst
	c.write(dst)
}

// retryAfter is what a client is told that is refused for now, in seconds.
func (c *conn) retryAfter(r *refusal) int {
	if r == refOverloaded && c.party != nil {
		return c.r.gate.retryAfter(c.party)
	}
	return 1 + rand.IntN(2)
}

// respond sends what the worker answered. A response that is not sound is a worker error; nothing was sent then.
func (c *conn) respond() *refusal {
	res := &c.res
	if res.Status < 200 || res.Status > 599 {
		c.closeStream()
		return refWorkerError
	}
	c.settle()
	dst, fields, ok := h1.AppendFields(h1.AppendStatus(c.out[:0], res.Status), res.Header)
	if !ok {
		c.closeStream()
		return refWorkerError
	}
	c.count(res.Status)
	c.answer = answerCode
	if !fields.Date {
		dst = c.appendDate(dst)
	}
	dst = c.diagnose(dst, answerCode)
	// No body follows these statuses nor an answer to HEAD; the former do not even have a length.
	bare := res.Status == 204 || res.Status == 304
	if res.Stream != nil {
		c.respondStream(dst, bare)
	} else {
		c.respondWhole(dst, bare, fields)
	}
	return nil
}

func (c *conn) respondStream(dst []byte, bare bool) {
	length := c.res.Length
	chunked := length < 0 && c.head.Minor == 1
	silent := bare || c.isHead()
	switch {
	case bare:
	case length >= 0:
		dst = h1.AppendLength(dst, length)
	case chunked:
		dst = h1.AppendField(dst, "Transfer-Encoding", "chunked")
	case !silent:
		c.keep = false // the end of the connection is the end of the body
	}
	c.out = c.endHead(dst)
	if silent {
		c.closeStream()
		c.write(c.out)
		return
	}
	c.stream(length, chunked)
}

func (c *conn) respondWhole(dst []byte, bare bool, fields h1.Fields) {
	res := &c.res
	switch {
	case bare:
	case c.isHead() && res.Null && fields.Length >= 0:
		dst = h1.AppendLength(dst, fields.Length) // what a GET would have got, as the worker says
	default:
		dst = h1.AppendLength(dst, int64(len(res.Body)))
	}
	c.out = c.endHead(dst)
	switch {
	case bare || c.isHead():
		c.write(c.out)
	case len(res.Body) <= smallBody:
		c.out = append(c.out, res.Body...)
		c.write(c.out)
	case c.write(c.out):
		c.pace()
		c.write(res.Body)
	}
}

// count counts a response; its status is 200 to 599.
func (c *conn) count(status int) {
	c.status = status
	c.r.opt.Metrics.classes[status/100].Inc()
}

func (c *conn) endHead(dst []byte) []byte {
	switch {
	case !c.keep:
		dst = append(dst, "Connection: close\r\n"...)
	case c.head.Minor == 0:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

func (c *conn) appendDate(dst []byte) []byte {
	if s := c.made.Unix(); s != c.dateUnix {
		c.dateUnix = s
		c.date = h1.AppendDate(c.date[:0], c.made)
	}
	return append(dst, c.date...)
}
