package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"

	"edged/internal/fault"
)

const (
	maxPEM  = 16 << 10 // bytes of one certificate, key or request
	maxNode = 63       // a member's ID is one label of a DNS name

	scheme   = "edged"
	uriHost  = "node"
	nameTail = ".node.edged"
)

// ValidNode reports whether id can be a member's: "n-" and lower-case letters, digits and hyphens, at most 63 bytes, no
// hyphen at the end.
func ValidNode(id string) bool {
	rest, ok := strings.CutPrefix(id, "n-")
	if !ok || rest == "" || len(id) > maxNode || strings.HasSuffix(id, "-") {
		return false
	}
	for i := range len(rest) {
		if c := rest[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Host returns the DNS name by which members call member node. It is never looked up in the DNS.
func Host(node string) string { return node + nameTail }

// NodeOfHost returns the member whose name Host made, false for any other name.
func NodeOfHost(host string) (string, bool) {
	node, ok := strings.CutSuffix(host, nameTail)
	return node, ok && ValidNode(node)
}

func memberURI(node string) *url.URL {
	return &url.URL{Scheme: scheme, Host: uriHost, Path: "/" + node}
}

// NodeOf returns the member that a leaf names. It says nothing about who signed it: verify the chain first. A certificate
// that is not of the form that Sign makes is Denied.
func NodeOf(c *x509.Certificate) (string, error) {
	denied := fault.New(fault.Denied, "pki.NodeOf", "the certificate names no member of a fleet")
	if c == nil || c.IsCA || len(c.URIs) != 1 || len(c.DNSNames) != 1 {
		return "", denied
	}
	node, ok := NodeOfHost(c.DNSNames[0])
	if !ok || c.URIs[0].String() != memberURI(node).String() {
		return "", denied
	}
	return node, nil
}

// SerialOf returns a certificate's number in lower-case hexadecimal: what revocations name it by.
func SerialOf(c *x509.Certificate) string { return SerialText(c.SerialNumber) }

// SerialText is SerialOf for a number.
func SerialText(n *big.Int) string { return n.Text(16) }

// Fingerprint returns the SHA-256 of a certificate's DER in lower-case hexadecimal.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// NewRequest makes a P-256 key and a request to sign it for member node. The key is a secret and stays with the member. An
// ID that ValidNode refuses is Invalid.
func NewRequest(node string) (key, csr []byte, err error) {
	if !ValidNode(node) {
		return nil, nil, fault.Newf(fault.Invalid, "pki.NewRequest", "%.80q cannot be the ID of a fleet's member", node)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, "pki.NewRequest", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{"edged"}}, URIs: []*url.URL{memberURI(node)}}, private)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, "pki.NewRequest", err)
	}
	if key, err = keyPEM(private); err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// parseRequest returns the key that a request is for. Everything else it says is checked and dropped.
func parseRequest(text []byte, node string) (*ecdsa.PublicKey, error) {
	invalid := func(why string) error { return fault.New(fault.Invalid, "pki.Sign", "certificate request: "+why) }
	if !ValidNode(node) {
		return nil, fault.Newf(fault.Invalid, "pki.Sign", "%.80q cannot be the ID of a fleet's member", node)
	}
	der, ok := block(text, "CERTIFICATE REQUEST")
	if !ok {
		return nil, invalid("no single PEM block of that kind within 16 KiB")
	}
	csr, err := x509.ParseCertificateRequest(der)
	switch {
	case err != nil:
		return nil, invalid("malformed")
	case csr.CheckSignature() != nil:
		return nil, invalid("it is not signed by the key it is for")
	case len(csr.URIs) != 1 || csr.URIs[0].String() != memberURI(node).String():
		return nil, invalid("it was made for another member")
	}
	key, ok := csr.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, invalid("it is not for a P-256 key")
	}
	return key, nil
}

// ParseCertificate reads exactly one certificate. Anything else is a Conflict.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	der, ok := block(text, "CERTIFICATE")
	if !ok {
		return nil, fault.New(fault.Conflict, "pki.ParseCertificate", "no single PEM certificate within 16 KiB")
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fault.New(fault.Conflict, "pki.ParseCertificate", "the certificate is malformed")
	}
	return c, nil
}

// ParseKey reads the private key that NewRequest or KeyPEM told. Anything else is a Conflict, whose text holds nothing of it.
func ParseKey(text []byte) (*ecdsa.PrivateKey, error) {
	conflict := fault.New(fault.Conflict, "pki.ParseKey", "no single PEM block with a PKCS #8 key for P-256 within 16 KiB")
	der, ok := block(text, "PRIVATE KEY")
	if !ok {
		return nil, conflict
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, conflict
	}
	key, ok := any.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, conflict
	}
	return key, nil
}

// block returns the bytes of the one PEM block that text consists of.
func block(text []byte, kind string) ([]byte, bool) {
	if len(text) > maxPEM {
		return nil, false
	}
	b, rest := pem.Decode(text)
	if b == nil || b.Type != kind || strings.TrimSpace(string(rest)) != "" {
		return nil, false
	}
	return b.Bytes, true
}
