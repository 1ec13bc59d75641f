package control

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// wires connect the members of a fleet in memory. What is cut breaks at once and cannot be dialled; what is held keeps its connections
// but moves no byte, as a frozen machine or a lossless stall does.
type wires struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener // by member and purpose
	cut       map[string]bool          // members that nobody reaches
	held      map[string]bool
	moved     chan struct{} // closed when cut or held change, then replaced
	open      map[*wire]struct{}
}

func newWires() *wires {
	return &wires{listeners: map[string]*pipeListener{}, cut: map[string]bool{}, held: map[string]bool{}, moved: make(chan struct{}), open: map[*wire]struct{}{}}
}

// change alters cut or held and ends the connections that are cut now.
func (w *wires) change(do func()) {
	w.mu.Lock()
	do()
	close(w.moved)
	w.moved = make(chan struct{})
	var broken []*wire
	for c := range w.open {
		if w.cut[c.from] || w.cut[c.to] {
			broken = append(broken, c)
		}
	}
	w.mu.Unlock()
	for _, c := range broken {
		c.Close()
	}
}

func (w *wires) cutOff(member string) { w.change(func() { w.cut[member] = true }) }
func (w *wires) hold(member string)   { w.change(func() { w.held[member] = true }) }
func (w *wires) heal() {
	w.change(func() { clear(w.cut); clear(w.held) })
}

// gate tells whether bytes move between two members, and what is closed when that may change.
func (w *wires) gate(from, to string) (open bool, moved chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.held[from] && !w.held[to], w.moved
}

type pipeListener struct {
	w      *wires
	name   string
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (w *wires) listen(member, purpose string) *pipeListener {
	l := &pipeListener{w: w, name: member + " " + purpose, conns: make(chan net.Conn), closed: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners[l.name] = l
	return l
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return memberAddr(l.name) }

var errCut = errors.New("the wire is cut")

func (w *wires) dial(ctx context.Context, from, to, purpose string) (net.Conn, error) {
	w.mu.Lock()
	l := w.listeners[to+" "+purpose]
	cut := w.cut[from] || w.cut[to]
	w.mu.Unlock()
	if l == nil || cut {
		return nil, errCut
	}
	here, there := net.Pipe()
	a := &wire{Conn: here, w: w, from: from, to: to, gone: make(chan struct{})}
	b := &wire{Conn: there, w: w, from: to, to: from, gone: make(chan struct{})}
	select {
	case l.conns <- b:
	case <-l.closed:
		return nil, errCut
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	w.open[a], w.open[b] = struct{}{}, struct{}{}
	cut = w.cut[from] || w.cut[to]
	w.mu.Unlock()
	if cut {
		a.Close()
		b.Close()
		return nil, errCut
	}
	return a, nil
}

// wire is one end of a connection.
type wire struct {
	net.Conn
	w        *wires
	from, to string
	once     sync.Once
	gone     chan struct{}

	mu       sync.Mutex
	deadline time.Time
}

func (c *wire) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

func (c *wire) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

func (c *wire) Write(p []byte) (int, error) {
	for {
		open, moved := c.w.gate(c.from, c.to)
		if open {
			return c.Conn.Write(p)
		}
		c.mu.Lock()
		deadline := c.deadline
		c.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-moved:
		case <-c.gone:
			return 0, net.ErrClosed
		case <-late:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

func (c *wire) Close() error {
	c.once.Do(func() { close(c.gone) })
	c.w.mu.Lock()
	delete(c.w.open, c)
	c.w.mu.Unlock()
	return c.Conn.Close()
}

// callerHeader says who asks: the kit's stand-in for certificates.
const callerHeader = "Test-Member"

// client is the HTTP client of one member.
func (w *wires) client(member string) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		to, _, _ := strings.Cut(addr, ".node.edged")
		return w.dial(ctx, member, to, "http")
	}}
	return &http.Client{Transport: plainly{member, tr}}
}

// plainly asks https URLs over the wires as they are.
type plainly struct {
	member string
	*http.Transport
}

func (p plainly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	r.Header.Set(callerHeader, p.member)
	return p.Transport.RoundTrip(r)
}
