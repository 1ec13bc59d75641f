package router

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"edged/sandbox/event"
)

// naming answers which router it runs in, and what it knows of the client.
func naming(name string) handlerFunc {
	return func(_ context.Context, req *event.Request, res *event.Response) error {
		return answer(res, 200, fmt.Sprint(name, " ", string(req.URL), " ", field(req.Header, "x-forwarded-for"), field(req.Header, "x-forwarded-proto")))
	}
}

// takeTo is the way to another process: descriptors and bytes are copied, nothing else is shared.
func takeTo(t *testing.T, next *Router) func(Handed) bool {
	return func(h Handed) bool {
		file, err := h.Conn.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Error(err)
			return false
		}
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Error(err)
			return false
		}
		h.Conn, h.Unread = conn, append([]byte(nil), h.Unread...)
		next.Adopt(h)
		return true
	}
}

// successor is a router without a listener, as the next process has it before it runs.
func successor(t *testing.T, opt Options, h handlerFunc) *front {
	t.Helper()
	cert := selfSigned(t)
	opt.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil }
	r, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	r.tls.GetCertificate = opt.GetCertificate
	publish(t, r, serving(h))
	return &front{Router: r}
}

// over begins a hand-over and returns when the first router needs its node no more; the second runs then.
func (f *front) over(t *testing.T, next *front) {
	t.Helper()
	f.HandOver(takeTo(t, next.Router))
	f.stop()
	err := wait(t, "Run", f.done)
	f.done <- err
	*next = *run(t, next.Router, f.addr)
}

func (c *client) serves(want string, closes bool) {
	c.t.Helper()
	if res, body := c.response("GET"); body != want || res.Close != closes {
		c.t.Errorf("got %q, close %t; want %q, close %t", body, res.Close, want, closes)
	}
}

// until polls for what tells nobody.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// accepted waits for n connections. One that is still the kernel's would end with the listener, which a supervisor keeps open.
func (f *front) accepted(t *testing.T, n int) {
	t.Helper()
	until(t, "accepted connections", func() bool { return f.crowd.len() == n })
}

const ask = "GET /%s HTTP/1.1\r\nHost: a.test\r\n\r\n"

// A hand-over closes no connection: whatever it is at, its next request is answered by the router after, with nothing lost of what came
// before, and the answer of a request that was at work is kept alive.
func TestHandOver(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := start(t, Options{SettleTime: patience}, serving(func(ctx context.Context, req *event.Request, res *event.Response) error {
		if strings.HasSuffix(string(req.URL), "/slow") {
			close(entered)
			<-release
		}
		return naming("first")(ctx, req, res)
	}))
	kept, half, slow, piped, unused := f.dial(t), f.dial(t), f.dial(t), f.dial(t), f.dial(t)
	from := "http://a.test/%s [127.0.0.1] [http]"
	for _, c := range []*client{kept, half, piped} {
		c.send(fmt.Sprintf(ask, "1"))
		c.serves("first "+fmt.Sprintf(from, "1"), false)
	}
	half.send("GET /half HTTP/1.1\r\nHo")
	slow.send(fmt.Sprintf(ask, "slow") + fmt.Sprintf(ask, "behind") + "GET /ha")
	wait(t, "the handler", entered)
	f.accepted(t, 5)

	next := successor(t, Options{}, naming("second"))
	f.HandOver(takeTo(t, next.Router))
	f.stop()
	until(t, "drain", f.draining.Load)
	close(release)
	f.done <- wait(t, "Run", f.done)
	f.Rest(t.Context())

	kept.send(fmt.Sprintf(ask, "waits")) // nobody reads it yet
	*next = *run(t, next.Router, "")
	kept.serves("second "+fmt.Sprintf(from, "waits"), false)
	half.send("st: a.test\r\n\r\n")
	half.serves("second "+fmt.Sprintf(from, "half"), false)
	slow.serves("first "+fmt.Sprintf(from, "slow"), false)
	slow.serves("second "+fmt.Sprintf(from, "behind"), false)
	slow.send("lf HTTP/1.1\r\nHost: a.test\r\n\r\n")
	slow.serves("second "+fmt.Sprintf(from, "half"), false)
	for _, c := range []*client{piped, unused} {
		c.send(fmt.Sprintf(ask, "x"))
		c.serves("second "+fmt.Sprintf(from, "x"), false)
	}
}

