package certs

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"edged/internal/fault"
)

// Bounds of a directory of certificates.
const (
	maxPEM      = 1 << 20 // bytes of one file
	maxPEMFiles = 20_000
)

// soon is how long before its end a certificate of the operator's is warned about.
const soon = 14 * 24 * time.Hour

// DirOptions says where the operator's certificates are.
type DirOptions struct {
	Dir   string        // required
	Every time.Duration // how often the files are looked at, 0 means 10 s
	Log   *slog.Logger  // nil discards
}

// Dir has the operator's own certificates. Each is a pair of files, NAME.pem with the chain, leaf first, and NAME.key with
// its private key, or one NAME.pem with both. The leaf's DNS names say what it is for, exact or with a wildcard for the first
// label; NAME says nothing. Safe for concurrent use; a handshake takes no lock.
type Dir struct {
	opt  DirOptions
	now  atomic.Pointer[loadedDir]
	seen map[string]string // print of each pair's files when last read; of the goroutine that loads
	bad  map[string]string // what was said of a pair that cannot be used, so that it is said once; likewise
}

// loadedDir is what the files say. Immutable.
type loadedDir struct {
	pairs map[string]*tls.Certificate // by NAME
	names map[string]*tls.Certificate // by DNS name, "*.rest" for a wildcard
}

// OpenDir reads the directory. A directory that cannot be read is refused; a pair that cannot be used is logged and left
// out, since the local authority vouches for its names meanwhile.
func OpenDir(opt DirOptions) (*Dir, error) {
	if opt.Every == 0 {
		opt.Every = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dir{opt: opt, seen: map[string]string{}, bad: map[string]string{}}
	d.now.Store(&loadedDir{})
	if err := d.load(time.Now()); err != nil {
		return nil, fault.Newf(fault.Invalid, "certs.OpenDir", "certificates in %s: %v", opt.Dir, err)
	}
	return d, nil
}

// Run looks at the files again and again until ctx is done. What changed is read anew; a pair that cannot be used any more
// keeps its old certificate, and the log says why. A pair that was removed is forgotten.
func (d *Dir) Run(ctx context.Context) error {
	ticker := time.NewTicker(d.opt.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if err := d.load(now); err != nil {
				d.opt.Log.Error("the directory of certificates cannot be read; the old ones go on", "dir", d.opt.Dir, "err", err,
					"do", "let the node's user read the directory of --tls-dir")
			}
		}
	}
}

// For returns the certificate for a name (lower-case, no trailing dot): one with that very name, else one with a wildcard
// in the place of its first label; nil if there is none.
func (d *Dir) For(name string) *tls.Certificate {
	if d == nil {
		return nil
	}
	names := d.now.Load().names
	if c := names[name]; c != nil {
		return c
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		return names["*."+rest]
	}
	return nil
}

// load reads what changed since the last time, and again what could not be used.
func (d *Dir) load(now time.Time) error {
	files, err := d.list()
	if err != nil {
		return err
	}
	old := d.now.Load()
	next := &loadedDir{pairs: map[string]*tls.Certificate{}, names: map[string]*tls.Certificate{}}
	changed := false
	for _, name := range files {
		had := old.pairs[name]
		print := d.print(name)
		if had != nil && d.bad[name] == "" && print == d.seen[name] {
			next.pairs[name] = had
			continue
		}
		d.seen[name] = print
		cert, err := d.pair(name, now)
		d.tell(name, cert, err, had != nil, now)
		if err != nil {
			cert = had
		}
		if cert != nil {
			next.pairs[name] = cert
			changed = changed || cert != had
		}
	}
	if !changed && len(next.pairs) == len(old.pairs) {
		return nil
	}
	maps.DeleteFunc(d.seen, func(name, _ string) bool { return !slices.Contains(files, name) })
	maps.DeleteFunc(d.bad, func(name, _ string) bool { return !slices.Contains(files, name) })
	next.index()
	d.now.Store(next)
	return nil
}

