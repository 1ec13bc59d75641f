package artifact

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// channel serves the side channel over a real connection; the caller is named by headers.
func channel(t *testing.T, s *Store) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Serve(w, r, Caller{Tenant: r.Header.Get("Tenant"), MayWrite: r.Header.Get("Reader") == ""})
	}))
	t.Cleanup(srv.Close)
	return srv
}

type answer struct {
	status int
	body   string
	header http.Header
}

func ask(t *testing.T, srv *httptest.Server, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, string(b), res.Header}
}

// node-surface §4: the side channel, request by request.
func TestSideChannel(t *testing.T) {
	s := closing(t, Options{})
	srv := channel(t, s)
	text := "hello"
	d := digestOf([]byte(text)).String()
	path := SidePath + d
	large := strings.Repeat("x", MaxBlobBytes+1)
	chunked := func(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) } // no length
	for _, step := range []struct {
		name, method, path string
		body               io.Reader
		headers            []string
		status             int
		code               string // of a problem; else ""
	}{
		{"not held yet", "GET", path, nil, []string{"Tenant", "acme"}, 404, "not_found"},
		{"a reader", "PUT", path, strings.NewReader(text), []string{"Tenant", "acme", "Reader", "1"}, 403, "forbidden"},
		{"other bytes", "PUT", path, strings.NewReader("other"), []string{"Tenant", "acme"}, 422, "digest_mismatch"},
		{"still not held", "HEAD", path, nil, []string{"Tenant", "acme"}, 404, ""},
		{"newly held", "PUT", path, strings.NewReader(text), []string{"Tenant", "acme"}, 201, ""},
		{"already held", "PUT", path, chunked(text), []string{"Tenant", "acme"}, 200, ""},
		{"already held, other bytes", "PUT", path, strings.NewReader("other"), []string{"Tenant", "acme"}, 422, "digest_mismatch"},
		{"read", "GET", path, nil, []string{"Tenant", "acme", "Reader", "1"}, 200, ""},
		{"head", "HEAD", path, nil, []string{"Tenant", "acme"}, 200, ""},
		{"a foreign reader", "GET", path, nil, []string{"Tenant", "rival"}, 404, "not_found"},
		{"a foreign head", "HEAD", path, nil, []string{"Tenant", "rival"}, 404, ""},
		{"new for this tenant", "PUT", path, strings.NewReader(text), []string{"Tenant", "rival"}, 201, ""},
		{"too large, announced", "PUT", path, strings.NewReader(large), []string{"Tenant", "acme"}, 413, "request_too_large"},
		{"too large, chunked", "PUT", path, chunked(large), []string{"Tenant", "acme"}, 413, "request_too_large"},
		{"encoded", "PUT", path, strings.NewReader(text), []string{"Tenant", "acme", "Content-Encoding", "gzip"}, 415, "unsupported_media_type"},
		{"method", "DELETE", path, nil, []string{"Tenant", "acme"}, 405, "method_not_allowed"},
		{"capitals", "GET", SidePath + strings.ToUpper(d), nil, []string{"Tenant", "acme"}, 404, "not_found"},
		{"short", "PUT", path[:len(path)-1], strings.NewReader(text), []string{"Tenant", "acme"}, 404, "not_found"},
		{"deeper", "GET", path + "/x", nil, []string{"Tenant", "acme"}, 404, "not_found"},
		{"escaped", "GET", SidePath + "%30" + d[1:], nil, []string{"Tenant", "acme"}, 404, "not_found"},
	} {
		got := ask(t, srv, step.method, step.path, step.body, step.headers...)
		if got.status != step.status {
			t.Errorf("%s: %d %s, want %d", step.name, got.status, got.body, step.status)
		}
		if got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: may be cached", step.name)
		}
		if step.code != "" {
			var p struct {
				Type, Title, Code string
				Status            int
			}
			if json.Unmarshal([]byte(got.body), &p) != nil || p.Type != "about:blank" || p.Code != step.code || p.Status != step.status || p.Title == "" {
				t.Errorf("%s: problem %s", step.name, got.body)
			}
		}
		switch step.name {
		case "read":
			if got.body != text || got.header.Get("Content-Type") != "application/octet-stream" || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("got %q %v", got.body, got.header)
			}
		case "head":
			if got.header.Get("Content-Length") != "5" {
				t.Errorf("got %v", got.header)
			}
		case "method":
			if got.header.Get("Allow") != "GET, HEAD, PUT" {
				t.Errorf("Allow is %q", got.header.Get("Allow"))
			}
		}
	}
}

// What a tenant is answered does not depend on what others hold: two tenants, one of which finds the blob on the node,
// see the same answers.
func TestSideChannelIsTenantBlind(t *testing.T) {
	s := closing(t, Options{})
	srv := channel(t, s)
	put(t, s, "other", []byte("known"))
	run := func(text string) (all []answer) {
		path := SidePath + digestOf([]byte(text)).String()
		for _, method := range []string{"GET", "HEAD", "PUT", "PUT", "GET"} {
			var body io.Reader
			if method == "PUT" {
				body = strings.NewReader(text)
			}
			a := ask(t, srv, method, path, body, "Tenant", "acme")
			a.header.Del("Date")
			a.body = strings.ReplaceAll(a.body, digestOf([]byte(text)).String(), "DIGEST")
			a.body = strings.ReplaceAll(a.body, text, "TEXT")
			a.header.Del("Etag")
			all = append(all, a)
		}
		return all
	}
	known, fresh := run("known"), run("fresh")
	for i := range known {
		a, _ := json.Marshal([]any{known[i].status, known[i].body, known[i].header})
		b, _ := json.Marshal([]any{fresh[i].status, fresh[i].body, fresh[i].header})
		if !bytes.Equal(a, b) {
			t.Errorf("request %d: %s against %s", i, a, b)
		}
	}
}

// A body that breaks off stores nothing and leaves nothing.
func TestUploadThatBreaksOff(t *testing.T) {
	s := closing(t, Options{})
	d := digestOf([]byte("whole"))
	body := io.MultiReader(strings.NewReader("who"), brokenReader{})
	req := httptest.NewRequest("PUT", SidePath+d.String(), body)
	rec := httptest.NewRecorder()
	s.Serve(rec, req, Caller{"acme", true})
	if rec.Code != 400 || holds(t, s, "acme", d) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	if _, err := s.Open(d); err == nil {
		t.Error("a blob is there")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Streaming: an upload of 16 MiB takes far less memory than its size.
func TestUploadTakesConstantMemory(t *testing.T) {
	s := closing(t, Options{})
	big := bytes.Repeat([]byte("x"), MaxBlobBytes)
	d := digestOf(big)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := s.Put(t.Context(), "acme", d, bytes.NewReader(big)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("an upload of %d bytes allocated %d", len(big), grown)
	}
}
