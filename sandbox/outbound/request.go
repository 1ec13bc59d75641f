package outbound

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"edged/internal/fault"
	"edged/sandbox/binding"
)

// hop are the fields that belong to one connection and not to the message; also those that the transport sets itself.
var hop = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-authenticate": true, "proxy-authorization": true, "te": true,
	"trailer": true, "transfer-encoding": true, "upgrade": true, "host": true, "content-length": true, "expect": true,
}

// newRequest makes the request that a worker wants sent. Names keep the order of their first field; repeated ones stay
// apart.
func newRequest(ctx context.Context, o *binding.Outbound, at *url.URL) (*http.Request, error) {
	h, err := header(o.Request.Header)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: string(o.Request.Method), URL: at, Host: at.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	switch {
	case o.Request.Body != nil:
		req.Body, req.ContentLength = o.Request.Body, o.Request.Length
		if req.ContentLength == 0 {
			req.ContentLength = -1 // declared empty; only the body's end proves it
		}
	case o.Whole != nil:
		setWhole(req, o.Whole)
	}
	return req, nil
}

func setWhole(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if len(body) == 0 {
		req.Body = http.NoBody
		return
	}
	req.Body, _ = req.GetBody()
}

// header unpacks the fields of a worker.
func header(packed []byte) (http.Header, error) {
	h := http.Header{}
	for len(packed) > 0 {
		name, rest, ok1 := bytes.Cut(packed, []byte{'\n'})
		value, rest, ok2 := bytes.Cut(rest, []byte{'\n'})
		if !ok1 || !ok2 || len(name) == 0 || bytes.ContainsAny(value, "\r\x00") {
			return nil, fault.New(fault.Invalid, "outbound.Fetch", "a header is malformed")
		}
		packed = rest
		if !hop[string(name)] {
			h.Add(string(name), string(value))
		}
	}
	fallback(h, "Accept", "*/*")
	fallback(h, "User-Agent", "edged")
	if _, ranged := h["Range"]; !ranged { // a part of an encoded body cannot be decoded
		fallback(h, "Accept-Encoding", "gzip, deflate")
	}
	return h, nil
}

func fallback(h http.Header, name, value string) {
	if _, said := h[name]; !said {
		h.Set(name, value)
	}
}

// redirected makes the next request of a chain (Fetch standard, HTTP-redirect fetch).
func redirected(o *binding.Outbound, from *http.Request, status int, to *url.URL) (*http.Request, error) {
	h := from.Header.Clone()
	method := from.Method
	body := o.Whole
	if status == http.StatusSeeOther && method != "GET" && method != "HEAD" ||
		(status == http.StatusMovedPermanently || status == http.StatusFound) && method == "POST" {
		method, body = "GET", nil
		for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Location", "Content-Type"} {
			h.Del(name)
		}
	} else if o.Request.Body != nil {
		return nil, errReplay
	}
	if !sameOrigin(from.URL, to) {
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			h.Del(name)
		}
	}
	req := (&http.Request{Method: method, URL: to, Host: to.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(from.Context())
	if body != nil {
		setWhole(req, body)
	}
	return req, nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
