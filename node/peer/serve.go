package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"edged/internal/fault"
	"edged/internal/pki"
)

// The protocols of the listener, chosen by ALPN.
const (
	protoRaft = "edged-raft/1"
	protoH2   = "h2"
	protoH1   = "http/1.1"
)

const (
	maxShaking    = 256 // handshakes at once; more wait in the kernel's queue
	handshakeTime = 5 * time.Second
	recheckEvery  = 10 * time.Second
	grace         = 3 * time.Second // how long calls may take to end when this member stops
	maxHeader     = 64 << 10
)

// http2 bounds what calls may hold, and finds connections that are dead.
func http2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: 500,
		// One call whose body nobody reads must not hold up the others on its connection.
		MaxReceiveBufferPerConnection: 16 << 20,
		MaxReceiveBufferPerStream:     1 << 20,
		SendPingTimeout:               10 * time.Second,
		PingTimeout:                   10 * time.Second,
		WriteByteTimeout:              30 * time.Second,
	}
}

// Run serves ln, which it closes, renews this member's certificate, and cuts connections of removed members, until ctx is
// done. Then calls may end for three seconds, and every connection, dialled ones too, is closed. Run once.
func (p *Peers) Run(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx) // an accept that fails ends all
	var group sync.WaitGroup
	defer group.Wait()
	defer p.conns.end()
	defer cancel()
	web := newHandoff(ln.Addr())
	srv := &http.Server{
		Handler:           http.HandlerFunc(p.serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             http2(),
		// serve judges every request, also "OPTIONS *".
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(p.opt.Log.Handler(), slog.LevelDebug),
	}
	group.Go(func() { srv.Serve(web) }) // ends when srv is closed below
	group.Go(func() { p.renewals(ctx) })
	group.Go(func() { p.rechecks(ctx) })
	context.AfterFunc(ctx, func() { ln.Close() }) // wakes accept
	err := p.accept(ctx, ln, web, &group)
	cancel()
	if l := p.raft.Load(); l != nil {
		l.Close()
	}
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	if srv.Shutdown(late) != nil {
		srv.Close()
	}
	p.conns.end()
	p.calls.end()
	return err
}

func (p *Peers) rechecks(ctx context.Context) {
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Recheck()
		}
	}
}

// accept hands on connections until ctx is done, which gives nil, or ln is broken.
func (p *Peers) accept(ctx context.Context, ln net.Listener, web *handoff, group *sync.WaitGroup) error {
	slots := make(chan struct{}, maxShaking)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		raw, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				raw.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fault.Wrap(fault.Unavailable, "peer.accept", err)
		case err != nil: // out of descriptors, say: it passes
			p.opt.Log.Warn("cannot accept a connection", "err", err)
			<-slots
			if !pause(ctx, 100*time.Millisecond) {
				return nil
			}
			continue
		}
		c := p.conns.add(raw, false)
		group.Go(func() { // ends within handshakeTime
			defer func() { <-slots }()
			hctx, cancel := context.WithTimeout(ctx, handshakeTime)
			defer cancel()
			if err := p.shake(hctx, c, web); err != nil {
				c.Close()
				p.opt.Log.Debug("connection refused", "peer", c.RemoteAddr().String(), "err", err)
			}
		})
	}
}

// pause waits, and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// tlsConfig is what both sides have in common. protos are the protocols in order of preference.
func (p *Peers) tlsConfig(protos ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: protos, SessionTicketsDisabled: true}
}

// shake learns who is there and hands the connection to whoever speaks its protocol.
func (p *Peers) shake(ctx context.Context, c *conn, web *handoff) error {
	conf := p.tlsConfig(protoRaft, protoH2, protoH1)
	conf.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.leaf.Load(), nil }
	conf.ClientAuth, conf.ClientCAs = tls.VerifyClientCertIfGiven, p.pool
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		switch {
		case len(s.PeerCertificates) == 0 || p.fit(s.PeerCertificates[0]):
			return nil
		case s.NegotiatedProtocol != protoRaft && p.gone(s.PeerCertificates[0]):
			return nil // to be told so
		}
		return errNoMember
	}
	t := tls.Server(c, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	state := t.ConnectionState()
	cert, member := leafOf(state), ""
	kept := cert
	if cert != nil {
		member, _ = pki.NodeOf(cert) // VerifyConnection has asked
		if !p.fit(cert) && p.gone(cert) {
			kept = nil // a short connection, which Recheck leaves alone
		}
	}
	if !p.conns.shook(c, member, kept) {
		return fault.New(fault.Limited, "peer.shake", "too many connections of this caller")
	}
	if kept != nil && !p.fit(kept) { // removed after the handshake looked and before Recheck could see the connection
		return errNoMember
	}
	var err error
	switch {
	case state.NegotiatedProtocol != protoRaft:
		err = web.offer(ctx, t)
	case kept == nil:
		err = errNoMember
	default:
		err = p.offerRaft(ctx, &RaftConn{Conn: t, Member: member})
	}
	return err
}

var errNoMember = fault.New(fault.Denied, "peer.shake", "the other side is not, or no longer, a member of this fleet")

// leafOf returns the certificate that was shown and verified, nil for none.
func leafOf(s tls.ConnectionState) *x509.Certificate {
	if len(s.VerifiedChains) == 0 {
		return nil
	}
	return s.PeerCertificates[0]
}

// handoff is a listener of connections that have shaken hands.
type handoff struct {
	addr  net.Addr
	ready chan net.Conn // unbuffered: who offers keeps a connection until it is taken
	done  chan struct{} // closed by Close
	once  sync.Once
}

func newHandoff(addr net.Addr) *handoff {
	return &handoff{addr: addr, ready: make(chan net.Conn), done: make(chan struct{})}
}

func (h *handoff) offer(ctx context.Context, c net.Conn) error {
	select {
	case h.ready <- c:
		return nil
	case <-h.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Accept returns the next connection, net.ErrClosed after Close.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.ready:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Connections that were taken stay open.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr returns the address of the member's listener.
func (h *handoff) Addr() net.Addr { return h.addr }
