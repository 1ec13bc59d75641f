package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const token = "secret-token"

// node is a control listener that answers by route.
type node struct {
	*httptest.Server
	routes map[string]http.HandlerFunc // "METHOD /path"
	seen   []string                    // requests in order; read when the calls are over
}

func newNode(t *testing.T) *node {
	n := &node{routes: map[string]http.HandlerFunc{}}
	n.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.seen = append(n.seen, r.Method+" "+r.URL.RequestURI())
		want := "Bearer " + token
		if r.URL.Path == "/.well-known/takoform/v2" {
			want = ""
		}
		if got := r.Header.Get("Authorization"); got != want {
			t.Errorf("%s %s: Authorization is %q", r.Method, r.URL, got)
		}
		if h := n.routes[r.Method+" "+r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(404)
		io.WriteString(w, `{"type":"about:blank","title":"Not Found","status":404,"code":"not_found","detail":"nothing here"}`)
	}))
	n.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are expected
	n.StartTLS()
	t.Cleanup(n.Close)
	n.answer("GET /.well-known/takoform/v2", 200, discovery(n.URL+"/api"))
	return n
}

func discovery(base string) string {
	return `{"api":"forms.takoform.com/v2","baseUrl":"` + base + `","limits":{"maxRequestBytes":8388608,"maxPageSize":100,"replayWindowSeconds":86400}}`
}

func (n *node) answer(route string, status int, body string, headers ...string) {
	n.routes[route] = func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func (n *node) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(n.Certificate())
	return pool
}

