package router

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"edged/router/h1"
	"edged/router/table"
	"edged/sandbox/event"
)

const (
	firstBuffer = 4 << 10  // of input and output, while nothing asks for more
	keptBuffer  = 16 << 10 // larger ones are given back when the connection is idle
	maxPiece    = 64 << 10 // written under one deadline

	lingerBytes = 512 << 10 // thrown away before closing under a sender, so that it can read the answer
	lingerTime  = time.Second
)

// past is a deadline that ends a pending read.
var past = time.Unix(1, 0)

type phase uint8

const (
	opening  phase = iota // before the first request; also while a head is half read
	idle                  // waiting for a head's first byte
	busy                  // a request is at work
	shaking               // in a TLS handshake
	relaying              // the next process has it; this one carries TLS
)

// conn is one client connection. Its loop runs in one goroutine, which owns every field without a comment.
type conn struct {
	r    *Router
	bare net.Conn        // as accepted; constant
	nc   net.Conn        // what is read and written: bare, or TLS over it
	tcp  *net.TCPConn    // bare, nil if the listener gives something else
	raw  syscall.RawConn // of bare; nil if that is no socket
	tls  *tls.Conn       // nil on the plain listener

	source netip.Addr // whose share of the connections it counts in; the zero value is nobody's. The crowd's
	shed   bool       // told to go to make room. The crowd's

	secure    bool // came over TLS
	fresh     bool // a PROXY header may still come
	relayed   bool // over TLS, which the process before this one ends
	leaving   bool // its loop has ended because the next process goes on with it
	apart     bool // counted in Router.apart; guarded by Router.mu
	trusted   bool // the peer's forwarding fields are believed
	diagnosed bool // the peer sees diagnostics
	peer      netip.Addr
	sni       []byte

	ctx    context.Context         // every invocation's; made once
	cancel context.CancelCauseFunc // any goroutine

	fin   atomic.Bool // the client will send nothing more; any goroutine
	grace atomic.Pointer[time.Timer]

	dmu    sync.Mutex // guards the fields below and the read deadline; never held while waiting
	phase  phase
	since  time.Time // since when it is idle; when the request at work was complete
	last   bool      // it is not to wait for another request
	readBy time.Time // read deadline in force, zero if unknown
	body   *body     // of the request at work, nil if it has none; only the loop changes it
	deaf   bool      // the body was closed: reads must end
	ended  bool      // what is left after a hand-over must end

	wmu        sync.Mutex  // held while writing 100, and when responding is set of a request that may be answered so
	responding atomic.Bool // the final response has begun; any goroutine

	in          []byte // in[pos:filled] was read and not used; body and loop take turns (see body.mu)
	pos, filled int
	out         []byte
	writeBy     time.Time
	paced       bool                  // the client has to keep up a rate with this response; the next two count since then
	pacedSent   int64                 // bytes
	pacedWait   time.Duration         // in writes
	readNow     func(fd uintptr) bool // made once, see tryFill
	readNowN    int

	now      time.Time // when the current head was complete, or the last response
	made     time.Time // when the response's head was made, until it is written
	dateUnix int64
	date     []byte // the Date line of that second

	head    h1.Head
	fields  []byte
	url     []byte
	method  []byte
	key     []byte
	req     event.Request
	res     event.Response
	version *table.Version
	chosen  atomic.Pointer[table.Version] // the last one, for Holding; any goroutine
	party   *table.Party                  // who holds the place of the request at work
	// detached says that a long stream has given that place back; written by the timer of outlast, before it returns.
	detached bool
	keep     bool // the connection may serve another request
	broken   bool // nothing can be written any more

	// Of the exchange, for those who watch; forget clears them.
	why     explained
	receipt event.Receipt // of the invocation; filled only if somebody reads it
	status  int           // of the response, 0 before it
	refused string        // its Edged-Error
	answer  string        // what answers, "" before it does
	sent    int64         // bytes of the response
	short   bool          // it ended short of its body
}

func newConn(r *Router, nc net.Conn) *conn {
	c := &conn{r: r, bare: nc, nc: nc}
	if socket, ok := nc.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			c.tcp, _ = nc.(*net.TCPConn)
			c.raw = raw
		}
	}
	return c
}

// loop serves requests until the connection is not to be used again.
func (c *conn) loop() {
	c.now = time.Now()
	for c.readHead() && c.exchange() {
	}
}

// end closes the connection and ends its context.
func (c *conn) end() {
	_ = c.nc.Close() // all that mattered was written or has failed
	c.cancel(errConnOver)
	if t := c.grace.Load(); t != nil {
		t.Stop()
	}
}

// abort closes the connection under whatever uses it. Any goroutine.
func (c *conn) abort() { _ = c.bare.Close() }

// closeIfIdle ends a wait for the next request; false if the connection does not wait. Any goroutine; the router is
// draining, or needs the place. A request that came at the same moment is the last.
func (c *conn) closeIfIdle() bool {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if c.phase != idle {
		return false
	}
	c.last = true
	c.readBy = time.Time{}
	_ = c.nc.SetReadDeadline(past)
	return true
}

// idleSince tells since when the connection waits for a request. Any goroutine.
func (c *conn) idleSince() (at time.Time, waits bool) {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	return c.since, c.phase == idle
}

// enter moves the connection to a phase other than idle.
func (c *conn) enter(p phase) {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if c.phase = p; p == busy {
		c.since = c.now
	}
}

