package trace

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A worker that takes part in a trace by itself keeps its fields; for all others the node's are added behind a copy.
func TestAddTo(t *testing.T) {
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := Parse([]byte(good), []byte("a=1"))
	s := tr.Join(&c, Server, "GET", time.Now())
	parent := string(s.Context().AppendParent(nil))
	for _, tt := range []struct{ packed, want string }{
		{"", "traceparent\n" + parent + "\ntracestate\na=1\n"},
		{"x\ntraceparent\n", "x\ntraceparent\ntraceparent\n" + parent + "\ntracestate\na=1\n"}, // a value is no name
		{"traceparent\nmine\n", "traceparent\nmine\n"},
		{"tracestate\nb=2\n", "tracestate\nb=2\ntraceparent\n" + parent + "\n"},
	} {
		packed := append(make([]byte, 0, 1000), tt.packed...)
		if got := string(s.AddTo(packed)); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.packed, got, tt.want)
		}
		if rest := packed[len(packed):cap(packed)]; strings.Trim(string(rest), "\x00") != "" {
			t.Error("the caller's bytes were written to")
		}
	}
}

// A request that is handed on carries the span's fields and none that came with it, also where nothing is traced.
func TestInject(t *testing.T) {
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := Parse([]byte(good), nil)
	s := tr.Join(&c, Server, "GET", time.Now())
	for _, tt := range []struct {
		span *Span
		want string
	}{{nil, ""}, {s, string(s.Context().AppendParent(nil))}} {
		h := http.Header{}
		h.Set(parentField, good)
		h.Set(stateField, "a=1")
		tt.span.Inject(h)
		if h.Get(parentField) != tt.want || h.Get(stateField) != "" {
			t.Errorf("%v", h)
		}
	}
}

// Requests of this program's members go on in their trace, with their decision; those of others begin one.
func TestHandler(t *testing.T) {
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var seen *Span
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = From(r.Context())
		w.WriteHeader(503)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error("what is below cannot be reached:", err)
		}
	})
	for _, tt := range []struct {
		joins   bool
		parents []string
		joined  bool
	}{{true, []string{good}, true}, {false, []string{good}, false}, {true, []string{good, good}, false}, {true, nil, false}} {
		req := httptest.NewRequest("GET", "/x?secret=1", nil)
		req.Header[http.CanonicalHeaderKey(parentField)] = tt.parents
		tr.Handler(tt.joins, next).ServeHTTP(httptest.NewRecorder(), req)
		if joined := seen.TraceID() == traceHex; joined != tt.joined || seen.Recorded() != tt.joined {
			t.Errorf("%+v: joined %t, recorded %t", tt, joined, seen.Recorded())
		}
		if seen.Recorded() {
			if got := fmt.Sprint(seen.rec.attributes); strings.Contains(got, "secret") || !strings.Contains(got, "/x") || !seen.rec.ended || !seen.rec.failed {
				t.Errorf("recorded %s, %+v", got, seen.rec)
			}
		}
	}
	var off *Tracer
	if h := off.Handler(true, next); fmt.Sprintf("%p", h) != fmt.Sprintf("%p", next) {
		t.Error("a tracer that is off wraps a handler")
	}
	if From(With(context.Background(), nil)) != nil {
		t.Error("a nil span is found")
	}
}

// What an operator says is checked as a whole; secrets stay in files of mode 0600 and out of every message.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	headers := file("headers", "# of the collector\n\nx-api-key: hush: hush\nAuthorization: Bearer hush\n", 0o600)
	open := file("open", "x-api-key: hush\n", 0o644)
	for _, tt := range []struct {
		name string
		s    Settings
		want string // the endpoint and its headers, or a part of the error
	}{
		{"plain", Settings{Endpoint: "http://127.0.0.1:4318"}, "http://127.0.0.1:4318/v1/traces map[]"},
		{"slash", Settings{Endpoint: "https://collector.test/"}, "https://collector.test/v1/traces map[]"},
		{"path", Settings{Endpoint: "https://collector.test/otlp/v1/traces?tenant=1"}, "https://collector.test/otlp/v1/traces?tenant=1 map[]"},
		{"headers", Settings{Endpoint: "https://collector.test", Headers: headers, HeadersEnv: "x-api-key=other,a=b%20c"},
			"https://collector.test/v1/traces map[A:[b c] Authorization:[Bearer hush] X-Api-Key:[hush: hush]]"},
		{"headers in the open", Settings{Endpoint: "http://collector.test", Headers: headers}, "headers are secrets"},
		{"headers on this machine", Settings{Endpoint: "http://[::1]:1", HeadersEnv: "a=b"}, "http://[::1]:1/v1/traces map[A:[b]]"},
		{"mode", Settings{Endpoint: "https://collector.test", Headers: open}, "0600"},
		{"no file", Settings{Endpoint: "https://collector.test", Headers: filepath.Join(dir, "missing")}, "no such file"},
		{"own field", Settings{Endpoint: "https://collector.test", Headers: file("own", "Content-Type: hush\n", 0o600)}, "own:1: want NAME: VALUE"},
		{"no line", Settings{Endpoint: "https://collector.test", Headers: file("none", "hush\n", 0o600)}, "none:1: want NAME: VALUE"},
		{"environment", Settings{Endpoint: "https://collector.test", HeadersEnv: "hush"}, "not name=value"},
		{"no URL", Settings{Endpoint: "collector:4318"}, "no http or https URL"},
		{"credentials", Settings{Endpoint: "https://u:hush@collector.test"}, "credentials"},
		{"no authority", Settings{Endpoint: "https://collector.test", CAFile: open}, "no certificate"},
		{"authority of nobody", Settings{Endpoint: "http://127.0.0.1:1", CAFile: open}, "https endpoint"},
		{"directory", Settings{Endpoint: "https://collector.test", CAFile: dir}, "is no file"},
	} {
		u, h, _, err := tt.s.Read()
		got := fmt.Sprint(u, " ", h)
		if err != nil {
			if got = err.Error(); strings.Contains(got, "hush") {
				t.Errorf("%s: the error holds a secret: %s", tt.name, got)
			}
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if _, err := New(Options{Ratio: 2, MaxSpans: -1}); err == nil || !strings.Contains(err.Error(), "Ratio") || !strings.Contains(err.Error(), "negative") || !strings.Contains(err.Error(), "endpoint") {
		t.Errorf("not all faults: %v", err)
	}
}
