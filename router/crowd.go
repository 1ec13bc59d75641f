package router

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// crowd holds the open connections within their bounds: of all, and of one client's address. Over the bound of all, one
// that waits for a request gives its place to the newcomer; if none does, the newcomer is refused.
type crowd struct {
	max, perClient int
	trusted        []netip.Prefix // proxies: many clients come from one address

	mu      sync.Mutex // guards the fields below
	conns   map[*conn]struct{}
	leaving int // of those, told to go to make room
	clients map[netip.Addr]int
}

// shedSample is how many connections are looked at for one that waits: of a map, whose order is random, so that the cost of a
// connection does not grow with their number.
const shedSample = 64

// shedIdle is how long a connection must have waited to be told to go. One that has just come has its request on the way.
const shedIdle = 100 * time.Millisecond

// enlist counts a connection in; false if there are too many.
func (w *crowd) enlist(c *conn, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.conns)-w.leaving >= w.max && !w.shedLocked(now) {
		return false
	}
	if c.source = peerOf(c.bare); within(w.trusted, c.source) {
		c.source = netip.Addr{}
	}
	if c.source.IsValid() {
		if w.clients[c.source] >= w.perClient {
			return false
		}
		w.clients[c.source]++
	}
	w.conns[c] = struct{}{}
	return true
}

func (w *crowd) delist(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	if c.shed {
		w.leaving--
	}
	w.releaseLocked(c)
}

// releaseLocked gives a client's share back.
func (w *crowd) releaseLocked(c *conn) {
	if !c.source.IsValid() {
		return
	}
	if w.clients[c.source]--; w.clients[c.source] == 0 {
		delete(w.clients, c.source)
	}
	c.source = netip.Addr{}
}

// shed has one connection that waits for a request close; false if none was found.
func (w *crowd) shed(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shedLocked(now)
}

// shedLocked takes the one that has waited longest of a sample.
func (w *crowd) shedLocked(now time.Time) bool {
	var longest *conn
	var since time.Time
	looked := 0
	for c := range w.conns {
		if looked++; looked > shedSample {
			break
		}
		if c.shed {
			continue
		}
		if at, waits := c.idleSince(); waits && now.Sub(at) >= shedIdle && (longest == nil || at.Before(since)) {
			longest, since = c, at
		}
	}
	if longest == nil {
		return false
	}
	if !longest.closeIfIdle() {
		return false // its request has come
	}
	longest.shed = true
	w.releaseLocked(longest)
	w.leaving++
	longest.r.opt.Metrics.connsShed.Inc()
	return true
}

func (w *crowd) each(do func(*conn)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		do(c)
	}
}

// What a client over the bound is told, before anything was read of it. Between the two are the seconds to stay away.
const (
	crowdedHead = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n" +
		"Edged-Error: overloaded\r\nRetry-After: "
	crowdedTail = "\r\nContent-Length: 11\r\nConnection: close\r\n\r\noverloaded\n"
)

// refuseConn turns a connection away at next to no cost: over TLS it is only closed. What the client has sent already is
// read, else closing would reset the connection and the answer might not be read.
func refuseConn(nc net.Conn, secure bool) {
	defer func() { _ = nc.Close() }()
	if secure {
		return
	}
	if err := nc.SetDeadline(time.Now().Add(5 * time.Millisecond)); err != nil { // a new socket takes so little at once
		return
	}
	if _, err := nc.Write([]byte(crowdedHead + strconv.Itoa(1+rand.IntN(4)) + crowdedTail)); err != nil {
		return
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
		if raw, err := tcp.SyscallConn(); err == nil {
			var scratch [4096]byte
			_ = raw.Read(func(fd uintptr) bool {
				_, _ = syscall.Read(int(fd), scratch[:])
				return true
			})
		}
	}
}

// acceptPause is waited for after a failure to accept, twice as long after each further one, up to the longest.
const (
	acceptPause        = 5 * time.Millisecond
	longestAcceptPause = time.Second
	acceptLogEvery     = 10 * time.Second
)

// acceptFailures is what accept remembers of failures in a row.
type acceptFailures struct {
	pause  time.Duration
	logged time.Time
}

// failed waits for better times; false if stop came first. Without descriptors left a connection that waits for a request
// makes room, and the stores can go on.
func (f *acceptFailures) failed(stop context.Context, r *Router, err error) bool {
	f.pause = min(max(2*f.pause, acceptPause), longestAcceptPause)
	now := time.Now()
	r.opt.Metrics.acceptFailed.Inc()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		for range shedAtOnce {
			r.crowd.shed(now)
		}
	}
	if now.Sub(f.logged) >= acceptLogEvery {
		f.logged = now
		r.opt.Log.Warn("accept failed", "err", err, "connections", r.crowd.len())
	}
	timer := time.NewTimer(f.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop.Done():
		return false
	}
}

// shedAtOnce is how many connections go for want of descriptors: of what they free the stores want some too.
const shedAtOnce = 16

func (w *crowd) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}
