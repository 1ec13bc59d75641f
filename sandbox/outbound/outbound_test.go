package outbound

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/egress"
	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// client may reach loopback addresses alone.
func client(t *testing.T, config *tls.Config) *Client {
	t.Helper()
	policy, err := egress.New(egress.Options{Mode: egress.Nothing, Rules: []egress.Rule{{Allow: true, Block: netip.MustParsePrefix("127.0.0.1/32")}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Policy: policy, TLS: config, HeadTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

type result struct {
	status           int
	header, body, at string
	redirected       bool
	err              error
}

func fetch(c *Client, method, url, header, redirect string, whole []byte) (r result) {
	o := binding.Outbound{Request: &event.Request{Method: []byte(method), URL: []byte(url), Header: []byte(header)}, Redirect: redirect, Whole: whole}
	var res event.Response
	if r.err = c.Fetch(context.Background(), &o, &res); r.err != nil {
		return r
	}
	r.status, r.header, r.at, r.redirected = res.Status, string(res.Header), o.URL, o.Redirected
	if res.Stream != nil {
		defer res.Stream.Close()
		b, err := io.ReadAll(res.Stream)
		r.body, r.err = string(b), err
	}
	return r
}

// show answers with what it got.
func show(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.Header().Set("Edged-Version", "forged")
	fmt.Fprintf(w, "%s %s %s auth=%q cookie=%q type=%q x=%q te=%q", r.Method, r.URL.Path, b, r.Header.Get("Authorization"), r.Header.Get("Cookie"),
		r.Header.Get("Content-Type"), r.Header["X-A"], r.Header.Get("Te"))
}

// Method, headers and body go out as the worker said; repeated fields come back apart; what belongs to a connection or to
// the node stays away.
func TestFetch(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(show))
	defer srv.Close()
	r := fetch(client(t, nil), "POST", srv.URL+"/p", "x-a\n1\nx-a\n2\nte\ntrailers\nauthorization\nme\n", "follow", []byte("hi"))
	if want := `POST /p hi auth="me" cookie="" type="" x=["1" "2"] te=""`; r.err != nil || r.status != 200 || r.body != want || r.at != srv.URL+"/p" || r.redirected {
		t.Errorf("got %+v\nwant %s", r, want)
	}
	if !strings.Contains(r.header, "set-cookie\na=1\nset-cookie\nb=2\n") || strings.Contains(r.header, "edged-") {
		t.Errorf("header %q", r.header)
	}
}

// Nothing that a worker says becomes a second request, another destination or a credential it did not name: malformed
// names, values and methods are refused before a byte is sent, Host and framing are the client's own, and cookies are not kept.
func TestRequestsAreFramedByTheClient(t *testing.T) {
	var mu sync.Mutex
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%s %s %s %q %q %d", r.Method, r.Host, r.URL, b, r.Header["Cookie"], r.ContentLength))
		w.Header().Set("Set-Cookie", "a=1")
	}))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	c := client(t, nil)
	for _, x := range []struct{ method, url, header string }{
		{"GET", srv.URL, "x a\n1\n"}, {"GET", srv.URL, "x:\n1\n"}, {"GET", srv.URL, "x\r\n1\n"}, {"GET", srv.URL, "x\na\rb\n"},
		{"GET", srv.URL, "x\na\x00b\n"}, {"GET", srv.URL, "x\n"}, {"GET", srv.URL, "\n1\n"}, {"GET", srv.URL, "x\na\x7fb\n"},
		{"GET / HTTP/1.1\r\nX: ", srv.URL, ""}, {"G T", srv.URL, ""}, {"GET", "http://user:pass@" + host + "/", ""},
		{"GET", srv.URL + "/a b\r\n", ""},
	} {
		if r := fetch(c, x.method, x.url, x.header, "follow", nil); r.err == nil {
			t.Errorf("%q %q %q was sent", x.method, x.url, x.header)
		}
	}
	if len(got) != 0 {
		t.Fatalf("the server saw %q", got)
	}
	for range 2 {
		r := fetch(c, "POST", srv.URL+"/p?q", "host\nother.test\ncontent-length\n1\ntransfer-encoding\nchunked\nconnection\nx-a\n", "follow", []byte("body"))
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	if want := fmt.Sprintf("POST %s /p?q %q [] 4", host, "body"); len(got) != 2 || got[0] != want || got[1] != want {
		t.Errorf("the server saw %q, want %q twice", got, want)
	}
}

// Outgoing TLS is 1.2 at least, whatever the configuration says.
func TestOldTLSIsRefused(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(show))
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	conf := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.MinVersion = tls.VersionTLS10
	if r := fetch(client(t, conf), "GET", srv.URL, "", "follow", nil); r.err == nil {
		t.Error("TLS 1.1 was spoken")
	}
}