func (n *node) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(Options{URL: n.URL, Roots: n.roots(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A node is found by its data directory: origin and address in run.json, CA and token beside it.
func TestFindByDataDir(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find := func(want string) {
		t.Helper()
		_, err := Find(Where{DataDir: dir})
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("got %v, want Invalid with %q", err, want)
		}
	}
	find("no node runs")
	write("run.json", "{")
	find("run.json")
	// The public origin need not resolve here: the connection goes to the listener's own address.
	address := strings.TrimPrefix(n.URL, "https://")
	write("run.json", fmt.Sprintf(`{"pid":1,"control":%q,"controlOrigin":"https://example.com"}`, address))
	find("ca.pem")
	write("tls/ca.pem", "noise")
	find("no certificate")
	write("tls/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.Certificate().Raw})))
	find("control.token")
	write("control.token", " \n")
	find("is empty")
	write("control.token", token+"\n")
	opt, err := Find(Where{DataDir: dir})
	if err != nil || opt.URL != "https://example.com" || opt.Dial != address || opt.Token != token {
		t.Fatalf("got %+v, %v", opt, err)
	}
	n.answer("GET /.well-known/takoform/v2", 200, discovery("https://example.com/api")) // example.com is a name of httptest's certificate
	n.answer("GET /api/resources/u1", 200, `{"uid":"u1","generation":3}`)
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if res, err := c.Read(t.Context(), "u1"); err != nil || res.Generation != 3 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestFindByURL(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	os.WriteFile(tokenFile, []byte(token), 0o600)
	opt, err := Find(Where{DataDir: "unused", ControlURL: "https://a.example", TokenFile: tokenFile})
	if err != nil || opt.URL != "https://a.example" || opt.Dial != "" || opt.Roots != nil || opt.Token != token {
		t.Errorf("got %+v, %v", opt, err)
	}
	for _, w := range []Where{{}, {ControlURL: "https://a.example"}, {ControlURL: "https://a.example", TokenFile: tokenFile, CAFile: tokenFile + ".none"}} {
		if _, err := Find(w); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for in, want := range map[string]string{
		"0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1", ":1": "localhost:1", "10.0.0.1:1": "10.0.0.1:1", "odd": "odd",
	} {
		if got := reachable(in); got != want {
			t.Errorf("reachable(%s) = %s, want %s", in, got, want)
		}
	}
	for _, u := range []string{"http://a.example", "https://", "https://a.example/x", "https://u@a.example", "a.example", "https://a.example?x=1"} {
		if _, err := New(Options{URL: u}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s is accepted: %v", u, err)
		}
	}
}

// The credential stays with the configured origin: a foreign base URL, a redirect and an unknown CA are refused.
func TestCredentialStays(t *testing.T) {
	n := newNode(t)
	n.answer("GET /.well-known/takoform/v2", 200, discovery("https://elsewhere.example/api"))
	if _, err := n.client(t).Read(t.Context(), "u1"); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "elsewhere") {
		t.Errorf("foreign base URL: %v", err)
	}
	n.answer("GET /.well-known/takoform/v2", 200, discovery(n.URL+".evil.example/api"))
	if _, err := n.client(t).Read(t.Context(), "u1"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("base URL with the origin as a prefix: %v", err)
	}
	n.answer("GET /.well-known/takoform/v2", 200, strings.Replace(discovery(n.URL), "/v2", "/v9", 1))
	if _, err := n.client(t).Discover(t.Context()); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("another API: %v", err)
	}
	n.answer("GET /.well-known/takoform/v2", 200, discovery(n.URL))
	n.answer("GET /resources/u1", 302, "", "Location", n.URL+"/resources/u2")
	n.answer("GET /resources/u2", 200, `{}`)
	if _, err := n.client(t).Read(t.Context(), "u1"); err == nil {
		t.Error("a redirect was followed")
	}
	c, err := New(Options{URL: n.URL, Roots: x509.NewCertPool(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Discover(t.Context()); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "certificate") {
		t.Errorf("unknown CA: %v", err)
	}
}

// host-api §11: a refusal arrives as a Problem with its kind.
func TestProblems(t *testing.T) {
	n := newNode(t)
	c := n.client(t)
	for status, want := range map[int]fault.Code{
		400: fault.Invalid, 401: fault.Denied, 403: fault.Denied, 404: fault.NotFound, 409: fault.Conflict, 410: fault.NotFound,
		413: fault.TooLarge, 422: fault.Invalid, 428: fault.Conflict, 500: fault.Internal,
	} {
		n.answer("GET /api/resources/u1", status, fmt.Sprintf(`{"status":%d,"code":"some_code","detail":"why","operationId":"o1"}`, status),
			"Content-Type", "application/problem+json")
		_, err := c.Read(t.Context(), "u1")
		var p *Problem
		if !errors.As(err, &p) || *p != (Problem{Status: status, Code: "some_code", Detail: "why", OperationID: "o1"}) || fault.CodeOf(err) != want {
			t.Errorf("%d: got %v, %+v", status, err, p)
		}
	}
	// An intermediary speaks otherwise.
	n.answer("GET /api/resources/u1", 403, "<html>", "Content-Type", "text/html")
	_, err := c.Read(t.Context(), "u1")
	var p *Problem
	if !errors.As(err, &p) || p.Status != 403 || p.Code != "unexpected_answer" {
		t.Errorf("got %v", err)
	}
	n.answer("GET /api/resources/u1", 200, "<html>")
	if _, err := c.Read(t.Context(), "u1"); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a page for a document: %v", err)
	}
}

// host-api §2, §6: bodies, headers and paths of the calls.
func TestMutations(t *testing.T) {
	n := newNode(t)
	c := n.client(t)
	var got []string
	record := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s key=%s gen=%s type=%s %s", r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"),
			r.Header.Get("Takoform-Expected-Generation"), r.Header.Get("Content-Type"), b))
		w.WriteHeader(202)
		io.WriteString(w, `{"id":"o1","resourceUid":"u1","action":"create","generation":1,"status":"queued","effect":"none"}`)
	}
	n.routes["POST /api/resources"], n.routes["PUT /api/resources/u1"], n.routes["DELETE /api/resources/u1"] = record, record, record
	for _, do := range []func() (*Operation, error){
		func() (*Operation, error) {
			return c.Create(t.Context(), Create{Form: "f", Space: "s", Name: "n", Spec: json.RawMessage(`{"a":1.0}`)}, "key-one-0123456789")
		},
		func() (*Operation, error) {
			return c.Update(t.Context(), "u1", 7, struct{}{}, map[string]string{"K": "v"}, "key-two-0123456789")
		},
		func() (*Operation, error) { return c.Delete(t.Context(), "u1", 8, "key-three-01234567") },
	} {
		if op, err := do(); err != nil || op.ID != "o1" || op.Terminal() {
			t.Fatalf("got %+v, %v", op, err)
		}
	}
	want := []string{
		`POST /api/resources key=key-one-0123456789 gen= type=application/json {"form":"f","space":"s","name":"n","spec":{"a":1.0}}`,
		`PUT /api/resources/u1 key=key-two-0123456789 gen=7 type=application/json {"spec":{},"privateInputs":{"K":"v"}}`,
		`DELETE /api/resources/u1 key=key-three-01234567 gen=8 type= `,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	n.answer("POST /api/resources", 200, `{"id":"o1","status":"splendid"}`)
	if _, err := c.Create(t.Context(), Create{}, NewKey()); fault.CodeOf(err) != fault.Internal {
		t.Errorf("an unknown status is taken for something: %v", err)
	}
	if a, b := NewKey(), NewKey(); a == b || len(a) < 16 || len(a) > 128 {
		t.Errorf("keys %q and %q", a, b)
	}
}

// host-api §9: all pages, in order, with the filters on each.
func TestList(t *testing.T) {
	n := newNode(t)
	c := n.client(t)
	n.routes["GET /api/resources"] = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "name=n&space=s":
			io.WriteString(w, `{"items":[{"uid":"a"},{"uid":"b"}],"nextCursor":"c+1"}`)
		case "cursor=c%2B1&name=n&space=s":
			io.WriteString(w, `{"items":[{"uid":"c"}],"nextCursor":null}`)
		case "space=stuck", "cursor=x&space=stuck":
			io.WriteString(w, `{"items":[],"nextCursor":"x"}`)
		default:
			w.WriteHeader(409)
		}
	}
	list := func(f Filter) (uids string, err error) {
		for res, err := range c.List(t.Context(), f) {
			if err != nil {
				return uids, err
			}
			uids += res.UID
		}
		return uids, nil
	}
	if got, err := list(Filter{Space: "s", Name: "n"}); got != "abc" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := list(Filter{Space: "stuck"}); got != "" || fault.CodeOf(err) != fault.Internal {
		t.Errorf("a cursor that does not move: %q, %v", got, err)
	}
	if got, err := list(Filter{Form: "x"}); got != "" || fault.CodeOf(err) != fault.Conflict {
		t.Errorf("got %q, %v", got, err)
	}
	if res, ok, err := c.Lookup(t.Context(), "s", "n"); !ok || err != nil || res.UID != "a" {
		t.Errorf("got %+v %t %v", res, ok, err)
	}
	if _, _, err := c.Lookup(t.Context(), "t", "n"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
}

