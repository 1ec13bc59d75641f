package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
)

func open(t testing.TB, dir string) *Authority {
	t.Helper()
	a, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// node-surface §3: the local CA is made on first start, stays, and its key is 0600.
func TestRootIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	first := open(t, dir)
	pem, err := os.ReadFile(first.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(filepath.Join(dir, keyFile)); info.Mode().Perm() != 0o600 {
		t.Errorf("key has mode %v", info.Mode())
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v", info.Mode())
	}
	if left := time.Until(first.root.NotAfter); left < 9*365*24*time.Hour {
		t.Errorf("root ends in %v, want ten years", left)
	}
	again := open(t, dir)
	if now, _ := os.ReadFile(again.Path()); !bytes.Equal(now, pem) {
		t.Error("the second start changed ca.pem")
	}
	// A leaf of the second start is trusted by who kept the first start's root.
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	hosts, err := again.Hosts("127.0.0.1", "control.example")
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := hosts.GetCertificate(nil)
	for _, name := range []string{"127.0.0.1", "control.example"} {
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A crash between the two files of a first start leaves a key without a root; the next start makes the root.
func TestKeyWithoutRootIsCompleted(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	key, _ := os.ReadFile(filepath.Join(dir, keyFile))
	os.Remove(a.Path())
	open(t, dir)
	if now, _ := os.ReadFile(filepath.Join(dir, keyFile)); !bytes.Equal(now, key) {
		t.Error("the key changed")
	}
}

func TestLooseKeyIsMadePrivate(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	name := filepath.Join(dir, keyFile)
	os.Chmod(name, 0o644)
	open(t, dir)
	if info, _ := os.Stat(name); info.Mode().Perm() != 0o600 {
		t.Errorf("key has mode %v", info.Mode())
	}
}

// What cannot be right is refused and left as it is: clients were told to trust the old root.
func TestUnfitRootIsRefused(t *testing.T) {
	other := t.TempDir()
	open(t, other)
	expired := t.TempDir()
	old := &Authority{dir: expired}
	if err := old.makeKey(filepath.Join(expired, keyFile)); err != nil {
		t.Fatal(err)
	}
	if err := old.makeRoot(filepath.Join(expired, certFile), time.Now().Add(-rootLife-time.Hour)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(dir string){
		"key is gone":   func(dir string) { os.Remove(filepath.Join(dir, keyFile)) },
		"key is noise":  func(dir string) { os.WriteFile(filepath.Join(dir, keyFile), []byte("noise"), 0o600) },
		"root is noise": func(dir string) { os.WriteFile(filepath.Join(dir, certFile), []byte("noise"), 0o600) },
		"another key": func(dir string) {
			b, _ := os.ReadFile(filepath.Join(other, keyFile))
			os.WriteFile(filepath.Join(dir, keyFile), b, 0o600)
		},
		"expired": func(dir string) {
			for _, f := range []string{certFile, keyFile} {
				b, _ := os.ReadFile(filepath.Join(expired, f))
				os.WriteFile(filepath.Join(dir, f), b, 0o600)
			}
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir)
			spoil(dir)
			before := files(t, dir)
			_, err := Open(Options{Dir: dir})
			if fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Detail(err), dir) {
				t.Errorf("got %v, want a conflict that names the file", err)
			}
			if after := files(t, dir); after != before {
				t.Error("files were changed")
			}
		})
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var all []byte
	for _, f := range []string{certFile, keyFile} {
		b, _ := os.ReadFile(filepath.Join(dir, f))
		all = append(append(all, b...), 0)
	}
	return string(all)
}

func TestHostsReportsEveryFault(t *testing.T) {
	a := open(t, t.TempDir())
	_, err := a.Hosts("ok.example", "bad host", "-x.example")
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "bad host") || !strings.Contains(err.Error(), "-x.example") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Hosts(); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no host: %v", err)
	}
}

// Leaves are short and made anew a month before they end.
func TestHostsRenewsItsLeaf(t *testing.T) {
	a := open(t, t.TempDir())
	h, err := a.Hosts("a.example")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := h.GetCertificate(nil)
	if again, _ := h.GetCertificate(nil); again != first {
		t.Error("a fresh leaf was made anew")
	}
	if life := first.Leaf.NotAfter.Sub(first.Leaf.NotBefore); life > 91*24*time.Hour {
		t.Errorf("a leaf lives %v", life)
	}
	old, err := a.leaf([]string{"a.example"}, time.Now().Add(-61*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	h.now.Store(old)
	if fresh, _ := h.GetCertificate(nil); fresh == old {
		t.Error("a leaf with 29 days left was not made anew")
	}
}

func hello(name string) *tls.ClientHelloInfo { return &tls.ClientHelloInfo{ServerName: name} }
