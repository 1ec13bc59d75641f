package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"edged/internal/fault"
)

// Call is one operator's call below /operator/v1/. Its answer is a document or a stream of bytes, which the call knows.
type Call struct {
	Method string
	Path   string     // "kv/namespaces/" + url.PathEscape(uid) + "/keys"
	Query  url.Values // nil without
	Body   any        // a JSON document; nil without
}

// Ask makes a call and decodes the document it is answered with into out. Calls that only read are repeated like every read;
// there is no limit to how long the node may take but ctx.
func (c *Client) Ask(ctx context.Context, in Call, out any) error {
	var body []byte
	if in.Body != nil {
		var err error
		if body, err = json.Marshal(in.Body); err != nil {
			return fault.Wrap(fault.Invalid, "client.Ask", err)
		}
	}
	var answer bytes.Buffer
	req := func() error {
		answer.Reset()
		var src io.Reader
		if in.Body != nil {
			src = bytes.NewReader(body)
		}
		return c.transfer(ctx, in, src, int64(len(body)), "application/json", &answer, maxDocument)
	}
	err := req()
	for attempt := 1; err != nil && in.Method == http.MethodGet && attempt < c.opt.Attempts && ctx.Err() == nil && fault.CodeOf(err).Retryable(); attempt++ {
		if sleep(ctx, retryPause(attempt)) != nil {
			return err
		}
		err = req()
	}
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer.Bytes(), out); err != nil {
		return fault.Wrap(fault.Internal, "client.Ask", errors.Join(errors.New("the answer is not the document expected"), err))
	}
	return nil
}

// Fetch makes a call and writes the bytes it is answered with to w. After an error what was written is not whole.
func (c *Client) Fetch(ctx context.Context, in Call, w io.Writer) error {
	return c.transfer(ctx, in, nil, 0, "", w, -1)
}

// Open makes a call and returns the bytes it is answered with as they arrive; the caller closes them. A read that fails says that they
// are not whole. ctx bounds the call and the reading.
func (c *Client) Open(ctx context.Context, in Call) (io.ReadCloser, error) {
	return c.begin(ctx, in, nil, 0, "")
}

// Send makes a call with size bytes of body, -1 if that is not known. It is not repeated.
func (c *Client) Send(ctx context.Context, in Call, body io.Reader, size int64) error {
	return c.transfer(ctx, in, body, size, "application/octet-stream", io.Discard, maxDocument)
}

// SendFor is Send that decodes the document that the call is answered with into out.
func (c *Client) SendFor(ctx context.Context, in Call, body io.Reader, size int64, out any) error {
	var answer bytes.Buffer
	if err := c.transfer(ctx, in, body, size, "application/octet-stream", &answer, maxDocument); err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Bytes(), out); err != nil {
		return fault.Wrap(fault.Internal, "client.SendFor", errors.Join(errors.New("the answer is not the document expected"), err))
	}
	return nil
}

// transfer makes one attempt at a call and writes its answer to w; limit bounds the answer, -1 does not.
func (c *Client) transfer(ctx context.Context, in Call, body io.Reader, size int64, mediaType string, w io.Writer, limit int64) error {
	op := "client." + in.Method
	answer, err := c.begin(ctx, in, body, size, mediaType)
	if err != nil {
		return err
	}
	defer answer.Close()
	src := io.Reader(answer)
	if limit >= 0 {
		src = io.LimitReader(src, limit+1)
	}
	n, err := io.Copy(w, src)
	if err != nil {
		return lost(ctx, op, err)
	}
	if limit >= 0 && n > limit {
		return fault.Newf(fault.TooLarge, op, "the answer has more than %d bytes", limit)
	}
	return nil
}

// begin makes one attempt at a call and returns its answer once it has begun, if it is none of refusal.
func (c *Client) begin(ctx context.Context, in Call, body io.Reader, size int64, mediaType string) (io.ReadCloser, error) {
	op := "client." + in.Method
	target := c.origin + "/operator/v1/" + in.Path
	if len(in.Query) > 0 {
		target += "?" + in.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, in.Method, target, body)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, err)
	}
	if body != nil {
		req.ContentLength = size
		req.Header.Set("Content-Type", mediaType)
		if size == 0 {
			req.Body = http.NoBody
		}
	}
	req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	req.Header.Set("User-Agent", "edged")
	res, err := c.patient.Do(req)
	if err != nil {
		return nil, lost(ctx, op, err)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, lost(ctx, op, err)
	}
	return nil, refusal(op, res, text)
}
