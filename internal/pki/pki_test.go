package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func authority(t testing.TB) *Authority {
	t.Helper()
	a, err := New(now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sign(t testing.TB, a *Authority, node string) (Leaf, *x509.Certificate) {
	t.Helper()
	_, csr, err := NewRequest(node)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Sign(csr, node, now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCertificate(leaf.PEM)
	if err != nil {
		t.Fatal(err)
	}
	return leaf, c
}

// A leaf proves one member, as client and as server, for 30 days, to whoever trusts the root.
func TestLeafProvesItsMember(t *testing.T) {
	a := authority(t)
	leaf, c := sign(t, a, "n-one")
	if node, err := NodeOf(c); node != "n-one" || err != nil {
		t.Errorf("NodeOf: %q, %v", node, err)
	}
	if leaf.Serial != SerialOf(c) || !leaf.NotAfter.Equal(c.NotAfter) || !c.NotAfter.Equal(now.Add(30*24*time.Hour)) {
		t.Errorf("leaf %s until %v, certificate %s until %v", leaf.Serial, leaf.NotAfter, SerialOf(c), c.NotAfter)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.CertPEM())
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: pool, DNSName: Host("n-one"), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			t.Errorf("use %d: %v", use, err)
		}
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: pool, DNSName: Host("n-two"), CurrentTime: now}); err == nil {
		t.Error("the leaf proves another member")
	}
	if _, other := sign(t, a, "n-one"); SerialOf(other) == leaf.Serial {
		t.Error("two leaves have one serial")
	}
	stranger := x509.NewCertPool()
	stranger.AppendCertsFromPEM(authority(t).CertPEM())
	if _, err := c.Verify(x509.VerifyOptions{Roots: stranger, CurrentTime: now}); err == nil {
		t.Error("another fleet's root vouches for the leaf")
	}
}

func TestAuthorityIsReadBack(t *testing.T) {
	a := authority(t)
	key, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse(a.CertPEM(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.Fingerprint() != b.Fingerprint() || len(a.Fingerprint()) != 64 || !bytes.Equal(a.CertPEM(), b.CertPEM()) {
		t.Errorf("fingerprints %s and %s", a.Fingerprint(), b.Fingerprint())
	}
	_, c := sign(t, b, "n-one")
	if err := c.CheckSignatureFrom(a.root); err != nil {
		t.Error(err)
	}
	otherKey, _ := authority(t).KeyPEM()
	leafKey, csr, _ := NewRequest("n-one")
	leaf, err := a.Sign(csr, "n-one", now)
	if err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][2][]byte{
		"another key": {a.CertPEM(), otherKey}, "a leaf": {leaf.PEM, leafKey}, "no certificate": {nil, key}, "no key": {a.CertPEM(), nil},
		"two certificates": {append(a.CertPEM(), a.CertPEM()...), key}, "too long": {append(a.CertPEM(), bytes.Repeat([]byte(" "), maxPEM)...), key},
	} {
		if _, err := Parse(parts[0], parts[1]); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
}

// A request gets a leaf only for the member that the authority was told, and for a key of the one kind.
func TestUnfitRequestsAreRefused(t *testing.T) {
	a := authority(t)
	_, csr, _ := NewRequest("n-one")
	request := func(key any, node string) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{memberURI(node)}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	forged, _ := pem.Decode(csr)
	forged.Bytes[len(forged.Bytes)-1] ^= 1
	for name, tt := range map[string]struct {
		csr  []byte
		node string
	}{
		"another member": {csr, "n-two"}, "a bad ID": {csr, "n-One"}, "noise": {[]byte("noise"), "n-one"}, "nothing": {nil, "n-one"},
		"P-384": {request(p384, "n-one"), "n-one"}, "Ed25519": {request(ed, "n-one"), "n-one"},
		"forged": {pem.EncodeToMemory(forged), "n-one"}, "too long": {append(csr, bytes.Repeat([]byte("\n"), maxPEM)...), "n-one"},
	} {
		if _, err := a.Sign(tt.csr, tt.node, now); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
	if _, err := a.Sign(csr, "n-one", now.Add(rootLife+time.Hour)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("after the root's end: %v", err)
	}
	if leaf, err := a.Sign(csr, "n-one", now.Add(rootLife-time.Hour)); err != nil || leaf.NotAfter.After(a.root.NotAfter) {
		t.Errorf("a leaf until %v, the root until %v, %v", leaf.NotAfter, a.root.NotAfter, err)
	}
}

func TestNodeIDs(t *testing.T) {
	for _, id := range []string{"n-a", "n-2b-c", "n-" + strings.Repeat("a", 61)} {
		if got, ok := NodeOfHost(Host(id)); !ValidNode(id) || !ok || got != id {
			t.Errorf("%q is refused", id)
		}
	}
	for _, id := range []string{"", "n-", "n-A", "n-a-", "x-a", "n-a.b", "n-a/b", "n-\x00", "n-" + strings.Repeat("a", 62)} {
		if _, ok := NodeOfHost(Host(id)); ValidNode(id) || ok {
			t.Errorf("%q is taken", id)
		}
		if _, _, err := NewRequest(id); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("request for %q: %v", id, err)
		}
	}
	if _, err := NodeOf(authority(t).root); fault.CodeOf(err) != fault.Denied {
		t.Errorf("the root names a member: %v", err)
	}
}
