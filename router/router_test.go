package router

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"edged/router/table"
	"edged/sandbox/event"
)

// The worker sees method, URL and fields as the client sent them; module-worker §3.1.
func TestRequestReachesTheWorkerAsSent(t *testing.T) {
	var got *event.Request
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		got = &event.Request{Method: append([]byte(nil), req.Method...), URL: append([]byte(nil), req.URL...),
			Header: append([]byte(nil), req.Header...), Body: req.Body, Length: req.Length}
		return answer(res, 200, "ok")
	}))
	c := f.dial(t)
	c.send("PATCH /a/../b%2fc//d?x=%20&y HTTP/1.1\r\nHost: A.Test.:80\r\nX-Two: 1\r\nx-two:  2 \t\r\nCookie: a=b\r\nEdged-Version: forged\r\n" +
		"X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Port: 1\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\n\r\n")
	if res, body := c.response("PATCH"); res.StatusCode != 200 || body != "ok" {
		t.Fatalf("got %d %q", res.StatusCode, body)
	}
	if string(got.Method) != "PATCH" || string(got.URL) != "http://A.Test.:80/a/../b%2fc//d?x=%20&y" || got.Body != nil || got.Length != 0 {
		t.Errorf("got %s %s body %v", got.Method, got.URL, got.Body)
	}
	const want = "host\nA.Test.:80\nx-two\n1\nx-two\n2\ncookie\na=b\nx-forwarded-for\n127.0.0.1\nx-forwarded-proto\nhttp\nx-forwarded-host\nA.Test.:80\n"
	if string(got.Header) != want {
		t.Errorf("got fields\n%s\nwant\n%s", got.Header, want)
	}
}

// Repeated fields keep their order; Edged-*, fields of one connection and a wrong length do not pass (node-surface §7).
func TestResponseFields(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
		res.Status = 201
		res.Header = append(res.Header, "set-cookie\na=1\nx-a\n1\nset-cookie\nb=2\nset-cookie\na=1\nconnection\nclose\ntransfer-encoding\nchunked\nkeep-alive\n1\nedged-error\nlie\ncontent-length\n99\nserver\nmine\n"...)
		res.Body = append(res.Body, "hi"...)
		res.Origin = event.Hot
		return nil
	}))
	res, body := f.get(t, "/")
	if got := fmt.Sprint(res.StatusCode, res.Header["Set-Cookie"], res.Header["X-A"], res.ContentLength, res.TransferEncoding, res.Close, body); got != "201 [a=1 b=2 a=1] [1] 2 [] falsehi" {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{"Edged-Error": "", "Keep-Alive": "", "Server": "mine", "Edged-Version": "v1", "Edged-Sandbox": "hot"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if res.Header.Get("Date") == "" {
		t.Error("no Date")
	}
}

// node-surface §7, one row each; an error row that closes is followed by nothing.
func TestHostMadeErrors(t *testing.T) {
	versions := map[string]*table.Version{
		"static.test":  {UID: "static", Assets: table.Assets{}},
		"broken.test":  {UID: "broken", HasFetch: true},
		"worker.test":  serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrWorker }),
		"cpu.test":     serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrCPU.New("x", "y") }),
		"wall.test":    serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrWall }),
		"memory.test":  serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrMemory }),
		"unable.test":  serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrNotServing }),
		"full.test":    serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrOverloaded }),
		"drain.test":   serving(func(context.Context, *event.Request, *event.Response) error { return event.ErrDraining }),
		"strange.test": serving(func(context.Context, *event.Request, *event.Response) error { return io.ErrNoProgress }),
		"panic.test":   serving(func(context.Context, *event.Request, *event.Response) error { panic("bug") }),
		"status.test":  serving(func(_ context.Context, _ *event.Request, res *event.Response) error { return answer(res, 101, "") }),
		"split.test": serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
			res.Status, res.Header = 200, append(res.Header, "x\na\rb\n"...)
			return nil
		}),
	}
	hosts := map[string]*table.Worker{"none.test": {UID: "none"}}
	for name, v := range versions {
		hosts[name] = &table.Worker{UID: name, Versions: []table.Weighted{{Version: v, Weight: table.FullWeight}}}
	}
	f := start(t, Options{}, nil)
	tab, err := table.Build(hosts)
	if err != nil {
		t.Fatal(err)
	}
	f.Publish(tab)
	for _, tt := range []struct {
		method, host string
		status       int
		code         string
		keeps        bool
	}{
		{"GET", "nobody.test", 404, "unknown_host", true},
		{"GET", "static.test", 404, "not_found", true},
		{"POST", "static.test", 404, "not_found", true},
		{"GET", "none.test", 503, "not_serving", true},
		{"GET", "broken.test", 503, "not_serving", true},
		{"GET", "unable.test", 503, "not_serving", true},
		{"GET", "worker.test", 500, "worker_error", true},
		{"HEAD", "worker.test", 500, "worker_error", true},
		{"GET", "strange.test", 500, "worker_error", true},
		{"GET", "panic.test", 500, "worker_error", true},
		{"GET", "status.test", 500, "worker_error", true},
		{"GET", "split.test", 500, "worker_error", true},
		{"GET", "cpu.test", 500, "cpu_exceeded", true},
		{"GET", "wall.test", 500, "wall_exceeded", true},
		{"GET", "memory.test", 500, "memory_exceeded", true},
		{"GET", "full.test", 503, "overloaded", true},
		{"GET", "drain.test", 503, "draining", false},
		{"TRACE", "worker.test", 501, "not_implemented", false},
	} {
		t.Run(tt.method+" "+tt.host, func(t *testing.T) {
			c := f.dial(t)
			c.send(tt.method + " / HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n")
			res, body := c.response(tt.method)
			checkError(t, res, tt.status, tt.code)
			if want := tt.code + "\n"; tt.method != "HEAD" && body != want || tt.method == "HEAD" && body != "" {
				t.Errorf("body %q", body)
			}
			if res.Close == tt.keeps {
				t.Errorf("Connection: close is %t", res.Close)
			}
			if retry := res.Header.Get("Retry-After"); (retry != "") != (tt.code == "overloaded" || tt.code == "draining") {
				t.Errorf("Retry-After %q", retry)
			}
			if !tt.keeps {
				c.closed()
				return
			}
			c.send("GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
			res, _ = c.response("GET")
			checkError(t, res, 404, "unknown_host")
		})
	}
}

