package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"edged/internal/testkit"
	"edged/router/table"
	"edged/sandbox/event"
)

func TestMain(m *testing.M) {
	// The library that the benchmark compares with keeps a clock, and a sweeper for a while.
	testkit.Main(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// patience ends a test that would hang; no test waits for it to pass.
const patience = 10 * time.Second

type handlerFunc func(ctx context.Context, req *event.Request, res *event.Response) error

func (f handlerFunc) Serve(ctx context.Context, req *event.Request, res *event.Response) error {
	return f(ctx, req, res)
}

func answer(res *event.Response, status int, body string) error {
	res.Status = status
	res.Header = append(res.Header, "content-type\ntext/plain\n"...)
	res.Body = append(res.Body, body...)
	return nil
}

func hello(_ context.Context, _ *event.Request, res *event.Response) error {
	return answer(res, 200, "hello")
}

// serving makes a version that runs h.
func serving(h handlerFunc) *table.Version {
	return &table.Version{UID: "v1", HasFetch: true, Handler: h}
}

type front struct {
	*Router
	addr string
	stop context.CancelFunc
	done chan error // what Run returned
}

// start runs a router on a fresh port; host "a.test" leads to v.
func start(t testing.TB, opt Options, v *table.Version) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opt.HTTP = l
	r, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if v != nil {
		publish(t, r, v)
	}
	return run(t, r, l.Addr().String())
}

func run(t testing.TB, r *Router, addr string) *front {
	ctx, cancel := context.WithCancel(context.Background())
	f := &front{Router: r, addr: addr, stop: cancel, done: make(chan error, 1)}
	go func() { f.done <- r.Run(ctx) }() // ends with the cleanup below
	t.Cleanup(func() {
		cancel()
		err := <-f.done
		f.done <- err
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

func publish(t testing.TB, r *Router, v *table.Version) {
	t.Helper()
	tab, err := table.Build(map[string]*table.Worker{"a.test": {UID: "w1", Versions: []table.Weighted{{Version: v, Weight: table.FullWeight}}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Publish(tab)
}

// client is one raw connection.
type client struct {
	t testing.TB
	net.Conn
	br *bufio.Reader
}

func (f *front) dial(t testing.TB) *client {
	t.Helper()
	nc, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, Conn: nc, br: bufio.NewReader(nc)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// head reads a response head; its body is still on the wire.
func (c *client) head(method string) *http.Response {
	c.t.Helper()
	res, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("read response: %v", err)
	}
	return res
}

// response reads a whole response.
func (c *client) response(method string) (*http.Response, string) {
	c.t.Helper()
	res := c.head(method)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("read body: %v", err)
	}
	return res, string(b)
}

// closed checks that the server closed the connection without another byte.
func (c *client) closed() {
	c.t.Helper()
	if b, err := io.ReadAll(c.br); err != nil && !strings.Contains(err.Error(), "reset") || len(b) > 0 {
		c.t.Errorf("after the last response: %q, %v", b, err)
	}
}

// get sends one request on a fresh connection.
func (f *front) get(t testing.TB, path string) (*http.Response, string) {
	t.Helper()
	c := f.dial(t)
	c.send("GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n")
	return c.response("GET")
}

// wait receives from a channel, or fails the test.
func wait[T any](t testing.TB, what string, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

// field returns the values of a packed field.
func field(packed []byte, name string) (values []string) {
	lines := bytes.Split(packed, []byte("\n"))
	for i := 0; i+1 < len(lines); i += 2 {
		if string(lines[i]) == name {
			values = append(values, string(lines[i+1]))
		}
	}
	return values
}

func checkError(t testing.TB, res *http.Response, status int, code string) {
	t.Helper()
	if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("Edged-Error")); got != fmt.Sprint(status, " ", code) {
		t.Errorf("got %s, want %d %s", got, status, code)
	}
}
