package h1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var limits = Limits{Target: 100, Fields: 4, FieldBytes: 200}

// scanAndParse reads one head from the start of b.
func scanAndParse(b []byte, lim Limits, forwarded bool) (h Head, packed []byte, n int, err error) {
	var s Scanner
	if n, err = s.Scan(b, lim); n == 0 || err != nil {
		return h, nil, n, err
	}
	packed, err = h.Parse(b[:n], nil, forwarded)
	return h, packed, n, err
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // method path host minor length keepalive continue | packed
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / a 1 0 true false|host\na\n"},
		{"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / a 1 0 true false|host\na\n"},
		{"get /p?q HTTP/1.0\r\nHOST:a:80\r\n\r\n", "get /p?q a:80 0 0 false false|host\na:80\n"},
		{"GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", "GET / a 0 0 true false|host\na\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive\r\n\r\n", "GET / a 1 0 false false|host\na\n"},
		{"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n", "PUT / a 1 12 true true|host\na\ncontent-length\n12\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "GET / a 1 0 true false|host\na\n"},
		{"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", "PUT / a 1 -1 true false|host\na\n"},
		{"GET http://A:1/x?y HTTP/1.1\r\nHost: a:1\r\n\r\n", "GET /x?y a:1 1 0 true false|host\na:1\n"},
		{"GET HTTPS://a?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET ?y a 1 0 true false|host\na\n"},
		{"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET  a 1 0 true false|host\na\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: \t v \xff\t \r\nY:\r\n\r\n", "GET / a 1 0 true false|host\na\nx\nv \xff\ny\n\n"},
		{"GET / HTTP/1.1\r\nX-B: 1\r\nHost: a\r\nConnection: x-b, host, content-length\r\nX-C: 2\r\n\r\n", "GET / a 1 0 true false|host\na\nx-c\n2\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\nEdged-X: 1\r\nForwarded: x\r\nX-Forwarded-Prefix: 1\r\n\r\n", "GET / a 1 0 true false|host\na\n"},
		{"GET / HTTP/1.1\r\nHost: a:65535\r\n\r\n", "GET / a:65535 1 0 true false|host\na:65535\n"},
		{"GET / HTTP/1.1\r\nHost: a:\r\n\r\n", "GET / a: 1 0 true false|host\na:\n"},
		{"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / [::1]:80 1 0 true false|host\n[::1]:80\n"},
		{"GET /é\\\" HTTP/1.1\r\nHost: a_b-c.d.\r\n\r\n", "GET /é\\\" a_b-c.d. 1 0 true false|host\na_b-c.d.\n"},
	} {
		h, packed, n, err := scanAndParse([]byte(tt.in), limits, false)
		got := fmt.Sprintf("%s %s %s %d %d %t %t|%s", h.Method, h.Path, h.Host, h.Minor, h.Length, h.KeepAlive, h.Continue, packed)
		if err != nil || n != len(tt.in) || got != tt.want {
			t.Errorf("%q:\n got %q %v\nwant %q", tt.in, got, err, tt.want)
		}
	}
}

// A trusted proxy's fields pass, and are noted.
func TestParseForwarded(t *testing.T) {
	h, packed, _, err := scanAndParse([]byte("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1, 2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n\r\n"), limits, true)
	if err != nil || !h.ForwardedFor || !h.ForwardedHost || string(h.ForwardedProto) != "https" ||
		string(packed) != "host\na\nx-forwarded-for\n1, 2\nx-forwarded-proto\nhttps\nx-forwarded-host\nb\n" {
		t.Errorf("got %+v %q %v", h, packed, err)
	}
}

