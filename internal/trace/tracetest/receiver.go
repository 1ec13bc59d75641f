// Package tracetest receives spans as a collector does, for tests.
//
//	receiver.go   Receiver: an OTLP/HTTP endpoint that decodes strictly and keeps what it was sent
//
// Not here: sending them (internal/trace).
package tracetest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Span is a span as it came.
type Span struct {
	TraceID, SpanID, Parent string // hexadecimal; Parent is "" for a root
	State                   string
	Name                    string
	Kind                    int
	Start, End              time.Time
	Attributes              map[string]any // string, int64 or float64
	Links                   []string       // trace and span ID with a dash between
	Failed                  bool
}

// Receiver keeps spans. Safe for concurrent use.
type Receiver struct {
	URL string // of the endpoint, without the path

	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	spans    []Span
	messages int
	headers  []http.Header
	resource map[string]any
	answer   func(message int, w http.ResponseWriter) bool
	came     chan struct{} // closed with the next message, and made anew
}

// Start starts a receiver, which ends with the test. secure serves it over TLS.
func Start(t testing.TB, secure bool) *Receiver {
	r := &Receiver{t: t, came: make(chan struct{})}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	if secure {
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	r.URL = r.server.URL
	t.Cleanup(r.server.Close)
	return r
}

// Server is what listens.
func (r *Receiver) Server() *httptest.Server { return r.server }

// Answer has f answer the messages, which are counted from 1. f returns false for one that is taken as usual.
func (r *Receiver) Answer(f func(message int, w http.ResponseWriter) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender gave up
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages++
	r.headers = append(r.headers, req.Header.Clone())
	defer func() {
		close(r.came)
		r.came = make(chan struct{})
	}()
	if r.answer != nil && r.answer(r.messages, w) {
		return
	}
	if req.Method != "POST" || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("a message came as %s %s, %s", req.Method, req.URL.Path, req.Header.Get("Content-Type"))
	}
	if err := r.decode(body); err != nil {
		r.t.Errorf("the message is none of OTLP: %v\n%s", err, body)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

type attributes []struct {
	Key   string
	Value struct {
		StringValue *string
		IntValue    *string
		DoubleValue *float64
	}
}

func (a attributes) values() (map[string]any, error) {
	out := map[string]any{}
	for _, kv := range a {
		if _, twice := out[kv.Key]; twice {
			return nil, fmt.Errorf("%s stands there twice", kv.Key)
		}
		switch v := kv.Value; {
		case v.StringValue != nil:
			out[kv.Key] = *v.StringValue
		case v.IntValue != nil:
			n, err := strconv.ParseInt(*v.IntValue, 10, 64)
			if err != nil {
				return nil, err
			}
			out[kv.Key] = n
		case v.DoubleValue != nil:
			out[kv.Key] = *v.DoubleValue
		default:
			return nil, fmt.Errorf("%s has no value", kv.Key)
		}
	}
	return out, nil
}

func (r *Receiver) decode(body []byte) error {
	var m struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes attributes }
			ScopeSpans []struct {
				Scope struct{ Name, Version string }
				Spans []struct {
					TraceID, SpanID, ParentSpanID, TraceState, Name string
					Flags                                           uint32
					Kind                                            int
					StartTimeUnixNano, EndTimeUnixNano              string
					Attributes                                      attributes
					DroppedAttributesCount                          int
					Links                                           []struct {
						TraceID, SpanID string
						Flags           uint32
					}
					Status struct{ Code int }
				}
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return err
	}
	for _, rs := range m.ResourceSpans {
		var err error
		if r.resource, err = rs.Resource.Attributes.values(); err != nil {
			return err
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				values, err := s.Attributes.values()
				if err != nil {
					return err
				}
				out := Span{TraceID: s.TraceID, SpanID: s.SpanID, Parent: s.ParentSpanID, State: s.TraceState, Name: s.Name, Kind: s.Kind,
					Attributes: values, Failed: s.Status.Code == 2}
				for _, l := range s.Links {
					out.Links = append(out.Links, l.TraceID+"-"+l.SpanID)
				}
				if err := out.check(s.StartTimeUnixNano, s.EndTimeUnixNano); err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				r.spans = append(r.spans, out)
			}
		}
	}
	return nil
}

func (s *Span) check(start, end string) error {
	for _, p := range []struct {
		id   string
		size int
	}{{s.TraceID, 16}, {s.SpanID, 8}, {s.Parent, 8}} {
		if b, err := hex.DecodeString(p.id); err != nil || len(b) != p.size && !(p.size == 8 && p.id == "" && s.SpanID != "") {
			return fmt.Errorf("%q is no ID of %d bytes", p.id, p.size)
		}
	}
	for _, p := range []struct {
		text string
		at   *time.Time
	}{{start, &s.Start}, {end, &s.End}} {
		n, err := strconv.ParseInt(p.text, 10, 64)
		if err != nil {
			return err
		}
		*p.at = time.Unix(0, n)
	}
	if s.Name == "" || s.Kind < 1 || s.Kind > 5 || s.End.Before(s.Start) {
		return fmt.Errorf("kind %d from %v to %v", s.Kind, s.Start, s.End)
	}
	return nil
}

// patience ends a test that waits in vain.
const patience = 20 * time.Second

// Wait returns what has come as soon as ok is true of it, and fails the test if that never is.
func (r *Receiver) Wait(what string, ok func(spans []Span) bool) []Span {
	r.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		r.mu.Lock()
		spans, came := slices.Clone(r.spans), r.came
		r.mu.Unlock()
		if ok(spans) {
			return spans
		}
		select {
		case <-came:
		case <-late.C:
			r.t.Fatalf("waited in vain for %s; there came\n%s", what, Tree(spans))
		}
	}
}

// Messages returns how many messages came, and the header of each.
func (r *Receiver) Messages() (int, []http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages, slices.Clone(r.headers)
}

// Spans returns what has come.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Resource returns the attributes of whoever sent last.
func (r *Receiver) Resource() map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.resource)
}

// Tree draws spans below their parents, names alone, sisters by their start.
func Tree(spans []Span) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	known := map[string]bool{}
	for _, s := range spans {
		known[s.SpanID] = true
	}
	var b strings.Builder
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		for _, s := range spans {
			if s.Parent == parent || parent == "" && !known[s.Parent] {
				fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), s.Name)
				draw(s.SpanID, depth+1)
			}
		}
	}
	draw("", 0)
	return b.String()
}
