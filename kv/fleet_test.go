package kv

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// authority signs certificates whose common name is a node's name.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	_, a.cert, a.key = a.issue(t, "authority")
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(t testing.TB, name string) (tls.Certificate, *x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: a.key == nil, BasicConstraintsValid: true}
	parent, signer := tmpl, key
	if a.key != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, cert, key
}

// fleetNode is one store with its own listener and certificate, as package node would wire it.
type fleetNode struct {
	*Store
	name   string
	opt    Options
	server *httptest.Server
	live   sync.RWMutex
	stop   func()
	wrap   func(http.Handler) http.Handler // what stands before the handler, for faults
}

type fleet struct {
	ca    *authority
	nodes []*fleetNode
}

func nodeName(i int) string { return "node" + string(rune('a'+i)) }

func newFleet(t testing.TB, n int, change func(i int, f *fleetNode)) *fleet {
	t.Helper()
	fl := &fleet{ca: newAuthority(t)}
	for i := range n {
		f := &fleetNode{name: nodeName(i), wrap: func(h http.Handler) http.Handler { return h }}
		f.opt = Options{Dir: "/kv", FS: vfs.NewMem(), Node: f.name, MemSize: 1 << 20}
		fl.nodes = append(fl.nodes, f)
		fl.equip(t, f)
		if change != nil {
			change(i, f)
		}
		f.start(t)
	}
	fl.introduce(t)
	return fl
}

// equip gives a node its certificate, client and listener.
func (fl *fleet) equip(t testing.TB, f *fleetNode) {
	t.Helper()
	cert, _, _ := fl.ca.issue(t, f.name)
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: fl.ca.pool, ServerName: "example.com"}}
	f.opt.Peers = &PeerOptions{Client: &http.Client{Transport: tr}, Name: func(r *http.Request) (string, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return "", errors.New("no certificate")
		}
		return r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	}}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.live.RLock()
		s := f.Store
		f.live.RUnlock()
		if s == nil {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		f.wrap(s.Handler()).ServeHTTP(w, r)
	}))
	f.server.EnableHTTP2 = true
	f.server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: fl.ca.pool, ClientAuth: tls.RequireAndVerifyClientCert}
	f.server.StartTLS()
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		f.server.CloseClientConnections()
		if f.stop != nil {
			f.stop()
		}
		f.server.Close()
	})
}

func (f *fleetNode) start(t testing.TB) {
	t.Helper()
	s, err := Open(f.opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(context.Background(), "u", 1); err != nil {
		t.Fatal(err)
	}
	f.live.Lock()
	f.Store = s
	f.live.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	f.stop = func() {
		f.live.Lock()
		f.Store = nil
		f.live.Unlock()
		cancel()
		<-done
		f.server.CloseClientConnections() // ends the feeds it serves
		eventually(t, func() bool { return s.serving.Load() == 0 })
		s.Close()
		f.stop = nil
	}
}

func (fl *fleet) members() (out []Member) {
	for _, f := range fl.nodes {
		m := Member{Name: f.name, URL: f.server.URL}
		if f.Store != nil {
			m.Epoch, m.Gossip = f.Epoch(), f.GossipAddr()
		}
		out = append(out, m)
	}
	return out
}

// introduce tells every node that runs of all that do.
func (fl *fleet) introduce(t testing.TB) {
	t.Helper()
	var up []Member
	for _, m := range fl.members() {
		if m.Epoch != 0 {
			up = append(up, m)
		}
	}
	for _, f := range fl.nodes {
		if f.Store != nil {
			if err := f.SetMembers(up); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (f *fleetNode) kv() *Namespace { return f.Namespace("u") }

// equalSoon waits until all nodes that run cover the same writes.
func (fl *fleet) equalSoon(t testing.TB) {
	t.Helper()
	eventually(t, func() bool {
		var first string
		for _, f := range fl.nodes {
			if f.Store == nil {
				continue
			}
			v, _ := f.ledger.covers()
			switch enc := string(v.Append(nil)); {
			case first == "":
				first = enc
			case first != enc:
				return false
			}
		}
		return true
	})
}
