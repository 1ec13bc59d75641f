package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"edged/internal/egress"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const ownOrigin = "https://control.example:8081"

func digestOf(b []byte) Digest { return sha256.Sum256(b) }

func open(t testing.TB, opt Options) *Store {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	opt.Origin = ownOrigin
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closing(t testing.TB, opt Options) *Store {
	s := open(t, opt)
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, s *Store, tenant string, b []byte) Digest {
	t.Helper()
	d := digestOf(b)
	if _, err := s.Put(t.Context(), tenant, d, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	return d
}

func holds(t testing.TB, s *Store, tenant string, d Digest) bool {
	t.Helper()
	ok, err := s.Holds(tenant, d)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func ownURL(d Digest) string { return ownOrigin + SidePath + d.String() }

// a file of a manifest, in the wire's words
type wireFile struct {
	Path      string `json:"path"`
	URL       string `json:"url"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"mediaType"`
}

func manifestOf(entry string, files ...wireFile) []byte {
	m := map[string]any{"files": files}
	if entry != "" {
		m["entrypoint"] = entry
	}
	b, _ := json.Marshal(m)
	return b
}

// hold uploads content and returns a manifest entry for it.
func hold(t testing.TB, s *Store, tenant, path, mediaType, content string) wireFile {
	d := put(t, s, tenant, []byte(content))
	return wireFile{path, ownURL(d), d.String(), mediaType}
}

// bundle uploads a small worker bundle for tenant and returns the request for it.
func bundle(t testing.TB, s *Store, tenant, uid string) Request {
	t.Helper()
	m := manifestOf("main.js",
		hold(t, s, tenant, "main.js", typeModule, "export default {}"),
		hold(t, s, tenant, "a/empty.bin", "application/octet-stream", ""),
		hold(t, s, tenant, "b.js", typeModule, "export default {}")) // the same bytes as main.js
	d := put(t, s, tenant, m)
	return Request{Tenant: tenant, UID: uid, URL: ownURL(d), Digest: d, Kind: Worker}
}

// source gives bytes by path, over TLS on loopback.
type source struct {
	*httptest.Server
	hits  atomic.Int64
	serve atomic.Pointer[http.HandlerFunc]
}

func newSource(t testing.TB, serve http.HandlerFunc) *source {
	src := new(source)
	src.serve.Store(&serve)
	src.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		src.hits.Add(1)
		(*src.serve.Load())(w, r)
	}))
	src.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are expected
	src.StartTLS()
	t.Cleanup(src.Close)
	return src
}

// remote returns options whose public sources may be on loopback, with src's certificate trusted.
func remote(t testing.TB, src *source) Options {
	t.Helper()
	policy, err := egress.New(egress.Options{Mode: egress.Anything})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Egress: policy}
	opt.Roots = src.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return opt
}
