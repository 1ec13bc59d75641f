package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"edged/control/jsonraw"
	"edged/internal/fault"
)

// patience is how long one piece of a body may take, in either direction.
const patience = time.Minute

// Call is one request to a route. It is valid until Serve returns, in one goroutine's hands at a time.
type Call struct {
	Caller *Caller
	Target *Target    // of {uid}; nil if the path has none
	Query  url.Values // the parameters that were given

	w      http.ResponseWriter
	r      *http.Request
	route  *Route
	values map[string]string
	event  Event
	begun  bool // an answer is on its way
	find   func(uid string) (Target, bool)
}

// Context ends when the client leaves.
func (c *Call) Context() context.Context { return c.r.Context() }

// Value returns a variable of the path, decoded.
func (c *Call) Value(name string) string { return c.values[name] }

// Length is how many bytes the body has, -1 if the client did not say.
func (c *Call) Length() int64 { return c.r.ContentLength }

// Find returns another live Resource that the caller may work on and that is in the tenant and Space of the Target: no call
// carries anything out of a Space. The error is NotFound for every other.
func (c *Call) Find(uid string) (*Target, error) {
	t, ok := c.find(uid)
	if !ok || !c.Caller.MayIn(t.Tenant, t.Space) || c.Target != nil && (t.Tenant != c.Target.Tenant || t.Space != c.Target.Space) {
		return nil, fault.New(fault.NotFound, "operator", "no such Resource in this Space")
	}
	return &t, nil
}

// About tells the audit what was changed, where the path does not say it.
func (c *Call) About(tenant, uid, name string) {
	c.event.Tenant, c.event.UID, c.event.Name = tenant, uid, name
}

// Int returns a whole number among the query parameters, def if it is not given. The error is Invalid.
func (c *Call) Int(name string, def, min, max int) (int, error) {
	n, err := c.Int64(name, int64(def), int64(min), int64(max))
	return int(n), err
}

// Int64 is Int for numbers that count bytes.
func (c *Call) Int64(name string, def, min, max int64) (int64, error) {
	if !c.Query.Has(name) {
		return def, nil
	}
	n, err := strconv.ParseInt(c.Query.Get(name), 10, 64)
	if err != nil || n < min || n > max {
		return 0, fault.Newf(fault.Invalid, "operator", "%s must be from %d to %d", name, min, max)
	}
	return n, nil
}

// Decode reads a JSON body into out: raw JSON by the rules of the Host API, one object, no member that out does not know.
// The errors: Invalid, TooLarge.
func (c *Call) Decode(out any) error {
	const op = "operator.Decode"
	types := c.r.Header.Values("Content-Type")
	if len(types) != 1 {
		return errMediaType
	}
	if mediaType, _, err := mime.ParseMediaType(types[0]); err != nil || mediaType != "application/json" {
		return errMediaType
	}
	raw, err := io.ReadAll(c.Body())
	if err != nil {
		return err
	}
	if err := jsonraw.Check(raw); err != nil {
		return err
	}
	if jsonraw.KindOf(raw) != jsonraw.Object {
		return fault.New(fault.Invalid, op, "the body must be an object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		return fault.New(fault.Invalid, op, "the body is not the document expected: "+strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// Body is the request's body as it arrives. It fails with TooLarge beyond the route's limit, and when the client takes too
// long for a piece.
func (c *Call) Body() io.Reader {
	return &patientReader{http.NewResponseController(c.w), http.MaxBytesReader(c.w, c.r.Body, c.route.maxBody()), c.route.maxBody()}
}

type patientReader struct {
	conn  *http.ResponseController
	body  io.Reader
	limit int64
}

func (p *patientReader) Read(b []byte) (int, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(patience)) // not every writer can: a test's recorder cannot
	n, err := p.body.Read(b)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		err = fault.Newf(fault.TooLarge, "operator.Body", "the body may have %d bytes", p.limit)
	case err != nil && err != io.EOF:
		err = fault.New(fault.Invalid, "operator.Body", "the body did not arrive")
	}
	return n, err
}

// JSON answers with one document.
func (c *Call) JSON(doc any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return fault.Wrap(fault.Internal, "operator.JSON", err)
	}
	c.begun = true
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = c.w.Write(b.Bytes()) // a client that left is told nothing
	return nil
}

// Header sets a header of the answer, before that has begun.
func (c *Call) Header(name, value string) { c.w.Header().Set(name, value) }

// Stream begins an answer of any length; what is written to it is sent. An error after that cuts the connection. Writes
// fail when the client does not take a piece for too long.
func (c *Call) Stream(mediaType string) io.Writer {
	c.begun = true
	c.w.Header().Set("Content-Type", mediaType)
	c.w.WriteHeader(http.StatusOK)
	return &patientWriter{http.NewResponseController(c.w), c.w}
}

// Flush sends what was written to a Stream so far. It fails when the client does not take it for too long, or has left.
func (c *Call) Flush() error {
	return fault.Wrap(fault.Canceled, "operator.Flush", http.NewResponseController(c.w).Flush())
}

// StreamLater is Stream that begins with the first byte: until then an error is answered as one.
func (c *Call) StreamLater(mediaType string) io.Writer {
	return &lateWriter{c: c, mediaType: mediaType}
}

type lateWriter struct {
	c         *Call
	mediaType string
	to        io.Writer
}

func (l *lateWriter) Write(b []byte) (int, error) {
	if l.to == nil {
		l.to = l.c.Stream(l.mediaType)
	}
	return l.to.Write(b)
}

type patientWriter struct {
	conn *http.ResponseController
	w    io.Writer
}

func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(patience)) // not every writer can: a test's recorder cannot
	n, err := p.w.Write(b)
	return n, fault.Wrap(fault.Canceled, "operator.Stream", err)
}
