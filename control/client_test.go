package control

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

// The program's own client against the whole room over TLS: what one says the other understands.
func TestClientSpeaksWithControl(t *testing.T) {
	var handler atomic.Pointer[http.Handler]
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	defer srv.Close()
	n := startNode(t, t.TempDir(), func(o *Options) { o.ControlOrigin = srv.URL })
	h := n.c.Handler()
	handler.Store(&h)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	dial := func(token string) *client.Client {
		c, err := client.New(client.Options{URL: srv.URL, Roots: roots, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	ctx, c := t.Context(), dial(n.token)
	must := func(op *client.Operation, err error) string {
		t.Helper()
		if err == nil {
			op, err = c.Wait(ctx, op)
		}
		if err != nil {
			t.Fatal(err)
		}
		return op.ResourceUID
	}
	create := func(formURL, name string, s any) string {
		t.Helper()
		return must(c.Create(ctx, client.Create{Form: formURL, Space: "default", Name: name, Spec: s}, client.NewKey()))
	}
	sup, err := c.Support(ctx, form.WorkerVersionURL)
	if err != nil || !sup.Supported {
		t.Fatalf("support: %+v %v", sup, err)
	}
	code, sent, err := c.Upload(ctx, []byte("exports fetch"))
	if err != nil || !sent {
		t.Fatal(sent, err)
	}
	if _, sent, err = c.Upload(ctx, []byte("exports fetch")); err != nil || sent {
		t.Errorf("held bytes were sent again: %t %v", sent, err)
	}
	manifest, _, err := c.Upload(ctx, fmt.Appendf(nil, `{"entrypoint":"m.js","files":[{"path":"m.js","url":%q,"sha256":%q,"mediaType":%q}]}`, code.URL, code.SHA256, jsModule))
	if err != nil {
		t.Fatal(err)
	}
	b := create(form.WorkerBundleURL, "b", spec{"artifact": manifest})
	w := create(form.ModuleWorkerURL, "w", spec{})
	v := create(form.WorkerVersionURL, "v", spec{"worker": ref(w), "bundle": ref(b), "handlers": []string{"fetch"}})
	d := create(form.WorkerDeploymentURL, "d", weighted(w, v, 10000))
	must(c.Update(ctx, d, 1, weighted(w, v, 10000), nil, client.NewKey()))
	if r, ok, err := c.Lookup(ctx, "default", "d"); err != nil || !ok || r.UID != d || r.Generation != 2 {
		t.Errorf("lookup: %+v %t %v", r, ok, err)
	}
	listed := 0
	for _, err := range c.List(ctx, client.Filter{Space: "default"}) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != 4 {
		t.Errorf("%d Resources listed", listed)
	}
	_, err = c.Create(ctx, client.Create{Form: form.ModuleWorkerURL, Space: "default", Name: "w", Spec: spec{}}, client.NewKey())
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "name_conflict" || fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a taken name gives %v", err)
	}
	tok, err := c.CreateToken(ctx, client.Token{Tenant: "default", Principal: "ci", Role: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	reader := dial(tok.Secret)
	if _, err := reader.Read(ctx, w); err != nil {
		t.Error(err)
	}
	if _, err := reader.Delete(ctx, w, 1, client.NewKey()); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a reader deletes: %v", err)
	}
	if err := c.RevokeToken(ctx, tok.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Read(ctx, w); err == nil {
		t.Error("a revoked token reads")
	}
	must(c.Delete(ctx, d, 2, client.NewKey()))
}

// Bodies over a real connection: a declared length over the limit is refused before the body is sent, an undeclared one
// while it arrives, and a body of a DELETE counts whatever the headers say.
func TestBodiesOverTheWire(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.MaxRequestBytes = 1000 })
	srv := httptest.NewServer(n.c.Handler())
	defer srv.Close()
	send := func(method, path string, body io.Reader) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+root+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+n.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", freshKey())
		req.Header.Set("Takoform-Expected-Generation", "1")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	if got := send("POST", "/resources", strings.NewReader(strings.Repeat(" ", 5000))); got != 413 {
		t.Errorf("declared: %d", got)
	}
	if got := send("POST", "/resources", io.MultiReader(strings.NewReader(strings.Repeat(" ", 5000)))); got != 413 {
		t.Errorf("undeclared: %d", got)
	}
	if got := send("DELETE", "/resources/"+w, io.MultiReader(strings.NewReader("x"))); got != 400 {
		t.Errorf("delete with a chunked body: %d", got)
	}
	if got := send("DELETE", "/resources/"+w, nil); got != 200 {
		t.Errorf("delete: %d", got)
	}
	http.DefaultClient.CloseIdleConnections()
}
