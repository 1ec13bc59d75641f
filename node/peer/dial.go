package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"

	"edged/internal/fault"
	"edged/internal/pki"
)

const dialTime = 5 * time.Second

// Client returns the client for URLs like https://<member ID>.node.edged/path (pki.Host). The name is resolved by Resolve,
// never by the DNS, and the answer comes from that very member or not at all. It has no overall timeout and follows no
// redirect; calls to one member share HTTP/2 connections. A member that is not known or cannot be reached is Unavailable, one
// that shows the certificate of another or was removed Denied; so is every call once this member's own has expired, or it was removed.
func (p *Peers) Client() *http.Client { return p.client }

func (p *Peers) newClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: listening{p: p, Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, fault.New(fault.Invalid, "peer.Client", "members are called by https alone")
			},
			DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				host, _, err := net.SplitHostPort(addr)
				member, ok := pki.NodeOfHost(host)
				if err != nil || !ok {
					return nil, fault.Newf(fault.Invalid, "peer.Client", "%.80q is not the name of a member", addr)
				}
				return p.dial(ctx, member, protoH2)
			},
			ForceAttemptHTTP2:      true,
			HTTP2:                  http2(),
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true, // the bytes that were sent, whatever they are
		}},
	}
}

// dial returns a connection to the member that speaks proto.
func (p *Peers) dial(ctx context.Context, member, proto string) (*tls.Conn, error) {
	if p.Left() != "" {
		return nil, errRemoved
	}
	own := p.leaf.Load()
	if end := own.Leaf.NotAfter; time.Now().After(end) {
		return nil, fault.Newf(fault.Denied, "peer.dial", "this member's certificate expired on %s", end.UTC().Format(time.DateOnly))
	}
	addr, ok := p.opt.Resolve(member)
	if !ok {
		return nil, fault.Newf(fault.Unavailable, "peer.dial", "the address of member %.80q is not known here", member)
	}
	conf := p.tlsConfig(proto)
	conf.ServerName, conf.RootCAs = pki.Host(member), p.pool
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != proto {
			return fault.Newf(fault.Unavailable, "peer.dial", "member %s does not speak %s", member, proto)
		}
		return p.meant(member, s.PeerCertificates[0])
	}
	return p.connect(ctx, addr, own, conf, func(shown *x509.Certificate) error { return p.meant(member, shown) })
}

// connect returns a connection to addr on which both have shown their certificates. conf verifies the other's, and is the call's own;
// still says once more that it is good when the connection is among those that a removal cuts.
func (p *Peers) connect(ctx context.Context, addr string, own *tls.Certificate, conf *tls.Config, still func(shown *x509.Certificate) error) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime+handshakeTime)
	defer cancel()
	raw, err := p.opt.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "peer.dial", err)
	}
	c := p.conns.add(raw, true)
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	t := tls.Client(c, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, dialFault(err)
	}
	shown := t.ConnectionState().PeerCertificates[0]
	p.conns.shook(c, memberOf(shown), shown)
	if err := still(shown); err != nil { // removed since the handshake looked
		c.Close()
		return nil, err
	}
	return t, nil
}

// dialFault gives the error of a handshake its code.
func dialFault(err error) error {
	var unfit *tls.CertificateVerificationError
	switch {
	case fault.CodeOf(err) != fault.Internal: // ours, or the context's
		return err
	case errors.As(err, &unfit):
		return fault.Wrap(fault.Denied, "peer.dial", err)
	}
	return fault.Wrap(fault.Unavailable, "peer.dial", err)
}

// meant checks that a verified certificate is that of the member we called.
func (p *Peers) meant(member string, cert *x509.Certificate) error {
	if memberOf(cert) != member || !p.fit(cert) {
		return fault.Newf(fault.Denied, "peer.dial", "what answers at the address of member %s is not, or no longer, that member", member)
	}
	return nil
}

// memberOf returns whom a certificate names, "" for nobody.
func memberOf(cert *x509.Certificate) string {
	member, _ := pki.NodeOf(cert)
	return member
}
