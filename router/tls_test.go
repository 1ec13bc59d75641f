package router

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"edged/sandbox/event"
)

func selfSigned(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.test"}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// startTLS is start on the TLS listener.
func startTLS(t *testing.T, opt Options, h handlerFunc) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert := selfSigned(t)
	opt.HTTPS = l
	opt.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil }
	r, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, r, serving(h))
	return run(t, r, l.Addr().String())
}

func (c *client) tls(name string) *client {
	c.t.Helper()
	s := tls.Client(c.Conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err := s.Handshake(); err != nil {
		c.t.Fatal(err)
	}
	if p := s.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		c.t.Errorf("negotiated %q", p)
	}
	return &client{t: c.t, Conn: s, br: bufio.NewReader(s)}
}

func showURL(_ context.Context, req *event.Request, res *event.Response) error {
	return answer(res, 200, fmt.Sprint(string(req.URL), " ", field(req.Header, "x-forwarded-for"), field(req.Header, "x-forwarded-proto"), field(req.Header, "forwarded")))
}

// node-surface §7, 421: a server name was sent and is not the Host. Without one any host goes.
func TestTLS(t *testing.T) {
	f := startTLS(t, Options{}, showURL)
	for _, tt := range []struct {
		sni, host string
		status    int
		code      string
	}{
		{"a.test", "A.test:8443", 200, ""},
		{"", "a.test", 200, ""},
		{"b.test", "a.test", 421, "misdirected"},
		{"b.test", "b.test", 404, "unknown_host"},
	} {
		c := f.dial(t).tls(tt.sni)
		c.send("GET /x HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n")
		res, body := c.response("GET")
		checkError(t, res, tt.status, tt.code)
		if want := "https://" + tt.host + "/x [127.0.0.1] [https] []"; tt.status == 200 && body != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
}

// Over TLS too: bodies both ways, an early cut, a client that leaves.
func TestTLSBodies(t *testing.T) {
	s := newSource()
	entered := make(chan struct{})
	f := startTLS(t, Options{}, func(ctx context.Context, req *event.Request, res *event.Response) error {
		switch {
		case strings.HasSuffix(string(req.URL), "/stream"):
			res.Status, res.Stream = 200, s
			return nil
		case strings.HasSuffix(string(req.URL), "/hang"):
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}
		return echo(ctx, req, res)
	})
	c := f.dial(t).tls("a.test")
	big := strings.Repeat("0123456789", 20_000)
	c.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%s", len(big), big))
	if _, body := c.response("POST"); body != big {
		t.Errorf("got %d bytes", len(body))
	}
	c.send("GET /stream HTTP/1.1\r\nHost: a.test\r\n\r\n")
	c.head("GET")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.checkClosedOnce(t)
	c = f.dial(t).tls("a.test")
	c.send("GET /hang HTTP/1.1\r\nHost: a.test\r\n\r\n")
	wait(t, "the handler", entered)
	if err := c.Close(); err != nil { // the front ends when the handler does: see the cleanup
		t.Fatal(err)
	}
}

// A client that never finishes its handshake does not stay.
func TestSlowHandshake(t *testing.T) {
	f := startTLS(t, Options{HeadTimeout: 50 * time.Millisecond}, showURL)
	c := f.dial(t)
	c.send("\x16\x03\x01")
	c.closed()
}

func v2(source netip.Addr) string {
	var b bytes.Buffer
	b.WriteString("\r\n\r\n\x00\r\nQUIT\n\x21\x11")
	_ = binary.Write(&b, binary.BigEndian, uint16(12)) // a bytes.Buffer does not fail
	b.Write(source.AsSlice())
	b.Write([]byte{10, 0, 0, 1, 0, 1, 0, 2})
	return b.String()
}

// node-surface §2, --trusted-proxies: their forwarding fields and PROXY headers are believed, nobody else's.
func TestTrustedProxies(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	const request = "GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nForwarded: for=x\r\n\r\n"
	for _, tt := range []struct {
		name, prefix string
		trusted      []netip.Prefix
		want         string
		diagnosed    bool
	}{
		{"stranger", "", nil, "http://a.test/ [127.0.0.1] [http] []", true},
		{"proxy", "", loopback, "https://a.test/ [9.9.9.9] [https] [for=x]", false},
		{"v1", "PROXY TCP4 1.2.3.4 10.0.0.1 1 2\r\n", loopback, "http://a.test/ [1.2.3.4] [http] []", false},
		{"v2", v2(netip.MustParseAddr("1.2.3.4")), loopback, "http://a.test/ [1.2.3.4] [http] []", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, Options{TrustedProxies: tt.trusted}, serving(showURL))
			c := f.dial(t)
			c.send(tt.prefix + request)
			res, body := c.response("GET")
			if body != tt.want {
				t.Errorf("got %q, want %q", body, tt.want)
			}
			if got := res.Header.Get("Edged-Version") != ""; got != tt.diagnosed {
				t.Errorf("diagnostics %t", got)
			}
		})
	}
	t.Run("before TLS", func(t *testing.T) {
		f := startTLS(t, Options{TrustedProxies: loopback}, showURL)
		c := f.dial(t)
		c.send("PROXY TCP4 1.2.3.4 10.0.0.1 1 2\r\n")
		c = c.tls("a.test")
		c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if _, body := c.response("GET"); body != "https://a.test/ [1.2.3.4] [https] []" {
			t.Errorf("got %q", body)
		}
	})
	t.Run("malformed", func(t *testing.T) {
		f := start(t, Options{TrustedProxies: loopback}, serving(showURL))
		c := f.dial(t)
		c.send("PROXY TCP4 nonsense\r\n" + request)
		c.closed()
	})
}