// tell logs what became of a pair, once.
func (d *Dir) tell(name string, cert *tls.Certificate, err error, had bool, now time.Time) {
	if err != nil {
		if d.bad[name] != err.Error() {
			d.bad[name] = err.Error()
			d.opt.Log.Error("certificate cannot be used", "file", name, "err", err, "oldGoesOn", had,
				"do", "put a certificate and the key that fits into the directory of --tls-dir")
		}
		return
	}
	delete(d.bad, name)
	d.opt.Log.Info("certificate loaded", "file", name, "names", cert.Leaf.DNSNames, "until", cert.Leaf.NotAfter)
	if cert.Leaf.NotAfter.Sub(now) < soon {
		d.opt.Log.Warn("certificate expires soon", "file", name, "until", cert.Leaf.NotAfter)
	}
}

// index gives every DNS name to the certificate that has it and lasts longest.
func (l *loadedDir) index() {
	for _, name := range slices.Sorted(maps.Keys(l.pairs)) {
		c := l.pairs[name]
		for _, dns := range c.Leaf.DNSNames {
			dns = canonical(dns)
			if other := l.names[dns]; other == nil || other.Leaf.NotAfter.Before(c.Leaf.NotAfter) {
				l.names[dns] = c
			}
		}
	}
}

// list returns the NAMEs in ascending order.
func (d *Dir) list() ([]string, error) {
	entries, err := os.ReadDir(d.opt.Dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".pem"); ok && !strings.HasPrefix(name, ".") {
			out = append(out, name)
		}
	}
	if len(out) > maxPEMFiles {
		return nil, fmt.Errorf("there are more than %d", maxPEMFiles)
	}
	return out, nil
}

// filesOf returns the files that a pair may have.
func (d *Dir) filesOf(name string) [2]string {
	return [2]string{filepath.Join(d.opt.Dir, name+".pem"), filepath.Join(d.opt.Dir, name+".key")}
}

// print tells the files of a pair from any earlier ones without reading them: size, time of change, and which file it is.
func (d *Dir) print(name string) (out string) {
	for _, path := range d.filesOf(name) {
		if info, err := os.Stat(path); err == nil {
			var ino uint64
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				ino = st.Ino
			}
			out += fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano(), " ", ino, ";")
		}
	}
	return out
}

// pair reads both files of a pair.
func (d *Dir) pair(name string, now time.Time) (*tls.Certificate, error) {
	var text []byte
	for i, path := range d.filesOf(name) {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) && i == 1 {
			continue // both are in one file
		}
		if err != nil {
			return nil, err
		}
		part, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
		f.Close()
		if err != nil {
			return nil, err
		}
		if len(part) > maxPEM {
			return nil, fmt.Errorf("%s has more than %d bytes", filepath.Base(path), maxPEM)
		}
		text = append(append(text, part...), '\n')
	}
	return parsePair(text, now)
}

// parsePair reads chain and key, and refuses what no client would accept.
func parsePair(text []byte, now time.Time) (*tls.Certificate, error) {
	c := &tls.Certificate{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE":
			c.Certificate = append(c.Certificate, block.Bytes)
		case strings.HasSuffix(block.Type, "PRIVATE KEY") && c.PrivateKey == nil:
			key, err := parseKey(block.Bytes)
			if err != nil {
				return nil, err
			}
			c.PrivateKey = key
		}
	}
	if len(c.Certificate) == 0 || c.PrivateKey == nil {
		return nil, errors.New("it has no certificate, or no private key")
	}
	for i, der := range c.Certificate {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		}
		if i == 0 {
			c.Leaf = parsed
		}
	}
	public, ok := c.PrivateKey.(crypto.Signer).Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(c.Leaf.PublicKey):
		return nil, errors.New("certificate and private key do not belong together")
	case len(c.Leaf.DNSNames) == 0:
		return nil, errors.New("the certificate has no DNS name")
	case now.After(c.Leaf.NotAfter):
		return nil, fmt.Errorf("the certificate expired on %s", c.Leaf.NotAfter.UTC().Format(time.DateOnly))
	case now.Add(clockSkew).Before(c.Leaf.NotBefore):
		return nil, fmt.Errorf("the certificate is valid from %s on only", c.Leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	return c, nil
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("the private key is none that can sign, or is encrypted")
}
