package peer

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"edged/internal/fleetwire"
	"edged/internal/pki"
	"edged/internal/testkit"
)

// Headers and documents of a caller are bounded, whoever it is.
func TestHeadersAndDocumentsAreBounded(t *testing.T) {
	f := newFleet(t, loopback{})
	a := f.founded("n-a", func(o *Options) {
		o.Renew = f.sign
		o.Join = func(context.Context, fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
			t.Error("an endless join was decided")
			return fleetwire.JoinAnswer{}, nil
		}
	}, nil)
	b := f.founded("n-b", nil, nil)
	req, _ := http.NewRequest("GET", "https://"+pki.Host("n-a")+"/echo", nil)
	req.Header.Set("Long", strings.Repeat("x", 2*maxHeader))
	if resp, err := b.Client().Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a long header: %s", resp.Status)
		}
	}
	long := bytes.Repeat([]byte("x"), fleetwire.MaxJoin+1)
	resp, err := b.Client().Post("https://"+pki.Host("n-a")+fleetwire.PathRenew, "", bytes.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a long renewal: %s", resp.Status)
	}
	c, err := f.bare(a.addr, nil, protoH1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		io.WriteString(c, "POST /fleet/v1/join HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		for {
			if _, err := io.WriteString(c, "1000\r\n"+strings.Repeat(" ", 0x1000)+"\r\n"); err != nil {
				return // the server has had enough
			}
		}
	}()
	if got := readResponse(t, c).StatusCode; got != http.StatusRequestEntityTooLarge {
		t.Errorf("an endless join: %d", got)
	}
}

// Noise instead of TLS, and inside it, ends its own connection and nothing else.
func TestNoiseHarmsNobody(t *testing.T) {
	f := newFleet(t, loopback{})
	a, b := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil)
	s := b.mustStream(t, "n-a")
	rng := testkit.Rand(t)
	_, _, cert := f.certificate("n-c", time.Now())
	for i := range 60 {
		noise := make([]byte, rng.IntN(4000))
		fill(rng, noise)
		c, err := f.net.dial(t.Context(), "tcp", a.addr)
		if err != nil {
			t.Fatal(err)
		}
		if i%3 != 0 {
			c.Close()
			proto := protoH2
			if i%2 == 0 {
				proto = protoH1
			}
			tc, err := f.bare(a.addr, cert, proto)
			if err != nil {
				t.Fatal(err)
			}
			if proto == protoH2 {
				io.WriteString(tc, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			}
			c = tc
		}
		c.Write(noise)
		c.Close()
	}
	if err := s.says("still here"); err != nil {
		t.Error(err)
	}
	b.Client().CloseIdleConnections()
	b.mustStream(t, "n-a")
}

func fill(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}