func TestParseRefuses(t *testing.T) {
	fields := func(f ...string) string {
		return "POST / HTTP/1.1\r\nHost: a\r\n" + strings.Join(append(f, "", ""), "\r\n")
	}
	for _, tt := range []struct {
		in   string
		want error
	}{
		{"GET / HTTP/1.1\r\n\r\n", ErrBad},
		{fields("Host: a"), ErrBad},
		{"GET / HTTP/1.1\r\nHost:\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", ErrBad},  // no URL has it: the worker's request.url could not be parsed
		{"GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n", ErrBad}, // longer than any port
		{"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: [g]\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", ErrBad},
		{"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{" GET / HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", ErrBad},
		{"GET /\r\nHost: a\r\n\r\n", ErrBad},
		{"GET / HTTP/1.2\r\nHost: a\r\n\r\n", ErrBad},
		{"GET / http/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET /#f HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET a HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET http://a\\x HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", ErrBad},
		{"PRI * HTTP/2.0\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\nHost: a\r\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: a\n\r\n", ErrBad},
		{"GET / HTTP/1.1\r\nHost: a\r\n\n", ErrBad},
		{"\n", ErrBad},
		{fields("X: a\rb"), ErrBad},
		{fields("X: a\x00b"), ErrBad},
		{fields("X: a", " b"), ErrBad},
		{fields("X : a"), ErrBad},
		{fields(": a"), ErrBad},
		{fields("X"), ErrBad},
		{fields("X\xff: a"), ErrBad},
		{fields("Content-Length: 1", "Content-Length: 1"), ErrBad},
		{fields("Content-Length: 1, 1"), ErrBad},
		{fields("Content-Length: -1"), ErrBad},
		{fields("Content-Length: 0x1"), ErrBad},
		{fields("Content-Length: "), ErrBad},
		{fields("Content-Length: 99999999999999999999"), ErrBad},
		{fields("Content-Length: 1", "Transfer-Encoding: chunked"), ErrBad},
		{fields("Transfer-Encoding: chunked", "Content-Length: 1"), ErrBad},
		{fields("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), ErrBad},
		{fields("Transfer-Encoding: chunked, chunked"), ErrBad},
		{fields("Transfer-Encoding: identity"), ErrBad},
		{fields("Transfer-Encoding: \x0bchunked"), ErrBad},
		{fields("Connection: x", "Connection: y"), ErrBad},
		{"GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", ErrBad},
		{"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", ErrNotImplemented},
		{"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", ErrNotImplemented},
		{fields("Connection: upgrade", "Upgrade: websocket"), ErrNotImplemented},
		{"GET /" + strings.Repeat("x", 200), ErrTargetTooLong},
		{fields("1: 1", "2: 2", "3: 3", "4: 4"), ErrFieldsTooLarge},
		{fields("1: " + strings.Repeat("x", 200)), ErrFieldsTooLarge},
		{"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 250), ErrFieldsTooLarge},
	} {
		if _, _, _, err := scanAndParse([]byte(tt.in), limits, false); !errors.Is(err, tt.want) {
			t.Errorf("%q: got %v, want %v", tt.in, err, tt.want)
		}
	}
}

// Bytes that arrive one by one give the same verdict as all at once, and never later than at the head's end.
func TestScanInPieces(t *testing.T) {
	const in = "\r\nGET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"
	var s Scanner
	for i := range len(in) + 1 {
		n, err := s.Scan([]byte(in[:i]), limits)
		if err != nil || (n > 0) != (i == len(in)) {
			t.Fatalf("after %q: %d, %v", in[:i], n, err)
		}
	}
}

// Whatever we accept, net/http reads the same way: method, target, host, fields, body framing, and where the head ends.
// What we refuse may be anything.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /a?b HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3\r\nX: 1\r\nX: 2\r\n\r\nabc",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, x\r\nX: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: [::1]\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	wide := Limits{Target: 4096, Fields: 64, FieldBytes: 4096}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, packed, n, err := scanAndParse(b, wide, true)
		if err != nil || n == 0 {
			return
		}
		if bytes.Count(packed, []byte("\n"))%2 != 0 {
			t.Fatalf("packed %q", packed)
		}
		br := bufio.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\r\n"))))
		req, err := http.ReadRequest(br)
		if err != nil {
			// net/http parses URLs further than a front needs to; framing and fields it must accept as we do.
			if s := err.Error(); strings.Contains(s, "invalid URI") || strings.Contains(s, "parse ") || strings.Contains(s, "malformed Host") || strings.Contains(s, "invalid method") {
				return
			}
			t.Fatalf("accepted %q, net/http: %v", b[:n], err)
		}
		if req.Method != string(h.Method) || !strings.EqualFold(req.Host, string(h.Host)) || req.ProtoMinor != h.Minor || !strings.HasSuffix(req.RequestURI, string(h.Path)) {
			t.Fatalf("%q: %s %s %s", b[:n], req.Method, req.Host, req.RequestURI)
		}
		if length := req.ContentLength; length != h.Length {
			t.Fatalf("%q: length %d, net/http %d", b[:n], h.Length, length)
		}
		checkFields(t, packed, req.Header)
		rest, err := io.ReadAll(br)
		if err != nil || h.Length == 0 && !bytes.Equal(rest, b[n:]) {
			t.Fatalf("%q: the head ends elsewhere: %q", b, rest)
		}
	})
}

func checkFields(t *testing.T, packed []byte, want http.Header) {
	t.Helper()
	got := http.Header{}
	lines := strings.Split(string(packed), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if lines[i] != "host" {
			got.Add(lines[i], lines[i+1])
		}
	}
	for name, values := range got {
		if fmt.Sprint(values) != fmt.Sprint(want[name]) {
			t.Fatalf("%s: %q, net/http %q", name, values, want[name])
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	b := []byte("GET /some/path?q=1 HTTP/1.1\r\nHost: www.a.test\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n")
	dst := make([]byte, 0, 500)
	var h Head
	if n := testing.AllocsPerRun(100, func() {
		var s Scanner
		n, _ := s.Scan(b, limits)
		if _, err := h.Parse(b[:n], dst[:0], false); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
