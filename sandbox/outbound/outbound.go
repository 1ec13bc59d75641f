package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"time"

	"edged/internal/egress"
	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// Options configure a Client.
type Options struct {
	Policy      *egress.Policy // required: which addresses may be reached
	TLS         *tls.Config    // nil trusts the system's authorities
	HeadTimeout time.Duration  // from the sent request to the response's head; 0 means 60 s
}

const (
	connectTimeout = 10 * time.Second // of resolving and connecting, and then of the TLS handshake
	maxHeadBytes   = 64 << 10         // of a response
)

// Client sends requests. Safe for concurrent use.
type Client struct{ transport *http.Transport }

// The most redirects that one fetch follows (Fetch standard).
const maxRedirects = 20

var (
	errRedirects = fault.New(fault.Invalid, "outbound.Fetch", "too many redirects")
	errRedirect  = fault.New(fault.Invalid, "outbound.Fetch", "a redirect was not wanted")
	errReplay    = fault.New(fault.Invalid, "outbound.Fetch", "the body cannot be sent again to where the redirect leads")
)

// New makes a client. It starts nothing; pooled connections end by themselves or with Close.
func New(opt Options) (*Client, error) {
	if opt.Policy == nil {
		return nil, fault.New(fault.Invalid, "outbound.New", "an egress policy is needed")
	}
	if opt.HeadTimeout == 0 {
		opt.HeadTimeout = time.Minute
	}
	conf := opt.TLS.Clone()
	if conf == nil {
		conf = &tls.Config{}
	}
	conf.MinVersion = max(conf.MinVersion, tls.VersionTLS12)
	return &Client{transport: &http.Transport{
		DialContext:            opt.Policy.Dialer(connectTimeout).DialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    connectTimeout,
		ResponseHeaderTimeout:  opt.HeadTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    32,
		MaxResponseHeaderBytes: maxHeadBytes,
		DisableCompression:     true, // what is undone here, and what the worker sees of it, is ours to say
		ForceAttemptHTTP2:      true,
	}}, nil
}

// Close closes the pooled connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Fetch is binding.Fetcher's. Every error says only what the worker may not see anyway.
func (c *Client) Fetch(ctx context.Context, o *binding.Outbound, res *event.Response) error {
	at, err := url.Parse(string(o.Request.URL))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		closeBody(o)
		return fault.New(fault.Invalid, "outbound.Fetch", "the URL is neither http nor https")
	}
	if at.User != nil { // the transport would make a header of it
		closeBody(o)
		return fault.New(fault.Invalid, "outbound.Fetch", "the URL has credentials")
	}
	req, err := newRequest(ctx, o, at)
	if err != nil {
		closeBody(o)
		return err
	}
	if o.Request.Body != nil {
		context.AfterFunc(ctx, func() { closeBody(o) }) // a transport that waits for its bytes looks at nothing else
	}
	for hops := 0; ; hops++ {
		answer, err := c.transport.RoundTrip(req)
		if err != nil {
			return fault.Wrap(codeOf(err), "outbound.Fetch", err)
		}
		to, err := follows(o, req, answer, hops)
		if err != nil {
			answer.Body.Close()
			return err
		}
		if to == nil {
			o.URL = withoutFragment(req.URL)
			return fill(res, answer, req.Method)
		}
		answer.Body.Close()
		if req, err = redirected(o, req, answer.StatusCode, to); err != nil {
			return err
		}
		o.Redirected = true
	}
}

// follows returns where an answer leads, nil if it is the answer.
func follows(o *binding.Outbound, req *http.Request, answer *http.Response, hops int) (*url.URL, error) {
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := answer.Header.Get("Location")
	switch {
	case location == "" || o.Redirect == "manual":
		return nil, nil
	case o.Redirect == "error":
		return nil, errRedirect
	case hops >= maxRedirects:
		return nil, errRedirects
	}
	to, err := req.URL.Parse(location)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil {
		return nil, errRedirect
	}
	if to.Fragment == "" {
		to.Fragment = req.URL.Fragment
	}
	return to, nil
}

func codeOf(err error) fault.Code {
	if errors.Is(err, egress.ErrDenied) {
		return fault.Denied
	}
	if c := fault.CodeOf(err); c != fault.Internal {
		return c
	}
	return fault.Unavailable
}

func withoutFragment(u *url.URL) string {
	plain := *u
	plain.Fragment, plain.RawFragment = "", ""
	return plain.String()
}

func closeBody(o *binding.Outbound) {
	if o.Request.Body != nil {
		o.Request.Body.Close()
	}
}