// worker-deployment §3: a switch affects only requests accepted afterwards.
func TestPublishSwitchesOnlyLaterRequests(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := start(t, Options{}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
		close(entered)
		<-release
		return answer(res, 200, "old")
	}))
	first := f.dial(t)
	first.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	wait(t, "the old version", entered)
	publish(t, f.Router, serving(func(_ context.Context, _ *event.Request, res *event.Response) error { return answer(res, 200, "new") }))
	if _, body := f.get(t, "/"); body != "new" {
		t.Errorf("a later request got %q", body)
	}
	close(release)
	if _, body := first.response("GET"); body != "old" {
		t.Errorf("the running request got %q", body)
	}
}

// A request that chose a version just before a switch retired it goes to the new picture; where the picture stands, a version
// that does not serve is not replaced by another (worker-deployment §3).
func TestSwitchBetweenChoiceAndStart(t *testing.T) {
	var f *front
	f = start(t, Options{}, serving(func(context.Context, *event.Request, *event.Response) error {
		publish(t, f.Router, serving(func(_ context.Context, _ *event.Request, res *event.Response) error { return answer(res, 200, "new") }))
		return event.ErrNotServing.New("test", "the version has been retired")
	}))
	if res, body := f.get(t, "/"); res.StatusCode != 200 || body != "new" {
		t.Errorf("got %d %q, want the new version's answer", res.StatusCode, body)
	}
	calls := 0
	publish(t, f.Router, serving(func(context.Context, *event.Request, *event.Response) error {
		calls++
		return event.ErrNotServing.New("test", "the version has been retired")
	}))
	res, _ := f.get(t, "/")
	checkError(t, res, 503, "not_serving")
	if calls != 1 {
		t.Errorf("the version was asked %d times, want once", calls)
	}
}

// RFC 9112 §9.3: HTTP/1.0 keeps the connection only if asked, and gets no chunks.
func TestHTTP10(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		if strings.HasSuffix(string(req.URL), "/stream") {
			res.Status, res.Stream = 200, io.NopCloser(strings.NewReader("streamed"))
			return nil
		}
		return answer(res, 200, "whole")
	}))
	c := f.dial(t)
	c.send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n")
	if res, body := c.response("GET"); body != "whole" || res.Header.Get("Connection") != "keep-alive" {
		t.Errorf("got %q, Connection %q", body, res.Header.Get("Connection"))
	}
	c.send("GET /stream HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n")
	if res, body := c.response("GET"); body != "streamed" || !res.Close || len(res.TransferEncoding) > 0 {
		t.Errorf("got %q, close %t, coding %v", body, res.Close, res.TransferEncoding)
	}
	c = f.dial(t)
	c.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
	if res, _ := c.response("GET"); !res.Close {
		t.Error("an HTTP/1.0 connection is kept although nobody asked")
	}
	c.closed()
}

// Pipelined requests are answered in order, each from its own bytes.
func TestPipelining(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		return answer(res, 200, string(req.URL))
	}))
	c := f.dial(t)
	var all strings.Builder
	for i := range 50 {
		fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc", i)
	}
	c.send(all.String())
	for i := range 50 {
		if _, body := c.response("POST"); body != fmt.Sprintf("http://a.test/%d", i) {
			t.Fatalf("response %d is %q", i, body)
		}
	}
}

// Options: all faults are reported at once.
func TestNewReportsAllFaults(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = New(Options{HTTPS: l, MaxConns: -1, IdleTimeout: -1})
	for _, want := range []string{"certificates", "MaxConns", "IdleTimeout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
