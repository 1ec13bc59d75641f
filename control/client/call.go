package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"edged/internal/fault"
)

// maxDocument bounds the JSON that a node may answer with: a page of large specs is some MiB.
const maxDocument = 64 << 20

// request is one call. The body is kept whole, so that it can be sent again.
type request struct {
	method, url string
	header      map[string]string
	body        []byte
	mediaType   string
	public      bool // sends no credential
	repeat      bool // may be sent again when it is unknown whether it arrived
}

// reply is what is left of a response beside its document.
type reply struct {
	status     int
	retryAfter time.Duration // 0 if the node did not say
}

// call sends a request and decodes a 2xx answer into out (nil: none expected). Requests that may be repeated are, after
// a lost connection, 429, 502, 503 and 504, as long as attempts and ctx last.
func (c *Client) call(ctx context.Context, req request, out any) (reply, error) {
	for attempt := 1; ; attempt++ {
		r, err := c.once(ctx, req, out)
		if err == nil || !req.repeat || attempt >= c.opt.Attempts || ctx.Err() != nil || !fault.CodeOf(err).Retryable() {
			return r, err
		}
		wait := r.retryAfter
		if wait == 0 {
			wait = retryPause(attempt)
		}
		if werr := sleep(ctx, wait); werr != nil {
			return r, err
		}
	}
}

// retryPause doubles from 200 ms, half of it random, so that clients of a node that restarts do not return as one.
func retryPause(attempt int) time.Duration {
	wait := 200 * time.Millisecond << min(attempt-1, 5)
	return wait/2 + rand.N(wait/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (c *Client) once(ctx context.Context, req request, out any) (reply, error) {
	op := "client." + req.method
	actx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	hr, err := http.NewRequestWithContext(actx, req.method, req.url, bytes.NewReader(req.body))
	if err != nil {
		return reply{}, fault.Wrap(fault.Invalid, op, err)
	}
	for name, value := range req.header {
		hr.Header.Set(name, value)
	}
	if req.mediaType != "" {
		hr.Header.Set("Content-Type", req.mediaType)
	}
	hr.Header.Set("User-Agent", "edged")
	if !req.public {
		hr.Header.Set("Authorization", "Bearer "+c.opt.Token)
	}
	res, err := c.http.Do(hr)
	if err != nil {
		return reply{}, lost(ctx, op, err)
	}
	defer res.Body.Close()
	r := reply{status: res.StatusCode, retryAfter: retryAfter(res.Header.Get("Retry-After"))}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return r, lost(ctx, op, err)
	}
	if len(body) > maxDocument {
		return r, fault.Newf(fault.TooLarge, op, "the answer has more than %d bytes", maxDocument)
	}
	if r.status < 200 || r.status > 299 {
		return r, refusal(op, res, body)
	}
	if out == nil || len(body) == 0 && req.method == http.MethodHead {
		return r, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return r, fault.Wrap(fault.Internal, op, errors.Join(errors.New("the answer is not the document expected"), err))
	}
	return r, nil
}

// lost is a connection's error: the caller's own end, or something that may pass.
func lost(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return fault.Wrap(fault.CodeOf(ctx.Err()), op, err)
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return fault.Newf(fault.Invalid, op, "the node's certificate is not one that the given CA vouches for: %v", untrusted.Err)
	}
	return fault.Wrap(fault.Unavailable, op, err)
}

func refusal(op string, res *http.Response, body []byte) error {
	p := new(Problem)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(body, p) != nil || p.Code == "" {
		p = &Problem{Code: "unexpected_answer", Title: http.StatusText(res.StatusCode)}
	}
	p.Status = res.StatusCode
	return fault.Wrap(kind(p.Status), op, p)
}

// retryAfter reads whole seconds, at most five minutes; dates are not used by this API.
func retryAfter(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(min(n, 300)) * time.Second
}
