package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
)

const (
	rootLife  = 10 * 365 * 24 * time.Hour
	rootLast  = 365 * 24 * time.Hour // with less than this left, opening warns
	clockSkew = time.Hour            // clients whose clocks are a little behind accept a fresh certificate

	certFile = "ca.pem"
	keyFile  = "ca.key"
)

// Options says where the authority keeps its root.
type Options struct {
	Dir string       // required: DATA/tls
	Log *slog.Logger // nil discards
}

// Authority signs leaves. Immutable after Open; safe for concurrent use.
type Authority struct {
	dir  string
	root *x509.Certificate
	key  crypto.Signer
	pool *x509.CertPool
}

// Open loads the root from opt.Dir or makes it (ECDSA P-256, ten years) if there is none. A root whose files do not
// belong together, cannot be read or have expired is refused, never replaced: clients were told to trust it.
func Open(opt Options) (*Authority, error) {
	if opt.Dir == "" {
		return nil, fault.New(fault.Invalid, "certs.Open", "Dir is missing")
	}
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := disk.Prepare(opt.Dir); err != nil {
		return nil, err
	}
	a := &Authority{dir: opt.Dir}
	now := time.Now()
	if err := a.load(now, log); err != nil {
		return nil, err
	}
	if left := a.root.NotAfter.Sub(now); left < rootLast {
		log.Warn("the local CA expires soon: replace its files and hand the new ca.pem to clients", "left", left.Round(time.Hour))
	}
	a.pool = x509.NewCertPool()
	a.pool.AddCert(a.root)
	return a, nil
}

// Path returns the file with the root's certificate, for clients to trust.
func (a *Authority) Path() string { return filepath.Join(a.dir, certFile) }

// Pool returns a pool that trusts the root alone. The caller must not add to it.
func (a *Authority) Pool() *x509.CertPool { return a.pool }

func refused(format string, args ...any) error {
	return fault.Newf(fault.Conflict, "certs.Open", format, args...)
}

func (a *Authority) load(now time.Time, log *slog.Logger) error {
	certPath, keyPath := filepath.Join(a.dir, certFile), filepath.Join(a.dir, keyFile)
	keyPEM, kerr := os.ReadFile(keyPath)
	certPEM, cerr := os.ReadFile(certPath)
	switch {
	case errors.Is(kerr, fs.ErrNotExist) && errors.Is(cerr, fs.ErrNotExist):
		if err := a.makeKey(keyPath); err != nil {
			return err
		}
		return a.makeRoot(certPath, now)
	case errors.Is(kerr, fs.ErrNotExist):
		return refused("%s is there but %s is not: put the key back, or remove both for a new CA", certPath, keyPath)
	case kerr != nil:
		return fault.Wrap(fault.Unavailable, "certs.Open", kerr)
	}
	if err := a.readKey(keyPath, keyPEM, log); err != nil {
		return err
	}
	switch {
	case errors.Is(cerr, fs.ErrNotExist):
		// A crash between the two files of a first start: the key has signed nothing yet.
		return a.makeRoot(certPath, now)
	case cerr != nil:
		return fault.Wrap(fault.Unavailable, "certs.Open", cerr)
	}
	return a.readRoot(certPath, certPEM, now)
}

func (a *Authority) makeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fault.Wrap(fault.Internal, "certs.Open", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fault.Wrap(fault.Internal, "certs.Open", err)
	}
	a.key = key
	return disk.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func (a *Authority) readKey(path string, text []byte, log *slog.Logger) error {
	block, _ := pem.Decode(text)
	if block == nil {
		return refused("%s holds no PEM private key", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return refused("%s holds no PKCS #8 private key: %v", path, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return refused("%s holds a key that cannot sign", path)
	}
	a.key = signer
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the local CA's key was readable for others and is made private", "mode", info.Mode().Perm().String())
		err = os.Chmod(path, 0o600)
	}
	return fault.Wrap(fault.Unavailable, "certs.Open", err)
}

func (a *Authority) makeRoot(path string, now time.Time) error {
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The number lets people tell roots apart; nothing of the machine goes into a file that is handed out.
		Subject:               pkix.Name{CommonName: "edged local CA " + serial.Text(16)[:8], Organization: []string{"edged"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(rootLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return fault.Wrap(fault.Internal, "certs.Open", err)
	}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		return fault.Wrap(fault.Internal, "certs.Open", err)
	}
	return disk.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func (a *Authority) readRoot(path string, text []byte, now time.Time) error {
	block, _ := pem.Decode(text)
	if block == nil {
		return refused("%s holds no PEM certificate", path)
	}
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return refused("%s holds no certificate: %v", path, err)
	}
	ours, err := x509.MarshalPKIXPublicKey(a.key.Public())
	if err != nil || !bytes.Equal(ours, root.RawSubjectPublicKeyInfo) {
		return refused("%s and the key beside it do not belong together", path)
	}
	if !root.IsCA || !root.BasicConstraintsValid {
		return refused("%s is no CA certificate", path)
	}
	if now.After(root.NotAfter) {
		return refused("the CA in %s expired on %s: remove it and its key for a new one, and hand that to clients",
			path, root.NotAfter.UTC().Format(time.DateOnly))
	}
	a.root = root
	return nil
}

func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "certs.serial", err)
	}
	return n.Add(n, big.NewInt(1)), nil // never zero
}