// enterIdle prepares for the wait between requests; false if the connection should be closed instead. It is one step, so
// that closeIfIdle either finds the connection idle or is seen here.
func (c *conn) enterIdle() bool {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if draining := c.r.draining.Load(); draining || c.last {
		c.leaving = draining && c.r.handing.Load()
		return false
	}
	c.phase, c.since = idle, c.now
	c.readUntilLocked(c.now, c.r.opt.IdleTimeout)
	return true
}

// readUntil makes reads that wait longer than d fail. To spare the timer it keeps a deadline that is at most an eighth
// shorter. It reports false if reads are to end now, because the body was closed.
func (c *conn) readUntil(now time.Time, d time.Duration) bool {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if c.deaf {
		return false
	}
	c.readUntilLocked(now, d)
	return true
}

func (c *conn) readUntilLocked(now time.Time, d time.Duration) {
	if left := c.readBy.Sub(now); left > d || left < d-d/8 {
		c.readBy = now.Add(d)
		_ = c.nc.SetReadDeadline(c.readBy) // fails on a closed connection only, and then the read does too
	}
}

// fill reads more into c.in, which may grow to limit bytes. False on any failure; it is for callers that do not ask why.
func (c *conn) fill(limit int) bool {
	n, err := c.read(limit)
	if n == 0 && isTimeout(err) {
		c.mustLeave()
	}
	return n > 0 || err == nil
}

func (c *conn) read(limit int) (int, error) {
	c.makeRoom(limit)
	n, err := c.nc.Read(c.in[c.filled:])
	c.filled += n
	return n, err
}

// makeRoom makes sure that at least a byte can be read behind filled.
func (c *conn) makeRoom(limit int) {
	if c.pos == c.filled {
		c.pos, c.filled = 0, 0
	}
	if c.filled < len(c.in) {
		return
	}
	if c.pos > 0 {
		c.filled = copy(c.in, c.in[c.pos:c.filled])
		c.pos = 0
		return
	}
	bigger := make([]byte, max(min(2*len(c.in), limit), len(c.in)+firstBuffer))
	copy(bigger, c.in[:c.filled])
	c.in = bigger
}

// write sends p in pieces that each have their own deadline. After a failure the connection is broken.
func (c *conn) write(p []byte) bool {
	for len(p) > 0 && !c.broken {
		piece := p[:min(len(p), maxPiece)]
		began := c.writeSoon()
		n, err := c.nc.Write(piece)
		c.wrote(began, int64(n))
		if err != nil {
			c.noteSlow(err)
			c.breaks()
		}
		p = p[n:]
	}
	return !c.broken
}

// clock reads the time: with one call of the system where time.Now needs two, because of the hour only what passed since the last head
// is new.
func (c *conn) clock() time.Time { return c.now.Add(time.Since(c.now)) }

// writeSoon makes a write that waits too long for the client fail, and returns the time.
func (c *conn) writeSoon() (now time.Time) {
	d := c.r.opt.WriteTimeout
	if now = c.made; now.IsZero() {
		now = c.clock()
	}
	c.made = time.Time{} // it was for the head, which is written as soon as it is made
	if c.paced {
		d = c.r.opt.patience(d, c.pacedSent, c.pacedWait)
	}
	if left := c.writeBy.Sub(now); left > d || left < d-d/8 {
		c.writeBy = now.Add(d)
		_ = c.nc.SetWriteDeadline(c.writeBy) // as in readUntil
	}
	return now
}

// wrote counts what was written since.
func (c *conn) wrote(began time.Time, n int64) {
	c.r.opt.Metrics.sent.Add(float64(n))
	c.sent += n
	if c.paced {
		c.pacedSent += n
		c.pacedWait += time.Since(began)
	}
}

// pace holds the rest of the response to the least rate.
func (c *conn) pace() { c.paced, c.pacedSent, c.pacedWait = true, 0, 0 }

// noteSlow counts a client that was waited for too long.
func (c *conn) noteSlow(err error) {
	if isTimeout(err) {
		c.r.opt.Metrics.clientsSlow.Inc()
	}
}

// breaks notes that the client cannot be reached: it left, or takes nothing.
func (c *conn) breaks() {
	c.broken, c.keep = true, false
	c.cancel(errClientGone)
}

// linger closes the sending side and throws away what still comes for a moment: closing a socket with unread input resets
// it, and the reset may overtake the answer.
func (c *conn) linger() {
	if c.broken {
		return
	}
	var err error
	switch {
	case c.tls != nil:
		err = c.tls.CloseWrite()
		if err == nil && c.tcp != nil {
			err = c.tcp.CloseWrite()
		}
	case c.tcp != nil:
		err = c.tcp.CloseWrite()
	default:
		return
	}
	if err != nil {
		return
	}
	c.dmu.Lock()
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	c.dmu.Unlock()
	for thrown := c.filled - c.pos; thrown < lingerBytes; {
		n, err := c.nc.Read(c.in)
		if thrown += n; err != nil {
			return
		}
	}
}

// peerLeft is told by the watcher that the client shut down its sending side, or (reset) that it is gone for good.
func (c *conn) peerLeft(reset bool) {
	if reset {
		c.gone()
		return
	}
	c.fin.Store(true)
	c.dmu.Lock()
	working := c.phase == busy
	c.dmu.Unlock()
	if working {
		c.startGrace()
	}
}

// startGrace gives a half-closed client its last moments.
func (c *conn) startGrace() {
	t := time.AfterFunc(halfClosed, c.gone)
	if !c.grace.CompareAndSwap(nil, t) {
		t.Stop()
	}
}

func (c *conn) gone() {
	c.dmu.Lock()
	working := c.phase == busy
	c.dmu.Unlock()
	if working && c.ctx.Err() == nil {
		c.r.opt.Metrics.clientsGone.Inc()
	}
	c.cancel(errClientGone)
}
