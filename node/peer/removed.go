package peer

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edged/internal/fault"
)

// A voter tells a node that was removed so, whatever that asks: with this status and this header, over a connection on which both have
// shown their certificates. No handler of this program answers so.
const (
	statusRemoved    = http.StatusGone
	headerMembership = "Edged-Membership"
	membershipEnded  = "removed"
)

// maxRemoved bounds the accepted connections of a node that was removed. Each lives as long as one without certificate.
const maxRemoved = 4

var errRemoved = fault.New(fault.Denied, "peer", "this node was removed from its fleet")

// gone reports whether a certificate, whose chain TLS has verified, is that of a node which was removed for certain.
func (p *Peers) gone(cert *x509.Certificate) bool {
	member := memberOf(cert)
	return member != "" && p.opt.Removed != nil && p.opt.Removed(member)
}

// tellRemoved answers who was removed, and ends the connection.
func tellRemoved(w http.ResponseWriter) {
	w.Header().Set(headerMembership, membershipEnded)
	w.Header().Set("Connection", "close")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(statusRemoved)
	_, _ = w.Write([]byte("this node was removed from the fleet\n")) // who left asks again
}

// listening reads in every answer of another member whether that says this one was removed.
type listening struct {
	*http.Transport
	p *Peers
}

// RoundTrip is http.RoundTripper's.
func (l listening) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.Transport.RoundTrip(r)
	if err == nil && resp.StatusCode == statusRemoved && resp.Header.Get(headerMembership) == membershipEnded && resp.TLS != nil {
		// A voter's word alone counts: it has it from the control log, and any other member could be believed to empty a whole fleet.
		if by := memberOf(resp.TLS.PeerCertificates[0]); slices.Contains(l.p.opt.Voters(), by) {
			l.p.Leave("voter " + by + " said so")
		}
	}
	return resp, err
}

// Leave says that this member was removed from the fleet, and how that is known. It is kept on disk before Options.OnRemoved is told, and
// from then on nobody is called or answered. Calling it again does nothing.
func (p *Peers) Leave(how string) {
	how += ", " + time.Now().UTC().Format(time.RFC3339)
	if !p.left.CompareAndSwap(nil, &how) {
		return
	}
	if err := p.opt.write(filepath.Join(p.opt.Dir, removedFile), []byte(how+"\n"), 0o600); err != nil {
		p.opt.Log.Error("that this node was removed from its fleet is not on disk", "err", err, "do", fault.CheckDisk)
	}
	p.Recheck()
	if p.opt.OnRemoved != nil {
		p.opt.OnRemoved(how)
	}
}

// Left returns how this member knows that it was removed from the fleet, "" if it does not.
func (p *Peers) Left() string {
	if how := p.left.Load(); how != nil {
		return *how
	}
	return ""
}

// readLeft takes over what Leave has kept before a restart.
func (p *Peers) readLeft() error {
	b, err := readFile(filepath.Join(p.opt.Dir, removedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, "peer.Open", err)
	}
	how := strings.TrimSpace(string(b))
	p.left.Store(&how)
	return nil
}
