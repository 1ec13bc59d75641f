package router

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/sandbox/event"
)

// Shapes that two parsers could read differently, answered cleanly and followed by nothing.
func TestMalformedRequestsAreRefused(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, _ *event.Response) error {
		t.Errorf("the handler saw %s %s", req.Method, req.URL)
		return event.ErrWorker
	}))
	const next = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
	for name, raw := range map[string]string{
		"no host":            "GET / HTTP/1.1\r\n\r\n",
		"no host 1.0":        "GET / HTTP/1.0\r\n\r\n",
		"two hosts":          "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
		"two lengths":        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
		"length and coding":  "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"other coding":       "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"coding in 1.0":      "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"signed length":      "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +0\r\n\r\n",
		"space before colon": "GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length : 0\r\n\r\n",
		"folded":             "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n",
		"bare lf":            "GET / HTTP/1.1\nHost: a.test\n\n",
		"bare cr":            "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\rb\r\n\r\n",
		"nul":                "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\x00b\r\n\r\n",
		"other host":         "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"http2":              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"tls":                "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"proxy header":       "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := f.dial(t)
			c.send(raw + next)
			res, _ := c.response("GET")
			checkError(t, res, 400, "bad_request")
			if !res.Close {
				t.Error("the connection is to be kept")
			}
			c.closed()
		})
	}
}

// node-surface §7: upgrades and methods without a Request are 501; an h2c offer is ignored.
func TestUpgrades(t *testing.T) {
	f := start(t, Options{}, serving(hello))
	for _, tt := range []struct {
		request string
		status  int
		code    string
	}{
		{"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 501, "not_implemented"},
		{"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 501, "not_implemented"},
		{"TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n", 501, "not_implemented"},
		{"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n", 200, ""},
		{"GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\n\r\n", 200, ""},
	} {
		c := f.dial(t)
		c.send(tt.request)
		res, _ := c.response("GET")
		checkError(t, res, tt.status, tt.code)
	}
}

// module-worker §6: the floors are accepted; beyond our limits 414 and 431, also before the head is complete.
func TestHeadLimits(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		return answer(res, 200, fmt.Sprint(len(req.URL), " ", len(field(req.Header, "x"))))
	}))
	fields := func(n, each int) string {
		return strings.Repeat("X: "+strings.Repeat("v", each)+"\r\n", n)
	}
	for _, tt := range []struct {
		name, request string
		status        int
		code          string
	}{
		{"url floor", "GET /" + strings.Repeat("u", 8191) + " HTTP/1.1\r\nHost: a.test\r\n\r\n", 200, ""},
		{"url limit", "GET /" + strings.Repeat("u", 16<<10) + " HTTP/1.1\r\nHost: a.test\r\n\r\n", 414, "url_too_long"},
		{"url without end", "GET /" + strings.Repeat("u", 17<<10), 414, "url_too_long"},
		{"fields floor", "GET / HTTP/1.1\r\nHost: a.test\r\n" + fields(63, 16384/63) + "\r\n", 200, ""},
		{"too many fields", "GET / HTTP/1.1\r\nHost: a.test\r\n" + fields(128, 1) + "\r\n", 431, "headers_too_large"},
		{"too large fields", "GET / HTTP/1.1\r\nHost: a.test\r\n" + fields(2, 17<<10) + "\r\n", 431, "headers_too_large"},
		{"field without end", "GET / HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("v", 33<<10), 431, "headers_too_large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.dial(t)
			c.send(tt.request)
			res, _ := c.response("GET")
			checkError(t, res, tt.status, tt.code)
		})
	}
}

// A head that drips is refused after HeadTimeout, a silent connection is closed after IdleTimeout.
func TestSlowHeads(t *testing.T) {
	f := start(t, Options{HeadTimeout: 50 * time.Millisecond}, serving(hello))
	c := f.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: a")
	res, _ := c.response("GET")
	checkError(t, res, 400, "bad_request")
	c.closed()

	f = start(t, Options{IdleTimeout: 50 * time.Millisecond}, serving(hello))
	f.dial(t).closed()
	c = f.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	c.response("GET")
	c.closed()
}

// A head may come in any pieces, and a client may send one line end too many before it.
func TestHeadInPieces(t *testing.T) {
	f := start(t, Options{}, serving(hello))
	c := f.dial(t)
	for _, b := range []byte("\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n") {
		c.send(string(b))
	}
	for range 2 {
		if _, body := c.response("GET"); body != "hello" {
			t.Errorf("got %q", body)
		}
	}
}
