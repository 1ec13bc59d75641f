package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ownCertificate makes a self-signed certificate for a name, as files and as a pool that trusts it.
func ownCertificate(t *testing.T, name string) (chain, key string, trust *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), trust
}

// --tls-dir: a routed name is served with the operator's certificate, every other with the local authority's; files that are replaced
// are taken into use without a restart.
func TestOperatorCertificates(t *testing.T) {
	t.Parallel()
	chain, key, trust := ownCertificate(t, "www.example.test")
	dir := write(t, map[string]string{"site.pem": chain, "site.key": key})
	n := start(t, t.TempDir(), "--tls-dir", dir)
	n.deploy(hello(t, "domains = [\"www.example.test\", \"other.example.test\"]\n"))
	for host, conf := range map[string]*tls.Config{"www.example.test": {RootCAs: trust}, "other.example.test": n.trust()} {
		if a, err := n.ask(n.client(n.info.HTTPS, conf), "GET", "https://"+host+"/", nil); err != nil || a.status != 200 {
			t.Errorf("%s: %v %d", host, err, a.status)
		}
	}
	chain, key, trust = ownCertificate(t, "www.example.test")
	for name, text := range map[string]string{"site.pem": chain, "site.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n.waits(func() bool {
		a, err := n.ask(n.client(n.info.HTTPS, &tls.Config{RootCAs: trust}), "GET", "https://www.example.test/", nil)
		return err == nil && a.status == 200
	}, "a certificate that was replaced is not taken into use")
	if out, code := runEdged(t, "run", "--data-dir", t.TempDir(), "--tls-dir", dir+"/none", "--control", "127.0.0.1:0", "--http", "127.0.0.1:0", "--https", "", "--admin", ""); code == 0 {
		t.Errorf("a directory that is not there: exit %d %s", code, out)
	}
}
