package router

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"edged/router/h1"
	"edged/sandbox/event"
)

const (
	drainBytes = 256 << 10 // of an unread body, to keep the connection
	drainTime  = time.Second
	bodyBuffer = 32 << 10 // of input, while a body is read that does not come into the reader's own memory
	direct     = 4 << 10  // readers with this much room get a body without a copy between
)

// body is one request's body, read off the connection in its own framing: it cannot pass the body's end, so what follows
// is the next head and nothing else. It implements event.Body. Each request has a new one, because a worker may hold on
// to it: after finish it gives only errors.
type body struct {
	c       *conn
	chunked bool
	left    atomic.Int64 // declared bytes that have not come yet; written under mu
	expects atomic.Bool  // the client waits for 100; cleared under mu

	mu     sync.Mutex // held by a reader, also while it waits; guards c.in and the fields below
	frames h1.Chunked
	total  int64
	waited time.Duration // for the client, in all
	err    error         // where the framing stands: io.EOF at the end, another error where it broke
}

// newBody makes c.body from c.head.
func newBody(c *conn) {
	b := &body{c: c, chunked: c.head.Length == h1.LengthChunked}
	b.left.Store(max(c.head.Length, 0))
	b.expects.Store(c.head.Continue)
	c.dmu.Lock()
	c.body = b
	c.dmu.Unlock()
}

// Read waits for at least one byte. It gives io.EOF at the end, event.ErrBodyTooBig where an undeclared length crosses
// the limit, and event.ErrBodyAborted where the client left, stalled or broke the framing, and after Close.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if b.closed() {
			return 0, event.ErrBodyAborted
		}
		if n, err := b.takeLocked(p); n > 0 || err != nil {
			return n, err
		}
		b.sendContinue()
		began := time.Now()
		if !b.c.readUntil(began, b.c.r.opt.patience(b.c.r.opt.BodyTimeout, b.total, b.waited)) {
			return 0, event.ErrBodyAborted
		}
		n, err := b.receiveLocked(p)
		b.waited += time.Since(began)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// TryRead is Read without waiting: 0, nil if nothing is here yet.
func (b *body) TryRead(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed() {
		return 0, event.ErrBodyAborted
	}
	if n, err := b.takeLocked(p); n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	b.sendContinue()
	b.c.tryFill()
	return b.takeLocked(p)
}

// Close makes pending and later reads fail; the client's bytes are thrown away when the exchange ends. Any goroutine.
func (b *body) Close() error {
	c := b.c
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if c.body == b && !c.deaf {
		c.deaf = true
		c.readBy = time.Time{}
		_ = c.nc.SetReadDeadline(past) // fails on a closed connection only, where reads end anyway
	}
	return nil
}

func (b *body) closed() bool {
	b.c.dmu.Lock()
	defer b.c.dmu.Unlock()
	return b.c.deaf || b.c.body != b
}

// takeLocked moves bytes that were read already to p. io.EOF comes with the last of them.
func (b *body) takeLocked(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	c := b.c
	var n int
	if b.chunked {
		var used int
		var err error
		n, used, err = b.frames.Decode(p, c.in[c.pos:c.filled])
		c.pos += used
		switch {
		case err == io.EOF:
			b.err = io.EOF
		case err != nil:
			b.err = event.ErrBodyAborted
		}
	} else {
		n = copy(p, c.in[c.pos:min(int64(c.filled), int64(c.pos)+b.left.Load())])
		c.pos += n
		if b.left.Add(int64(-n)) == 0 {
			b.err = io.EOF
		}
	}
	return b.countLocked(n)
}

// countLocked holds an undeclared length to the limit.
func (b *body) countLocked(n int) (int, error) {
	b.c.r.opt.Metrics.received.Add(float64(n))
	if b.total += int64(n); b.total > b.c.r.opt.MaxRequestBodyBytes {
		b.err = event.ErrBodyTooBig
		return 0, b.err
	}
	return n, b.err
}

// receiveLocked waits for bytes: into p where the framing allows it, else into c.in for takeLocked.
func (b *body) receiveLocked(p []byte) (n int, err error) {
	c := b.c
	if !b.chunked && len(p) >= direct && c.pos == c.filled {
		n, err = c.nc.Read(p[:min(int64(len(p)), b.left.Load())])
		if n > 0 {
			if b.left.Add(int64(-n)) == 0 {
				b.err = io.EOF
			}
			return b.countLocked(n)
		}
	} else {
		b.widen()
		n, err = c.read(bodyBuffer)
	}
	if n > 0 || err == nil {
		return 0, nil
	}
	if !b.closed() { // else the read was interrupted, and the framing is as good as before
		b.err = event.ErrBodyAborted
		c.noteSlow(err)
	}
	return 0, event.ErrBodyAborted
}

// taken returns how many bytes of the body have come. It is asked after finish.
func (b *body) taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// widen makes the input buffer large enough for a body that comes in bulk.
func (b *body) widen() {
	c := b.c
	if len(c.in) < bodyBuffer && (b.chunked || b.left.Load() > firstBuffer) {
		bigger := make([]byte, bodyBuffer)
		c.filled = copy(bigger, c.in[c.pos:c.filled])
		c.in, c.pos = bigger, 0
	}
}

// sendContinue tells a client that waits for it to send the body, unless the final response has begun.
func (b *body) sendContinue() {
	if !b.expects.Load() {
		return
	}
	c := b.c
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.responding.Load() && b.expects.CompareAndSwap(true, false) {
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.r.opt.WriteTimeout)) // the write fails where this does
		if _, err := c.nc.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			c.cancel(errClientGone)
		}
	}
}

// settles reports whether the connection may be kept as far as is known when the response head is made: not if more would
// have to be thrown away than is worth it, or if it is open whether a client that got no 100 sends its body.
func (b *body) settles() bool { return !b.expects.Load() && b.left.Load() <= drainBytes }

// finish ends all reading by the worker. If the connection is to be kept it throws the rest of the body away, within
// bounds. It reports whether the body's end was reached.
func (b *body) finish(keep bool) (over bool) {
	if !b.mu.TryLock() {
		_ = b.Close() // wakes the reader
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	c := b.c
	c.dmu.Lock()
	c.body, c.deaf = nil, false
	c.dmu.Unlock()
	if b.err == nil && keep && !b.expects.Load() {
		b.drainLocked()
	}
	return b.err == io.EOF
}

func (b *body) drainLocked() {
	c := b.c
	c.dmu.Lock()
	c.readBy = time.Time{}
	_ = c.nc.SetReadDeadline(time.Now().Add(drainTime)) // the reads fail where this does
	c.dmu.Unlock()
	scratch := c.scratch()
	for thrown := 0; b.err == nil && thrown <= drainBytes; {
		n, _ := b.takeLocked(scratch)
		if thrown += n; b.err == nil && c.pos == c.filled && !c.fill(bodyBuffer) {
			return
		}
	}
}
