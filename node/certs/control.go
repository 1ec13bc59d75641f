package certs

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"edged/internal/fault"
)

// Hosts has the one leaf of a listener whose names and addresses are fixed, such as the control listener. Safe for
// concurrent use.
type Hosts struct {
	authority *Authority
	hosts     []string
	now       atomic.Pointer[tls.Certificate]
	mu        sync.Mutex // one goroutine renews
}

// Hosts makes the leaf for hosts, which are DNS names or IP addresses without a port. Every host that is neither is
// reported.
func (a *Authority) Hosts(hosts ...string) (*Hosts, error) {
	h := &Hosts{authority: a}
	var faults []error
	for _, host := range hosts {
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		if net.ParseIP(host) == nil && !validName(host) {
			faults = append(faults, fault.Newf(fault.Invalid, "certs.Hosts", "%.255q is neither a DNS name nor an IP address", host))
			continue
		}
		h.hosts = append(h.hosts, host)
	}
	if len(hosts) == 0 {
		faults = append(faults, fault.New(fault.Invalid, "certs.Hosts", "no host is given"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	cert, err := a.leaf(h.hosts, time.Now())
	if err != nil {
		return nil, err
	}
	h.now.Store(cert)
	return h, nil
}

// GetCertificate is for a tls.Config. It makes the leaf anew when it is due.
func (h *Hosts) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert := h.now.Load()
	if now := time.Now(); h.authority.due(cert, now) && h.mu.TryLock() {
		defer h.mu.Unlock()
		fresh, err := h.authority.leaf(h.hosts, now)
		if err != nil {
			if now.After(cert.Leaf.NotAfter) {
				return nil, err
			}
			return cert, nil // the old one is still good; the next handshake tries again
		}
		h.now.Store(fresh)
		return fresh, nil
	}
	return cert, nil
}

// validName reports whether name is a lower-case DNS name without a trailing dot (attachments §2), and no IPv4 address
// that looks like one.
func validName(name string) bool {
	if name == "" || len(name) > 253 || net.ParseIP(name) != nil {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}