// What a PROXY header told goes along, and one that has come in part is read to its end.
func TestHandOverBehindAProxy(t *testing.T) {
	opt := Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	f := start(t, opt, serving(naming("first")))
	told, half, unused := f.dial(t), f.dial(t), f.dial(t)
	half.send("PROXY TCP4 192.0.2.7 ")
	told.send("PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n" + fmt.Sprintf(ask, "1"))
	told.serves("first http://a.test/1 [192.0.2.9] [http]", false)

	f.accepted(t, 3)
	next := successor(t, opt, naming("second"))
	f.over(t, next)
	f.Rest(t.Context())
	told.send(fmt.Sprintf(ask, "2"))
	told.serves("second http://a.test/2 [192.0.2.9] [http]", false)
	half.send("192.0.2.1 1 2\r\n" + fmt.Sprintf(ask, "3"))
	half.serves("second http://a.test/3 [192.0.2.7] [http]", false)
	unused.send("PROXY TCP4 192.0.2.8 192.0.2.1 1 2\r\n" + fmt.Sprintf(ask, "4"))
	unused.serves("second http://a.test/4 [192.0.2.8] [http]", false)
}

// Connections over TLS stay with the first process, which carries their bytes; their next answer tells them to connect anew. A handshake
// that has begun is brought to its end, one that has not is the next process's.
func TestHandOverOfTLS(t *testing.T) {
	f := startTLS(t, Options{}, naming("first"))
	kept := f.dial(t).tls("a.test")
	kept.send(fmt.Sprintf(ask, "1"))
	kept.serves("first https://a.test/1 [127.0.0.1] [https]", false)
	half, wrong, gone := f.dial(t).tls("a.test"), f.dial(t).tls("a.test"), f.dial(t).tls("a.test")
	for _, c := range []*client{half, wrong, gone} { // their handshakes are over on this side, too
		c.send(fmt.Sprintf(ask, "1"))
		c.response("GET")
	}
	half.send("GET /half HTTP/1.1\r\nHo")
	held := &halfWritten{Conn: f.dial(t).Conn, hold: make(chan struct{})}
	shaking := tls.Client(held, &tls.Config{ServerName: "a.test", InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() { shaken <- shaking.Handshake() }() // ends with the connection
	until(t, "handshake on this side", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.apart == 1 })

	next := successor(t, Options{}, naming("second"))
	f.over(t, next)
	rest, end := context.WithCancel(t.Context())
	defer end()
	rested := make(chan struct{})
	go func() { f.Rest(rest); close(rested) }() // waited for below
	close(held.hold)
	if err := wait(t, "the handshake", shaken); err != nil {
		t.Fatal(err)
	}
	gone.Close()
	kept.send(fmt.Sprintf(ask, "2"))
	kept.serves("second https://a.test/2 [127.0.0.1] [https]", true)
	kept.closed()
	half.send("st: a.test\r\n\r\n")
	half.serves("second https://a.test/half [127.0.0.1] [https]", true)
	wrong.send("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")
	if res, _ := wrong.response("GET"); res.StatusCode != 421 {
		t.Errorf("another host than the server name: %d", res.StatusCode)
	}
	until(t, "the last relay", func() bool { return f.crowd.len() == 1 && f.Holding(time.Now(), 0).Relayed == 1 })
	late := &client{t: t, Conn: shaking, br: bufio.NewReader(shaking)}
	end() // a relay that is still there ends politely
	if b, err := io.ReadAll(late.br); err != nil || len(b) > 0 {
		t.Errorf("at the end of the relays: %q, %v; want an end in TLS's own way", b, err)
	}
	wait(t, "Rest", rested)
}

// halfWritten holds the second half of the first write back until hold is closed.
type halfWritten struct {
	net.Conn
	hold  chan struct{}
	wrote bool
}

func (h *halfWritten) Write(p []byte) (int, error) {
	if h.wrote {
		return h.Conn.Write(p)
	}
	h.wrote = true
	n, err := h.Conn.Write(p[:len(p)/2])
	if err != nil {
		return n, err
	}
	<-h.hold
	m, err := h.Conn.Write(p[n:])
	return n + m, err
}

// A request that is still at work after SettleTime is cut, and holds nobody up.
func TestHandOverCuts(t *testing.T) {
	entered := make(chan struct{})
	f := start(t, Options{SettleTime: 10 * time.Millisecond}, serving(func(ctx context.Context, _ *event.Request, res *event.Response) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}))
	c := f.dial(t)
	c.send(fmt.Sprintf(ask, ""))
	wait(t, "the handler", entered)
	f.over(t, successor(t, Options{}, hello))
	f.Rest(t.Context())
	c.closed()
}

// Where nobody takes the connections a hand-over ends like a drain.
func TestHandOverToNobody(t *testing.T) {
	f := start(t, Options{}, serving(hello))
	c := f.dial(t)
	f.HandOver(func(Handed) bool { return false })
	f.stop()
	c.closed()
	f.done <- wait(t, "Run", f.done)
	f.Rest(t.Context())
}
