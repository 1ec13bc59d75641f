package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair returns the files of a certificate of some authority's for names, as an operator would have them.
func pair(t testing.TB, at time.Time, names ...string) (chain, key []byte) {
	t.Helper()
	c, err := open(t, t.TempDir()).leaf(names, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, der := range c.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func put(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func openDir(t testing.TB, dir string) (*Dir, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	d, err := OpenDir(DirOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d, log
}

// the first name of the certificate for a name, "" without one
func served(d *Dir, name string) string {
	if c := d.For(name); c != nil {
		return c.Leaf.DNSNames[0]
	}
	return ""
}

// Exact names go before wildcards, which stand for one label; among several certificates the one that lasts longest; keys
// in every usual form, in a file of their own or with the chain.
func TestOperatorCertificates(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	chain, key := pair(t, now, "www.example.test", "b.example.test")
	put(t, dir, "a.pem", chain)
	put(t, dir, "a.key", key)
	chain, key = pair(t, now, "*.example.test")
	put(t, dir, "wild.pem", append(key, chain...))
	chain, _ = pair(t, now.Add(-time.Hour), "old.test", "www.example.test")
	_, der := pair(t, now, "x")
	block, _ := pem.Decode(der)
	parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	ec, _ := x509.MarshalECPrivateKey(parsed.(*ecdsa.PrivateKey))
	put(t, dir, "mismatch.pem", append(chain, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ec})...))
	put(t, dir, ".hidden.pem", chain)
	put(t, dir, "readme.txt", chain)
	d, log := openDir(t, dir)
	for name, want := range map[string]string{
		"www.example.test": "www.example.test", "b.example.test": "www.example.test", "c.example.test": "*.example.test",
		"d.c.example.test": "", "example.test": "", "old.test": "", "": "",
	} {
		if got := served(d, name); got != want {
			t.Errorf("%q is served by %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(log.String(), "do not belong together") || !strings.Contains(log.String(), "mismatch") {
		t.Errorf("the log says %s", log)
	}
	n := names(t, open(t, t.TempDir()), NamesOptions{Allowed: func(name string) bool { return strings.HasSuffix(name, ".example.test") }, Operator: d})
	for sni, want := range map[string]string{"WWW.example.test.": "www.example.test", "z.example.test": "*.example.test", "a.b.example.test": "a.b.example.test", "old.test": "edge.localhost"} {
		if c, err := n.GetCertificate(hello(sni)); err != nil || c.Leaf.DNSNames[0] != want {
			t.Errorf("%q: %v %v, want %s", sni, c.Leaf.DNSNames, err, want)
		}
	}
}

// A change counts without a restart; what is broken keeps the old certificate and is said once; what is removed goes.
func TestOperatorCertificatesReload(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	d, log := openDir(t, dir)
	load := func() {
		t.Helper()
		if err := d.load(now); err != nil {
			t.Fatal(err)
		}
	}
	chain, key := pair(t, now, "one.test")
	put(t, dir, "a.pem", chain)
	load()
	if served(d, "one.test") != "" || !strings.Contains(log.String(), "no private key") {
		t.Errorf("half a pair: %s", log)
	}
	put(t, dir, "a.key", key)
	load()
	first := d.For("one.test")
	if first == nil {
		t.Fatalf("not loaded: %s", log)
	}
	load()
	if d.For("one.test") != first {
		t.Error("an unchanged pair was read again")
	}
	other, otherKey := pair(t, now, "one.test", "two.test")
	for _, broken := range [][]byte{nil, []byte("garbage"), other, chain[:len(chain)/3], bytes.Repeat([]byte("x"), maxPEM+1)} {
		put(t, dir, "a.pem", broken)
		log.Reset()
		for range 3 {
			load()
		}
		if d.For("one.test") != first || strings.Count(log.String(), "cannot be used") > 1 {
			t.Errorf("%.20q: serves %v, log %s", broken, served(d, "one.test"), log)
		}
	}
	put(t, dir, "a.pem", other)
	put(t, dir, "a.key", otherKey)
	load()
	if c := d.For("two.test"); c == nil || d.For("one.test") != c {
		t.Errorf("the new pair does not count: %s", log)
	}
	expired, expiredKey := pair(t, now.Add(-200*24*time.Hour), "one.test")
	put(t, dir, "a.pem", append(expired, expiredKey...))
	if err := os.Remove(filepath.Join(dir, "a.key")); err != nil {
		t.Fatal(err)
	}
	load()
	if served(d, "two.test") == "" || !strings.Contains(log.String(), "expired") {
		t.Error("an expired pair took the place of a good one")
	}
	if err := os.Remove(filepath.Join(dir, "a.pem")); err != nil {
		t.Fatal(err)
	}
	load()
	if served(d, "one.test") != "" {
		t.Error("a removed pair is still served")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if d.load(now) == nil {
		t.Error("a directory that is gone is read")
	}
	if _, err := OpenDir(DirOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory that is not there gives %v", err)
	}
}

// A handshake costs no allocation for an operator's certificate.
func TestOperatorCertificateAllocatesNothing(t *testing.T) {
	dir := t.TempDir()
	chain, key := pair(t, time.Now(), "www.example.test")
	put(t, dir, "a.pem", append(chain, key...))
	d, _ := openDir(t, dir)
	if n := testing.AllocsPerRun(100, func() { d.For("www.example.test") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPair: no file makes the node fail, and what is accepted can serve.
func FuzzPair(f *testing.F) {
	chain, key := pair(f, time.Now(), "www.example.test")
	f.Add(append(chain, key...))
	f.Add(key)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parsePair(text, time.Now())
		if err == nil && (c.Leaf == nil || len(c.Certificate) == 0 || c.PrivateKey == nil) {
			t.Errorf("accepted %+v", c)
		}
	})
}
