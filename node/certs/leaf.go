package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"time"

	"edged/internal/fault"
)

const (
	leafLife  = 90 * 24 * time.Hour
	leafRenew = 30 * 24 * time.Hour // a leaf with less than this left is made anew
)

// leaf makes a certificate with a key of its own for hosts, names or IP addresses, valid from a little before now.
func (a *Authority) leaf(hosts []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "certs.leaf", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"edged"}}, // the names are in the alternative names alone: they may be long
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     earlier(now.Add(leafLife), a.root.NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "certs.leaf", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "certs.leaf", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.root.Raw}, PrivateKey: key, Leaf: parsed}, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// due reports whether a certificate has to be made anew. Close to the root's own end nothing longer can be made, so
// there a leaf is used up to its last day.
func (a *Authority) due(c *tls.Certificate, now time.Time) bool {
	left := c.Leaf.NotAfter.Sub(now)
	if c.Leaf.NotAfter.Equal(a.root.NotAfter) {
		return left < 0
	}
	return left < leafRenew
}
