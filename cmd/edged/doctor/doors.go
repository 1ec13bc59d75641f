package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"edged/node/certs"
)

// doorFacts is one address of the configuration.
type doorFacts struct {
	Listener
	Err error // of listening there
}

// lookAtDoor listens for an instant; a node that starts in that instant tries again.
func lookAtDoor(l Listener) doorFacts {
	ln, err := net.Listen("tcp", l.Addr)
	if err == nil {
		err = ln.Close()
	}
	return doorFacts{l, err}
}

// dialable turns an address on all interfaces into one to connect to.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// certFacts is the local authority and the operator's certificates.
type certFacts struct {
	CA      *x509.Certificate // nil if there is none yet
	CAErr   error             // its files cannot be used
	KeyMode fs.FileMode       // of its private key

	DirErr  error // the operator's directory cannot be used at all
	Dir     []said
	CADir   string
	DirPath string
}

// said is what the node would say of one of the operator's certificates.
type said struct {
	Level slog.Level
	Text  string
	File  string
	Why   string // an error, or until when
}

func lookAtCerts(dataDir, tlsDir string) (c certFacts) {
	c.CADir, c.DirPath = filepath.Join(dataDir, "tls"), tlsDir
	cert, key := filepath.Join(c.CADir, "ca.pem"), filepath.Join(c.CADir, "ca.key")
	info, kerr := os.Stat(key)
	_, cerr := os.Stat(cert)
	switch {
	case errors.Is(kerr, fs.ErrNotExist) && errors.Is(cerr, fs.ErrNotExist): // the first start makes both
	case errors.Is(cerr, fs.ErrNotExist): // a first start that was interrupted; the next goes on
	default:
		if kerr == nil {
			c.KeyMode = info.Mode().Perm()
		}
		var pair tls.Certificate
		if pair, c.CAErr = tls.LoadX509KeyPair(cert, key); c.CAErr == nil {
			c.CA = pair.Leaf
		}
	}
	if tlsDir != "" {
		log := &listener{}
		_, c.DirErr = certs.OpenDir(certs.DirOptions{Dir: tlsDir, Log: slog.New(log)}) // it reads and starts nothing
		c.Dir = log.said
	}
	return c
}

// listener keeps what the node's own reader of certificates logs: one judge for both.
type listener struct{ said []said }

// Enabled, Handle, WithAttrs and WithGroup are slog.Handler's.
func (l *listener) Enabled(context.Context, slog.Level) bool { return true }

func (l *listener) Handle(_ context.Context, r slog.Record) error {
	s := said{Level: r.Level, Text: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "file":
			s.File = a.Value.String()
		case "err", "until":
			s.Why = a.Value.String()
		}
		return true
	})
	l.said = append(l.said, s)
	return nil
}

func (l *listener) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *listener) WithGroup(string) slog.Handler      { return l }
