package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"time"

	"edged/internal/fault"
)

const (
	rootLife  = 10 * 365 * 24 * time.Hour
	clockSkew = time.Hour // members whose clocks are a little behind accept a fresh certificate

	// LeafLife is how long a member's certificate is good for.
	LeafLife = 30 * 24 * time.Hour
)

// Authority signs the members' leaves. Immutable; safe for concurrent use.
type Authority struct {
	root *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Leaf is a signed certificate of a member.
type Leaf struct {
	PEM      []byte // the leaf alone, without the root; the caller's
	Serial   string // as SerialOf tells it
	NotAfter time.Time
}

// New makes an authority with a root of its own: ECDSA P-256, ten years from now.
func New(now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "pki.New", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The number lets people tell fleets apart.
		Subject:               pkix.Name{CommonName: "edged fleet CA " + SerialText(serial)[:8], Organization: []string{"edged"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(rootLife),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "pki.New", err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "pki.New", err)
	}
	return &Authority{root: root, key: key}, nil
}

// Parse reads back what CertPEM and KeyPEM told. Parts that are no CA or do not belong together are refused (Conflict); the
// error holds nothing of the key.
func Parse(certPEM, keyPEM []byte) (*Authority, error) {
	root, err := ParseCertificate(certPEM)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(root.PublicKey) {
		return nil, fault.New(fault.Conflict, "pki.Parse", "the fleet's CA certificate and its key do not belong together")
	}
	if !root.IsCA || !root.BasicConstraintsValid {
		return nil, fault.New(fault.Conflict, "pki.Parse", "the fleet's CA certificate is not that of an authority")
	}
	return &Authority{root: root, key: key}, nil
}

// CertPEM returns the root's certificate. The slice is the caller's.
func (a *Authority) CertPEM() []byte { return certPEM(a.root.Raw) }

// KeyPEM returns the root's private key, a secret, as PKCS #8. The slice is the caller's.
func (a *Authority) KeyPEM() ([]byte, error) { return keyPEM(a.key) }

// Fingerprint returns what an invite names the root by: see the function Fingerprint.
func (a *Authority) Fingerprint() string { return Fingerprint(a.root) }

// Sign makes the leaf of member node for the key in a request that NewRequest made for the same node. It is good for client
// and server, for LeafLife from now and never longer than the root. A request that is malformed, made for another node, not
// signed by its own key or not for a P-256 key is Invalid; a root that has expired is Unavailable.
func (a *Authority) Sign(csrPEM []byte, node string, now time.Time) (Leaf, error) {
	key, err := parseRequest(csrPEM, node)
	if err != nil {
		return Leaf{}, err
	}
	if now.After(a.root.NotAfter) {
		return Leaf{}, fault.Newf(fault.Unavailable, "pki.Sign", "the fleet's CA expired on %s: it signs nothing more", a.root.NotAfter.UTC().Format(time.DateOnly))
	}
	serial, err := newSerial()
	if err != nil {
		return Leaf{}, err
	}
	end := now.Add(LeafLife)
	if end.After(a.root.NotAfter) {
		end = a.root.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"edged"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		URIs:                  []*url.URL{memberURI(node)},
		DNSNames:              []string{Host(node)},
	}, a.root, key, a.key)
	if err != nil {
		return Leaf{}, fault.Wrap(fault.Internal, "pki.Sign", err)
	}
	return Leaf{PEM: certPEM(der), Serial: SerialText(serial), NotAfter: end.Truncate(time.Second).UTC()}, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "pki.keyPEM", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// newSerial draws a number that is never drawn again.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "pki.serial", err)
	}
	return n.SetBit(n, 126, 1), nil // always of the same length
}
