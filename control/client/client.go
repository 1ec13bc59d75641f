package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"edged/internal/fault"
)

// Options names one node and one credential.
type Options struct {
	URL   string         // required: the control origin, https
	Dial  string         // address to connect to instead of the origin's, "" means the origin's
	Roots *x509.CertPool // who may vouch for the node; nil means the system's
	Token string         // bearer token; empty can only discover

	CallTimeout time.Duration // of one attempt at one request, 0 means 60 s (a bundle can be 16 MiB)
	Attempts    int           // of a request that may be repeated, 0 means 5

	transport http.RoundTripper // tests only
}

// Client is one node. Safe for concurrent use. Every error carries a fault code; a refusal is a *Problem.
type Client struct {
	opt    Options
	origin string // scheme and host of URL
	http   *http.Client
	// patient waits for an answer as long as the context does: operators' calls may take their time.
	patient *http.Client

	mu        sync.Mutex
	discovery *Discovery // once found
}

// New returns a client; it connects to nothing yet. Close frees its connections.
func New(opt Options) (*Client, error) {
	u, err := url.Parse(opt.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fault.Newf(fault.Invalid, "client.New", "the control URL %q is not an https origin", opt.URL)
	}
	if opt.CallTimeout == 0 {
		opt.CallTimeout = time.Minute
	}
	if opt.Attempts == 0 {
		opt.Attempts = 5
	}
	c := &Client{opt: opt, origin: "https://" + u.Host}
	transport := opt.transport
	if transport == nil {
		dialer := &net.Dialer{Timeout: 10 * time.Second}
		transport = &http.Transport{
			TLSClientConfig:       &tls.Config{RootCAs: opt.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: opt.CallTimeout,
			IdleConnTimeout:       30 * time.Second,
			ForceAttemptHTTP2:     true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if opt.Dial != "" {
					address = opt.Dial
				}
				return dialer.DialContext(ctx, network, address)
			},
		}
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.patient = &http.Client{Transport: transport, CheckRedirect: c.http.CheckRedirect}
	if t, ok := transport.(*http.Transport); ok {
		slow := t.Clone()
		slow.ResponseHeaderTimeout = 0
		c.patient.Transport = slow
	}
	return c, nil
}

// Close frees idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.patient.CloseIdleConnections()
}

// Discovery is what a node says about itself (host-api §3).
type Discovery struct {
	API           string `json:"api"`
	BaseURL       string `json:"baseUrl"`
	Documentation string `json:"documentation"`
	Capabilities  struct {
		Offerings     bool `json:"offerings"`
		Previews      bool `json:"previews"`
		PrivateInputs bool `json:"privateInputs"`
	} `json:"capabilities"`
	Limits struct {
		MaxRequestBytes     int64 `json:"maxRequestBytes"`
		MaxPageSize         int   `json:"maxPageSize"`
		ReplayWindowSeconds int64 `json:"replayWindowSeconds"`
	} `json:"limits"`
}

// API is the identifier of the only API this client speaks.
const API = "forms.takoform.com/v2"

// Discover returns the node's discovery document, which is asked for once.
func (c *Client) Discover(ctx context.Context) (*Discovery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discovery != nil {
		return c.discovery, nil
	}
	var d Discovery
	if _, err := c.call(ctx, request{method: http.MethodGet, url: c.origin + "/.well-known/takoform/v2", public: true, repeat: true}, &d); err != nil {
		return nil, err
	}
	if d.API != API {
		return nil, fault.Newf(fault.Invalid, "client.Discover", "the node speaks %.64q, not %s", d.API, API)
	}
	if d.BaseURL != c.origin && !strings.HasPrefix(d.BaseURL, c.origin+"/") {
		return nil, fault.Newf(fault.Invalid, "client.Discover",
			"the node's API is at another origin, %.256q: use that as the control URL", d.BaseURL)
	}
	c.discovery = &d
	return &d, nil
}

// root returns the API's root, without a slash at its end.
func (c *Client) root(ctx context.Context) (string, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return "", err
	}
	return d.BaseURL, nil
}
