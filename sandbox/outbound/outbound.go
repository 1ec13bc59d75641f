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
	Policy         *egress.Policy // required: which addresses may be reached
	TLS            *tls.Config    // nil trusts the system's authorities
	ConnectTimeout time.Duration  // resolving and connecting, then the TLS handshake; 0 means 10 s each
	HeadTimeout    time.Duration  // from the sent request to the response's head; 0 means 60 s
	IdleTimeout    time.Duration  // of a pooled connection; 0 means 90 s
	MaxIdle        int            // pooled connections; 0 means 512, 32 of them to one host
	MaxHeadBytes   int64          // of a response; 0 means 64 KiB
}

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
	def := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	def(&opt.ConnectTimeout, 10*time.Second)
	def(&opt.HeadTimeout, time.Minute)
	def(&opt.IdleTimeout, 90*time.Second)
	if opt.MaxIdle == 0 {
		opt.MaxIdle = 512
	}
	if opt.MaxHeadBytes == 0 {
		opt.MaxHeadBytes = 64 << 10
	}
	conf := opt.TLS.Clone()
	if conf == nil {
		conf = &tls.Config{}
	}
	conf.MinVersion = max(conf.MinVersion, tls.VersionTLS12)
	return &Client{transport: &http.Transport{
		DialContext:            opt.Policy.Dialer(opt.ConnectTimeout).DialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    opt.ConnectTimeout,
		ResponseHeaderTimeout:  opt.HeadTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        opt.IdleTimeout,
		MaxIdleConns:           opt.MaxIdle,
		MaxIdleConnsPerHost:    32,
		MaxResponseHeaderBytes: opt.MaxHeadBytes,
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
