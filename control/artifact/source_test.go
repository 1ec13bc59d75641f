package artifact

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
)

// worker-bundle §3: what ends an acquisition, each with a sentence, and nothing is kept.
func TestAcquireRefusals(t *testing.T) {
	file := []byte("select 1;")
	d := digestOf(file)
	var manifest []byte
	serve := map[string]http.HandlerFunc{
		"/ok":       func(w http.ResponseWriter, r *http.Request) { w.Write(file) },
		"/404":      func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) },
		"/206":      func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(206); w.Write(file) },
		"/204":      func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
		"/redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) },
		"/wrong":    func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("other")) },
		"/gzip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(file)
		},
		"/cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.Write(file[:4])
			panic(http.ErrAbortHandler)
		},
		"/announced": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "16777217")
			w.WriteHeader(200)
		},
		"/endless": func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
		"/slow":     func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/manifest": func(w http.ResponseWriter, r *http.Request) { w.Write(manifest) },
	}
	src := newSource(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("request headers are %v", r.Header)
		}
		serve[r.URL.Path](w, r)
	})
	s := closing(t, remote(t, src))
	hasty := remote(t, src)
	hasty.FetchTimeout = 300 * time.Millisecond
	impatient := closing(t, hasty)
	for path, want := range map[string]string{
		"/404": "404", "/206": "206", "/204": "204", "/redirect": "302", "/wrong": "declared sha256", "/gzip": "content encoding",
		"/cut": "broke off", "/announced": "announced more", "/endless": "more than 16777216", "/slow": "in time",
	} {
		manifest = manifestOf("", wireFile{"1.sql", src.URL + path, d.String(), typeSQL})
		req := Request{Tenant: "acme", UID: "u" + path, URL: src.URL + "/manifest", Digest: digestOf(manifest), Kind: Migrations}
		s := s
		if path == "/slow" {
			s = impatient
		}
		_, err := s.Acquire(t.Context(), req)
		detail := fault.Detail(err)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(detail, want) || !strings.Contains(detail, `file "1.sql"`) {
			t.Errorf("%s: got %v, want artifact_invalid with %q and the file's path", path, err, want)
		}
		if strings.Contains(detail, "127.0.0.1") || strings.Contains(detail, path) {
			t.Errorf("%s: the sentence tells the address or the URL: %s", path, detail)
		}
		if _, ok, err := s.Custody(req.UID); ok || err != nil {
			t.Errorf("%s: something is in custody (%v)", path, err)
		}
		if live, err := s.any(blobsOfPrefix(req.UID)); live || err != nil {
			t.Errorf("%s: a reference is left (%v)", path, err)
		}
	}
	manifest = manifestOf("", wireFile{"1.sql", src.URL + "/ok", d.String(), typeSQL})
	req := Request{Tenant: "acme", UID: "u", URL: src.URL + "/manifest", Digest: digestOf(manifest), Kind: Migrations}
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Errorf("the good one: %v", err)
	}
	entries, err := os.ReadDir(s.tempDir())
	if err != nil || len(entries) != 0 {
		t.Errorf("temporary files are left: %v, %v", entries, err)
	}
}

// worker-bundle §3: addresses that are not public are refused, but for origins the operator allowed; certificates are
// always checked.
func TestSourceAddresses(t *testing.T) {
	m := manifestOf("", wireFile{"x", "https://x.invalid/x", sha, "a/b"})
	src := newSource(t, func(w http.ResponseWriter, r *http.Request) { w.Write(m) })
	req := Request{Tenant: "acme", UID: "u", URL: src.URL + "/m", Digest: digestOf(m), Kind: Assets}
	trusting := remote(t, src)
	for name, tt := range map[string]struct {
		opt  Options
		want string
	}{
		"loopback":       {Options{Roots: trusting.Roots}, "manifest: the source has an address that is not allowed"},
		"another origin": {Options{Roots: trusting.Roots, Origins: []string{"https://127.0.0.1:1"}}, "not allowed"},
		"allowed origin": {Options{Roots: trusting.Roots, Origins: []string{src.URL}}, `file "x"`},
		"untrusted":      {Options{Origins: []string{src.URL}}, "certificate"},
		"no such name":   {trusting, `file "x": the source could not be reached`},
	} {
		s := open(t, tt.opt)
		_, err := s.Acquire(t.Context(), req)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		s.Close()
	}
}

// TotalTimeout ends a bundle whose files are each in time.
func TestTotalTimeout(t *testing.T) {
	src := newSource(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	opt := remote(t, src)
	opt.TotalTimeout = 50 * time.Millisecond
	s := closing(t, opt)
	_, err := s.Acquire(t.Context(), Request{Tenant: "acme", UID: "u1", URL: src.URL, Digest: Digest{}, Kind: Assets})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), "in time") {
		t.Errorf("got %v", err)
	}
}
