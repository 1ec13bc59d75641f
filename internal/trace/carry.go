package trace

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type spanKey struct{}

// With returns a context that From finds s in; of a nil span it is ctx itself.
func With(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// From returns the span that ctx carries, nil if it carries none.
func From(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// AddTo returns a packed header (event.Request) with the span's traceparent and tracestate behind it. A header that has a
// traceparent already is returned as it is: who sent it takes part in a trace by itself. The argument is not changed, a nil
// span adds nothing.
func (s *Span) AddTo(packed []byte) []byte {
	if s == nil || hasField(packed, parentField) {
		return packed
	}
	out := append(packed[:len(packed):len(packed)], parentField+"\n"...)
	out = append(s.ctx.AppendParent(out), '\n')
	if s.ctx.State != "" && !hasField(packed, stateField) {
		out = append(append(append(out, stateField+"\n"...), s.ctx.State...), '\n')
	}
	return out
}

// hasField reports whether a packed header has a field.
func hasField(packed []byte, field string) bool {
	for len(packed) > 0 {
		name, rest, _ := bytes.Cut(packed, []byte{'\n'})
		if string(name) == field {
			return true
		}
		_, packed, _ = bytes.Cut(rest, []byte{'\n'})
	}
	return false
}

// Inject puts the span's fields into the header of a request that goes to another node, in the place of what is there. Of a
// nil span it takes away what is there: the other node believes it.
func (s *Span) Inject(h http.Header) {
	const parent, state = "Traceparent", "Tracestate" // as net/http keeps them
	delete(h, parent)
	delete(h, state)
	if s == nil {
		return
	}
	h[parent] = []string{string(s.ctx.AppendParent(nil))}
	if s.ctx.State != "" {
		h[state] = []string{s.ctx.State}
	}
}

// Handler records the requests of a net/http handler as spans, which it finds with From. joins says that the callers
// are this program's peers, whose trace goes on and whose decision holds. A nil Tracer returns next itself.
func (t *Tracer) Handler(joins bool, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := t.incoming(joins, r)
		s.Set("http.request.method", Method([]byte(r.Method)))
		s.Set("url.path", r.URL.Path)
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			s.SetInt("http.response.status_code", int64(seen.status))
			if seen.status >= 500 {
				s.FailAs(strconv.Itoa(seen.status), true)
			}
			s.End(nil)
		}()
		next.ServeHTTP(seen, r.WithContext(With(r.Context(), s)))
	})
}

func (t *Tracer) incoming(joins bool, r *http.Request) *Span {
	name := Method([]byte(r.Method))
	if parents := r.Header.Values(parentField); joins && len(parents) == 1 {
		if c, ok := Parse([]byte(parents[0]), []byte(strings.Join(r.Header.Values(stateField), ","))); ok {
			return t.Join(&c, Server, name, time.Now())
		}
	}
	return t.Root(Server, name, time.Now())
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader is http.ResponseWriter's.
func (w *statusWriter) WriteHeader(status int) {
	if !w.sent && status >= 200 {
		w.status, w.sent = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write is http.ResponseWriter's.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.sent = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach what is below.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Method returns a method as spans have it: the known ones as they are, every other as _OTHER, so that names of spans are a
// closed set.
func Method(m []byte) string {
	switch string(m) {
	case "GET":
		return "GET"
	case "HEAD":
		return "HEAD"
	case "POST":
		return "POST"
	case "PUT":
		return "PUT"
	case "PATCH":
		return "PATCH"
	case "DELETE":
		return "DELETE"
	case "OPTIONS":
		return "OPTIONS"
	case "CONNECT":
		return "CONNECT"
	case "TRACE":
		return "TRACE"
	}
	return "_OTHER"
}