// A pooled connection is used again once its response was read to the end.
func TestConnectionsAreKept(t *testing.T) {
	var mu sync.Mutex
	peers := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		peers[r.RemoteAddr] = true
	}))
	defer srv.Close()
	c := client(t, nil)
	for range 5 {
		if r := fetch(c, "GET", srv.URL, "", "follow", nil); r.err != nil {
			t.Fatal(r.err)
		}
	}
	if len(peers) != 1 {
		t.Errorf("%d connections for 5 requests", len(peers))
	}
}

// Fetch standard, HTTP-redirect fetch: methods, bodies and credentials along a chain; modes; the limit.
func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(show))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/show", show)
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/to/{status}/{where}", func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscan(r.PathValue("status"), &status)
		to := "/show"
		if r.PathValue("where") == "other" {
			to = other.URL + "/show"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	c := client(t, nil)
	header := "authorization\nme\ncookie\nc\ncontent-type\ntext/x\n"
	for _, x := range []struct{ method, path, mode, want string }{
		{"GET", "/to/302/same", "follow", `GET /show  auth="me" cookie="c" type="text/x" x=[] te=""`},
		{"POST", "/to/302/same", "follow", `GET /show  auth="me" cookie="c" type="" x=[] te=""`},
		{"POST", "/to/303/same", "follow", `GET /show  auth="me" cookie="c" type="" x=[] te=""`},
		{"PUT", "/to/301/same", "follow", `PUT /show body auth="me" cookie="c" type="text/x" x=[] te=""`},
		{"POST", "/to/307/same", "follow", `POST /show body auth="me" cookie="c" type="text/x" x=[] te=""`},
		{"POST", "/to/308/other", "follow", `POST /show body auth="" cookie="" type="text/x" x=[] te=""`},
		{"GET", "/to/302/other", "follow", `GET /show  auth="" cookie="" type="text/x" x=[] te=""`},
	} {
		var whole []byte
		if x.method != "GET" {
			whole = []byte("body")
		}
		r := fetch(c, x.method, srv.URL+x.path, header, x.mode, whole)
		if r.err != nil || r.body != x.want || !r.redirected || !strings.HasSuffix(r.at, "/show") {
			t.Errorf("%s %s: got %+v\nwant %s", x.method, x.path, r, x.want)
		}
	}
	if r := fetch(c, "GET", srv.URL+"/to/302/same", "", "manual", nil); r.status != 302 || r.redirected || !strings.Contains(r.header, "location\n/show\n") {
		t.Errorf("manual: %+v", r)
	}
	if r := fetch(c, "GET", srv.URL+"/to/302/same", "", "error", nil); r.err == nil {
		t.Error("a redirect passes the mode error")
	}
	if r := fetch(c, "GET", srv.URL+"/loop", "", "follow", nil); r.err == nil {
		t.Error("an endless chain ends well")
	}
	o := binding.Outbound{Request: &event.Request{Method: []byte("POST"), URL: []byte(srv.URL + "/to/307/same"), Length: -1,
		Body: streamed{strings.NewReader("once")}}, Redirect: "follow"}
	var res event.Response
	if err := c.Fetch(context.Background(), &o, &res); err == nil {
		t.Error("a stream was sent twice")
	}
}