// node-surface §4: bytes are sent only if the tenant does not hold them.
func TestUpload(t *testing.T) {
	n := newNode(t)
	c := n.client(t)
	want := Artifact{SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
	want.URL = n.URL + "/artifacts/sha256/" + want.SHA256
	path := "/artifacts/sha256/" + want.SHA256
	var body string
	n.routes["PUT "+path] = func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		n.answer("HEAD "+path, 200, "")
		w.WriteHeader(201)
	}
	for _, wantSent := range []bool{true, false} {
		a, sent, err := c.Upload(t.Context(), []byte("hello"))
		if err != nil || a != want || sent != wantSent || body != "hello" {
			t.Fatalf("got %+v %t %v %q", a, sent, err, body)
		}
	}
	n.answer("HEAD "+path, 403, "")
	if _, _, err := c.Upload(t.Context(), []byte("hello")); fault.CodeOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
}

func TestTokens(t *testing.T) {
	n := newNode(t)
	c := n.client(t)
	n.routes["POST /operator/v1/control/tokens"] = func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if string(b) != `{"tenant":"t","principal":"p","role":"editor","spaces":["s"]}` {
			t.Errorf("got %s", b)
		}
		io.WriteString(w, `{"id":"k1","tenant":"t","principal":"p","role":"editor","spaces":["s"],"token":"shown once"}`)
	}
	tok, err := c.CreateToken(t.Context(), Token{Tenant: "t", Principal: "p", Role: "editor", Spaces: []string{"s"}})
	if err != nil || tok.ID != "k1" || tok.Secret != "shown once" {
		t.Errorf("got %+v, %v", tok, err)
	}
	n.answer("GET /operator/v1/control/tokens", 200, `{"items":[{"id":"k1"},{"id":"k2"}]}`)
	if list, err := c.Tokens(t.Context()); err != nil || len(list) != 2 || list[1].ID != "k2" {
		t.Errorf("got %+v, %v", list, err)
	}
	n.answer("DELETE /operator/v1/control/tokens/k1", 200, `{"id":"k1"}`)
	if err := c.RevokeToken(t.Context(), "k1"); err != nil {
		t.Error(err)
	}
	if err := c.RevokeToken(t.Context(), "k9"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestSupport(t *testing.T) {
	n := newNode(t)
	n.answer("GET /api/support", 200, `{"form":"f","supported":true,"operations":["create"],"privateInputs":false}`)
	s, err := n.client(t).Support(t.Context(), "https://x.example/f?/")
	if err != nil || !s.Supported || n.seen[1] != "GET /api/support?form=https%3A%2F%2Fx.example%2Ff%3F%2F" {
		t.Errorf("got %+v, %v, %q", s, err, n.seen)
	}
}

func TestCallerEnds(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.client(t).Discover(ctx); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}
