package artifact

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"edged/internal/egress"
	"edged/internal/fault"
)

// CheckURL judges an artifact's URL by worker-bundle §1: absolute https, ASCII, at most 8192 characters, without user
// information, query and fragment. The error is Invalid; its detail continues a sentence that starts with the URL's name.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (*url.URL, error) {
	bad := func(what string) (*url.URL, error) {
		return nil, fault.New(fault.Invalid, "artifact.CheckURL", what)
	}
	if text == "" || len(text) > MaxURLBytes {
		return bad("must have 1 to 8192 characters")
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return bad("holds a character that is not visible ASCII, or a backslash")
		}
	}
	if strings.ContainsAny(text, "?#") {
		return bad("has a query or a fragment")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Opaque != "" || u.Hostname() == "" {
		return bad("is not an absolute https URL")
	}
	if u.User != nil || strings.Contains(u.Host, "@") {
		return bad("has user information")
	}
	return u, nil
}

// origin returns scheme, lower-case host and port of u, 443 being the port that is not written.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return "https://" + net.JoinHostPort(host, port)
}

// originOf returns the origin of text, which must be an origin and a slash.
func originOf(text string) (string, bool) {
	u, err := parseURL(text)
	if err != nil || u.Path != "/" {
		return "", false
	}
	return origin(u), true
}

// sources fetches what is not held. No caller's credential and no cookie is ever sent, and no redirect is followed.
type sources struct {
	public, private *http.Client
	credentials     map[string]Credential // by origin
	origins         []string              // those that private may be used for
	timeout         time.Duration
}

func newSources(opt *Options) *sources {
	// The operator named these origins and TLS proves them, so their addresses need no judgement.
	anything, _ := egress.New(egress.Options{Mode: egress.Anything})
	client := func(policy *egress.Policy) *http.Client {
		return &http.Client{
			Transport: &http.Transport{
				DialContext:            policy.Dialer(opt.DialTimeout).DialContext,
				TLSClientConfig:        &tls.Config{RootCAs: opt.Roots, MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    opt.DialTimeout,
				ResponseHeaderTimeout:  opt.FetchTimeout,
				MaxResponseHeaderBytes: 64 << 10,
				MaxIdleConnsPerHost:    opt.Parallel,
				IdleConnTimeout:        30 * time.Second,
				DisableCompression:     true, // the bytes that are digested are those of the wire
				ForceAttemptHTTP2:      true,
				Proxy:                  nil, // a proxy would connect to addresses that nobody judged
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	s := &sources{
		public: client(opt.Egress), private: client(anything), origins: opt.Origins, timeout: opt.FetchTimeout, credentials: map[string]Credential{},
	}
	for _, c := range opt.Credentials {
		s.credentials[c.Origin] = c
	}
	return s
}

func (s *sources) close() {
	s.public.CloseIdleConnections()
	s.private.CloseIdleConnections()
}

// fetch opens u and hands its body to use, which must not need more than limit bytes. What the source did wrong is
// ErrInvalid, with a sentence that names neither the URL nor an address; errors of use come back as they are.
func (s *sources) fetch(ctx context.Context, u *url.URL, limit int64, use func(io.Reader) error) error {
	client := s.public
	if slices.Contains(s.origins, origin(u)) {
		client = s.private
	}
	fctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(fctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return badSource("its URL cannot be requested")
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "edged")
	if c, ok := s.credentials[origin(u)]; ok {
		req.Header.Set(c.Header, c.Value)
	}
	res, err := client.Do(req)
	if err != nil {
		return sourceError(ctx, fctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return ErrInvalid.Newf("artifact.fetch", "the source answered with status %d, not 200", res.StatusCode)
	}
	for _, coding := range res.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return badSource("the source used a content encoding")
		}
	}
	if res.ContentLength > limit {
		return ErrInvalid.Newf("artifact.fetch", "the source announced more than %d bytes", limit)
	}
	return use(readerFunc(func(p []byte) (int, error) {
		n, err := res.Body.Read(p)
		if err != nil && err != io.EOF {
			err = sourceError(ctx, fctx, err)
		}
		return n, err
	}))
}

func badSource(what string) error { return ErrInvalid.New("artifact.fetch", what) }

// sourceError tells what became of a connection. The caller's own end is no fault of the source.
func sourceError(caller, fetch context.Context, err error) error {
	var verify *tls.CertificateVerificationError
	var netErr net.Error
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, egress.ErrDenied):
		return badSource("the source has an address that is not allowed")
	case errors.As(err, &verify):
		return badSource("the source has no certificate that is valid for it")
	case fetch.Err() != nil, errors.As(err, &netErr) && netErr.Timeout():
		return badSource("the source did not answer in time")
	}
	return badSource("the source could not be reached or broke off")
}

// readerFunc is a reader made of its Read.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
