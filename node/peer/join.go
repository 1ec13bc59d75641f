package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

const joinTime = 30 * time.Second

// JoinOptions says how a node becomes a member.
type JoinOptions struct {
	Dir    string // required: DATA/fleet
	URL    string // required: https://host:port, or host:port, of a voter's peer listener
	Invite string // required: what "edged fleet invite" printed

	// Request says who joins: ID, Name, Labels, Peer, Gossip and KVEpoch. The rest is Join's.
	Request fleetwire.JoinRequest
	// Keep makes durable what a member needs besides its certificate (ring, gossip key), before the certificate is kept:
	// a node that stops between the two asks again. Required.
	Keep func(fleetwire.JoinAnswer) error

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil means the machine's network

	write writer // nil means disk.WriteFile; tests crash in it
}

// Join makes this node a member: it asks a voter, whose fleet the invite must be of, and keeps the certificate. It trusts no
// one but a certificate that the invite's authority signed, and sends the invite's secret to no one else (Denied). The
// voter's refusal has the voter's code and words. When it is not known whether an answer came, the same call again, with the
// same invite, is the same join. A node that is a member is a Conflict.
func Join(ctx context.Context, opt JoinOptions) (fleetwire.JoinAnswer, error) {
	none := fleetwire.JoinAnswer{}
	invite, err := fleetwire.ParseInvite(opt.Invite)
	addr, uerr := joinAddr(opt.URL)
	if opt.Dir == "" || opt.Keep == nil {
		err = errors.Join(err, fault.New(fault.Invalid, "peer.Join", "Dir or Keep is missing"))
	}
	if err := errors.Join(err, uerr); err != nil {
		return none, err
	}
	switch joined, err := Joined(opt.Dir); {
	case err != nil:
		return none, err
	case joined:
		return none, fault.New(fault.Conflict, "peer.Join", "this node is a member of a fleet already: start it without --join")
	}
	if opt.write == nil {
		opt.write = disk.WriteFile
	}
	if err := disk.Prepare(opt.Dir); err != nil {
		return none, err
	}
	node := opt.Request.ID
	key, csr, err := pending(opt.write, opt.Dir, node)
	if err != nil {
		return none, err
	}
	req := opt.Request
	req.InviteID, req.Secret, req.CSR = invite.ID, invite.Secret, csr
	answer, root, err := ask(ctx, opt, addr, invite.CA, req)
	if err != nil {
		return none, err
	}
	if _, err := pair(root, node, answer.CertPEM, key); err != nil {
		return none, fault.Newf(fault.Unavailable, "peer.Join", "the fleet answered with a certificate that does not fit: %s", fault.Detail(err))
	}
	if err := opt.Keep(answer); err != nil {
		return none, err
	}
	if err := keep(opt.write, opt.Dir, node, root, answer.CertPEM, key); err != nil {
		return none, err
	}
	if err := os.Remove(filepath.Join(opt.Dir, pendingFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, fault.Wrap(fault.Unavailable, "peer.Join", err)
	}
	return answer, nil
}

// joinAddr returns the host:port of --join.
func joinAddr(text string) (string, error) {
	addr := text
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		if u.Scheme != "https" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
			addr = ""
		} else {
			addr = u.Host
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return "", fault.Newf(fault.Invalid, "peer.Join", "%.200q is not the peer address of a member, like https://host:port", text)
	}
	return addr, nil
}

// ask sends the request to whoever answers at addr and proves to be of the fleet with that root, which it returns.
func ask(ctx context.Context, opt JoinOptions, addr, fingerprint string, req fleetwire.JoinRequest) (fleetwire.JoinAnswer, *x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	dial := opt.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	var root *x509.Certificate // of the one handshake
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS13,
				// The address proves nothing and the machine's authorities are not asked: VerifyConnection decides.
				InsecureSkipVerify: true,
				VerifyConnection: func(s tls.ConnectionState) (err error) {
					root, err = verifyFleet(s.PeerCertificates, fingerprint)
					return err
				},
			},
			TLSHandshakeTimeout:    handshakeTime,
			MaxResponseHeaderBytes: maxHeader,
			DisableKeepAlives:      true,
		},
	}
	var answer fleetwire.JoinAnswer
	err := post(ctx, client, "https://"+addr+fleetwire.PathJoin, req, &answer)
	if err != nil {
		return answer, nil, err
	}
	told, err := pki.ParseCertificate(answer.CAPEM)
	if err != nil || pki.Fingerprint(told) != fingerprint {
		return answer, nil, fault.New(fault.Unavailable, "peer.Join", "the fleet answered with another CA than it showed")
	}
	return answer, root, nil
}

// verifyFleet checks that a chain is that of a member of the fleet whose root has the fingerprint, and returns the root.
func verifyFleet(chain []*x509.Certificate, fingerprint string) (*x509.Certificate, error) {
	if len(chain) < 2 || pki.Fingerprint(chain[len(chain)-1]) != fingerprint {
		return nil, fault.New(fault.Denied, "peer.Join", "what answers there is not of the fleet that the invite is for: check --join, or ask for an invite there")
	}
	root := chain[len(chain)-1]
	pool := x509.NewCertPool()
	pool.AddCert(root)
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil || memberOf(chain[0]) == "" {
		return nil, fault.New(fault.Denied, "peer.Join", "what answers there shows no current certificate of a member of the fleet")
	}
	return root, nil
}
