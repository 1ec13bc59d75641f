package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"

	"edged/internal/fault"
)

// ClientAt returns a client whose calls, whatever host of https their URLs name, go to the member that answers at an address (host:port, or
// https://host:port): for who knows a place and not who is there now. It is one of this fleet, proven as in Client's calls, or the call is
// Denied. Each call has a connection of its own. The error is Invalid for what is no address.
func (p *Peers) ClientAt(place string) (*http.Client, error) {
	addr, err := joinAddr(place)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: listening{p: p, Transport: &http.Transport{
			DialTLSContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dialAnyone(ctx, addr) },
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true,
			DisableKeepAlives:      true,
		}},
	}, nil
}

// dialAnyone returns a connection to whichever member answers at addr.
func (p *Peers) dialAnyone(ctx context.Context, addr string) (*tls.Conn, error) {
	if p.Left() != "" {
		return nil, errRemoved
	}
	conf := p.tlsConfig(protoH1)
	conf.InsecureSkipVerify = true // the address is no name: VerifyConnection decides, by the fleet's root
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		shown := s.PeerCertificates[0]
		_, err := shown.Verify(x509.VerifyOptions{Roots: p.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil || !p.fit(shown) {
			return fault.Newf(fault.Denied, "peer.dial", "what answers at %s is no member of this fleet that this node knows", addr)
		}
		return nil
	}
	return p.connect(ctx, addr, p.leaf.Load(), conf, func(shown *x509.Certificate) error {
		if !p.fit(shown) {
			return errNoMember
		}
		return nil
	})
}
