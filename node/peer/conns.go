package peer

import (
	"crypto/x509"
	"net"
	"sync"
	"time"

	"edged/internal/pki"
)

const (
	maxPerMember = 64               // accepted connections of one member; each carries many calls
	maxAnonymous = 64               // accepted connections that show no certificate
	anonymous    = 30 * time.Second // how long one of those lives: a join is over long before
)

// conns has every connection of this member, accepted and dialled, from before its handshake.
type conns struct {
	mu       sync.Mutex // guards all below, and the fields of a conn that say so
	open     map[*conn]struct{}
	accepted map[string]int // by member, "" for those without certificate
	closed   bool           // whatever is added is closed at once
}

// conn is the bare connection below a TLS one. Closing it cuts without a farewell, and so never waits.
type conn struct {
	net.Conn
	set    *conns
	dialed bool

	member string            // who shook hands, "" before and for those without certificate; guarded by set.mu
	cert   *x509.Certificate // what it showed; guarded by set.mu
	counts bool              // it is in set.accepted; guarded by set.mu
	life   *time.Timer       // ends one of who is no member; guarded by set.mu
}

func (s *conns) add(raw net.Conn, dialed bool) *conn {
	c := &conn{Conn: raw, set: s, dialed: dialed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		raw.Close()
		return c
	}
	if s.open == nil {
		s.open, s.accepted = map[*conn]struct{}{}, map[string]int{}
	}
	s.open[c] = struct{}{}
	return c
}

// shook notes who is at the other end and reports whether there is room for one more of them. cert is nil for who is no member; such a
// connection is short. member then names one that was.
func (s *conns) shook(c *conn, member string, cert *x509.Certificate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; !open {
		return false
	}
	c.member, c.cert = member, cert
	if c.dialed {
		return true
	}
	limit := maxPerMember
	if cert == nil {
		if limit = maxAnonymous; member != "" {
			limit = maxRemoved
		}
		c.life = time.AfterFunc(anonymous, func() { c.Close() })
	}
	if s.accepted[member] >= limit {
		return false
	}
	s.accepted[member]++
	c.counts = true
	return true
}

// Close cuts the connection. Calling it again does nothing more.
func (c *conn) Close() error {
	s := c.set
	s.mu.Lock()
	delete(s.open, c)
	if c.life != nil {
		c.life.Stop()
	}
	if c.counts {
		c.counts = false
		if s.accepted[c.member]--; s.accepted[c.member] == 0 {
			delete(s.accepted, c.member)
		}
	}
	s.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the open connections whose certificate is not (any more) fit, and returns how many.
func (s *conns) cut(fit func(*x509.Certificate) bool) int {
	s.mu.Lock()
	shown := map[*conn]*x509.Certificate{}
	for c := range s.open {
		if c.cert != nil {
			shown[c] = c.cert
		}
	}
	s.mu.Unlock() // fit and Close take their time and the lock
	n := 0
	for c, cert := range shown {
		if !fit(cert) {
			c.Close()
			n++
		}
	}
	return n
}

// end closes all connections, and all to come.
func (s *conns) end() {
	s.mu.Lock()
	s.closed = true
	var all []*conn
	for c := range s.open {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// fit reports whether a certificate, whose chain TLS has verified, is that of a member still. Nobody is for a node that
// is none itself.
func (p *Peers) fit(cert *x509.Certificate) bool {
	member, err := pki.NodeOf(cert)
	return err == nil && p.Left() == "" && time.Now().Before(cert.NotAfter) && p.opt.Allowed(member, pki.SerialOf(cert))
}

// Recheck asks Allowed about every open connection, in either direction, and cuts those of who is no member any more and
// those whose certificate has expired, with all calls and streams on them. Run does the same every ten seconds.
func (p *Peers) Recheck() {
	if n := p.conns.cut(p.fit); n > 0 {
		p.opt.Log.Info("cut connections of removed members or with expired certificates", "count", n)
	}
}