type streamed struct{ io.Reader }

func (streamed) TryRead([]byte) (int, error) { return 0, nil }
func (s streamed) Close() error {
	if c, ok := s.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Codings are undone and no longer announced; what cannot be undone fails as a body, and an empty body stays one.
func TestCodings(t *testing.T) {
	pack := func(coding string) []byte {
		var b bytes.Buffer
		w := io.WriteCloser(zlib.NewWriter(&b))
		if coding == "gzip" {
			w = gzip.NewWriter(&b)
		}
		w.Write([]byte("plain"))
		w.Close()
		return b.Bytes()
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		coding := r.URL.Query().Get("c")
		w.Header().Set("Content-Encoding", coding)
		switch r.URL.Path {
		case "/good":
			w.Write(pack(coding))
		case "/cut":
			w.Write(pack(coding)[:12])
		case "/bad":
			w.Write([]byte("no such coding"))
		}
	}))
	defer srv.Close()
	c := client(t, nil)
	for _, x := range []struct {
		query, body string
		fails, told bool
	}{
		{"/good?c=gzip", "plain", false, false}, {"/good?c=deflate", "plain", false, false}, {"/empty?c=gzip", "", false, false},
		{"/cut?c=gzip", "", true, false}, {"/bad?c=gzip", "", true, false}, {"/bad?c=br", "no such coding", false, true},
	} {
		r := fetch(c, "GET", srv.URL+x.query, "", "follow", nil)
		if (r.err != nil) != x.fails || !x.fails && r.body != x.body || strings.Contains(r.header, "content-encoding") != x.told {
			t.Errorf("%s: %+v", x.query, r)
		}
	}
}

// module-worker §5: the policy judges every connection, also one that a redirect leads to, by the address connected to.
func TestPolicyHolds(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:9/", http.StatusFound)
	}))
	defer srv.Close()
	c := client(t, nil)
	for _, url := range []string{"http://127.0.0.2/", "http://[::1]/", "http://10.0.0.1/", srv.URL} {
		if r := fetch(c, "GET", url, "", "follow", nil); fault.CodeOf(r.err) != fault.Denied {
			t.Errorf("%s: %v, want Denied", url, r.err)
		}
	}
	for _, url := range []string{"ftp://127.0.0.1/", "file:///etc/passwd", "http:///x", "::"} {
		if r := fetch(c, "GET", url, "", "follow", nil); fault.CodeOf(r.err) != fault.Invalid {
			t.Errorf("%s: %v, want Invalid", url, r.err)
		}
	}
}

// TLS names are checked; HTTP/2 is spoken where offered; bodies stream both ways; a done context ends a transfer.
func TestStreamsOverHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		io.Copy(flushing{w}, r.Body)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	if r := fetch(client(t, nil), "GET", srv.URL, "", "follow", nil); r.err == nil {
		t.Error("a certificate that nobody vouches for was taken")
	}
	c := client(t, srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	body, feed := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := binding.Outbound{Request: &event.Request{Method: []byte("POST"), URL: []byte(srv.URL), Length: -1, Body: streamed{body}}, Redirect: "follow"}
	var res event.Response
	if err := c.Fetch(ctx, &o, &res); err != nil {
		t.Fatal(err)
	}
	defer res.Stream.Close()
	if !strings.Contains(string(res.Header), "x-proto\nHTTP/2.0\n") {
		t.Errorf("header %q, want HTTP/2", res.Header)
	}
	buf := make([]byte, 8)
	for _, piece := range []string{"one", "two"} {
		feed.Write([]byte(piece))
		if n, err := io.ReadFull(res.Stream, buf[:3]); err != nil || string(buf[:n]) != piece {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
	}
	cancel()
	if _, err := res.Stream.Read(buf); err == nil {
		t.Error("the body goes on after its context")
	}
}

type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}
