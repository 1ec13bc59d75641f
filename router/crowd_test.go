package router

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"edged/sandbox/event"
)

// blocking is a handler that tells when it is entered, and answers when it is let go.
func blocking(entered chan<- struct{}, release <-chan struct{}) handlerFunc {
	return func(_ context.Context, _ *event.Request, res *event.Response) error {
		entered <- struct{}{}
		<-release
		return answer(res, 200, "late")
	}
}

// Over MaxConns a connection whose others are all at work is refused with 503 and Retry-After; one that ends makes room.
func TestMaxConns(t *testing.T) {
	entered, release := make(chan struct{}, 2), make(chan struct{})
	f := start(t, Options{MaxConns: 1}, serving(blocking(entered, release)))
	first := f.dial(t)
	first.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	wait(t, "the handler", entered)
	over := f.dial(t)
	res, body := over.response("GET") // without a request
	checkError(t, res, 503, "overloaded")
	if res.Header.Get("Retry-After") == "" || body != "overloaded\n" || !res.Close {
		t.Errorf("%v %q", res.Header, body)
	}
	over.closed()
	close(release)
	first.response("GET")
	first.closed()
	for { // the place may be given back a moment after the client saw the end
		c := f.dial(t)
		c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if res, _ := c.response("GET"); res.StatusCode == 200 {
			return
		}
	}
}

// A connection that waits for a request makes room for a new one, and it is the one that has waited longest.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	f := start(t, Options{MaxConns: 3}, serving(hello))
	ask := func(c *client) {
		t.Helper()
		c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if res, _ := c.response("GET"); res.StatusCode != 200 {
			t.Fatalf("status %d", res.StatusCode)
		}
	}
	var kept []*client
	for range 3 {
		c := f.dial(t)
		ask(c)
		kept = append(kept, c)
	}
	idleFor(t, f, 3) // an answer may be here before its connection waits for the next request
	ask(kept[0])
	idleFor(t, f, 3)
	for i, oldest := range []*client{kept[1], kept[2], kept[0]} {
		c := f.dial(t)
		ask(c)
		oldest.closed()
		if i < 2 {
			idleFor(t, f, 2-i) // and not the newcomers, which have waited less
		}
	}
}

// idleFor waits until n connections have been idle for long enough to make room.
func idleFor(t *testing.T, f *front, n int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		old := 0
		f.crowd.each(func(c *conn) {
			if at, waits := c.idleSince(); waits && !c.shed && time.Since(at) >= shedIdle {
				old++
			}
		})
		if old >= n {
			return
		}
	}
	t.Fatalf("there are not %d idle connections", n)
}

// One client's address has its share; a trusted proxy, who speaks for many, has none.
func TestMaxClientConns(t *testing.T) {
	entered, release := make(chan struct{}, 4), make(chan struct{})
	for _, trusted := range []bool{false, true} {
		opt := Options{MaxConns: 10, MaxClientConns: 1}
		if trusted {
			opt.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		f := start(t, opt, serving(blocking(entered, release)))
		for i := range 2 {
			c := f.dial(t)
			c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
			if i == 0 || trusted {
				wait(t, "the handler", entered)
			} else {
				res, _ := c.response("GET")
				checkError(t, res, 503, "overloaded")
			}
		}
	}
	close(release)
}

// failing is a listener that fails a while.
type failing struct {
	net.Listener
	left, tries atomic.Int64
}

func (l *failing) Accept() (net.Conn, error) {
	if l.tries.Add(1); l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// Without file descriptors accepting pauses and does not spin, connections that wait make room, and it goes on afterwards.
func TestAcceptWithoutDescriptors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	short := &failing{Listener: l}
	r, err := New(Options{HTTP: short})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, r, serving(hello))
	f := run(t, r, l.Addr().String())
	kept := f.dial(t)
	kept.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	kept.response("GET")
	idleFor(t, f, 1)
	short.left.Store(5) // the pauses of five failures take 155 ms
	began := time.Now()
	f.get(t, "/") // is taken by the Accept that waits; the next ones fail
	kept.closed()
	if res, _ := f.get(t, "/"); res.StatusCode != 200 {
		t.Errorf("status %d afterwards", res.StatusCode)
	}
	if took, tries := time.Since(began), short.tries.Load(); took < 155*time.Millisecond || tries > 12 {
		t.Errorf("%d tries in %v", tries, took)
	}
}

// Pauses grow up to the longest, and the log is not flooded.
func TestAcceptPauseEndsWithStop(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop, cancel := context.WithCancel(t.Context())
	f := acceptFailures{pause: time.Hour}
	cancel()
	if f.failed(stop, r, errors.New("some")) {
		t.Error("waited although it is over")
	}
	if f.pause != longestAcceptPause {
		t.Errorf("pause %v", f.pause)
	}
}

// A client over the bound that has sent much gets its answer all the same, or an end; the front does not wait for it.
func TestRefusedConnectionsCostLittle(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	f := start(t, Options{MaxConns: 1}, serving(blocking(entered, release)))
	first := f.dial(t)
	first.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	wait(t, "the handler", entered)
	for range 50 {
		c := f.dial(t)
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\n")
		_, _ = io.ReadAll(c) // an answer or a reset
	}
	close(release)
	if res, _ := first.response("GET"); res.StatusCode != 200 {
		t.Errorf("the one inside: %d", res.StatusCode)
	}
}
