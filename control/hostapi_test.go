package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/control/form"
)

// host-api §13, step by step.
func TestBaselineProbe(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	d := n.do("GET", "/.well-known/takoform/v2", nil, "Authorization", "")
	d.is(t, 200, "")
	base := d.text(t, "baseUrl")
	if base != origin+root {
		t.Fatalf("baseUrl is %s", base)
	}
	limits := d.member(t, "limits").(map[string]any)
	window := time.Duration(limits["replayWindowSeconds"].(float64)) * time.Second

	sup := n.do("GET", root+"/support?form="+form.ModuleWorkerURL, nil)
	sup.is(t, 200, "")
	if sup.member(t, "supported") != true || sup.member(t, "privateInputs") != false || fmt.Sprint(sup.member(t, "operations")) != "[create read update delete]" {
		t.Errorf("support says %s", sup.body)
	}
	unknown := "https://forms.example.test/Unknown/1.0.0/"
	sup = n.do("GET", root+"/support?form="+unknown, nil)
	if sup.status != 200 || sup.member(t, "supported") != false || fmt.Sprint(sup.member(t, "operations")) != "[]" {
		t.Errorf("support says %s", sup.body)
	}
	n.create(unknown, "x", spec{}).is(t, 422, "unsupported_form")

	body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "web", "spec": spec{}}
	key := freshKey()
	c := n.do("POST", root+"/resources", body, "Idempotency-Key", key)
	id, uid := c.text(t, "id"), c.text(t, "resourceUid")
	if c.header.Get("Location") != base+"/operations/"+id || c.member(t, "generation") != 1.0 || c.header.Get("Cache-Control") != "no-store" {
		t.Errorf("create answers %v %s", c.header, c.body)
	}
	op := n.ended(c)
	if terminal := op.text(t, "status") == "succeeded"; !terminal || (c.status == 200) != (c.text(t, "status") == "succeeded") {
		t.Errorf("create answers %d %s, then %s", c.status, c.body, op.body)
	}
	updated, err := time.Parse(time.RFC3339, op.text(t, "updatedAt"))
	retain, err2 := time.Parse(time.RFC3339, op.text(t, "retainUntil"))
	if err != nil || err2 != nil || retain.Sub(updated) < window || !strings.HasSuffix(op.text(t, "updatedAt"), "Z") {
		t.Errorf("retained for %v, promised %v", retain.Sub(updated), window)
	}
	again := n.do("POST", root+"/resources", `{ "spec":{}, "name":"web","space":"default", "form":"`+form.ModuleWorkerURL+`" }`, "Idempotency-Key", key)
	if again.text(t, "id") != id || !bytes.Equal(again.body, n.do("POST", root+"/resources", body, "Idempotency-Key", key).body) {
		t.Errorf("replay gives %s", again.body)
	}
	body["name"] = "other"
	n.do("POST", root+"/resources", body, "Idempotency-Key", key).is(t, 409, "idempotency_conflict")

	r := n.get(uid)
	if r.status != 200 || r.text(t, "name") != "web" || r.text(t, "phase") != "idle" || r.header.Get("ETag") != `"1"` {
		t.Errorf("read gives %v %s", r.header, r.body)
	}
	list := n.do("GET", root+"/resources?space=default&name=web&form="+form.ModuleWorkerURL, nil)
	if items := list.member(t, "items").([]any); len(items) != 1 || list.member(t, "nextCursor") != nil {
		t.Errorf("list gives %s", list.body)
	}
	path := root + "/resources/" + uid
	n.do("PUT", path, spec{"spec": spec{}}, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "0").is(t, 409, "generation_conflict")
	if now := n.get(uid); !bytes.Equal(now.body, r.body) {
		t.Errorf("a refused PUT changed %s", now.body)
	}
	put := n.do("PUT", path, spec{"spec": spec{}}, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1")
	if put.member(t, "generation") != 2.0 || put.text(t, "id") == id {
		t.Errorf("PUT gives %s", put.body)
	}
	n.ended(put)
	key = freshKey()
	del := n.do("DELETE", path, nil, "Idempotency-Key", key, "Takoform-Expected-Generation", "2")
	if del.member(t, "generation") != 3.0 {
		t.Errorf("DELETE gives %s", del.body)
	}
	n.ended(del)
	n.get(uid).is(t, 410, "gone")
	if items := n.do("GET", root+"/resources", nil).member(t, "items").([]any); len(items) != 0 {
		t.Errorf("%d Resources are left", len(items))
	}
	if re := n.do("DELETE", path, nil, "Idempotency-Key", key, "Takoform-Expected-Generation", "2"); re.text(t, "id") != del.text(t, "id") {
		t.Errorf("replay of the DELETE gives %s", re.body)
	}
}

// host-api §12 steps 1 to 7: each request breaks the rule of its row and the later ones, so that the order shows.
func TestOrderOfEnvelopeChecks(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.MaxRequestBytes = 2000 })
	uid := n.made(form.ModuleWorkerURL, "web", spec{})
	big := strings.Repeat("x", 3000)
	tests := []struct {
		name, method, path string
		body               any
		headers            []string
		status             int
		code               string
	}{
		{"route before credential", "GET", root + "/nowhere", nil, []string{"Authorization", ""}, 404, "not_found"},
		{"route with slash", "GET", root + "/resources/", nil, nil, 404, "not_found"},
		{"route too deep", "GET", root + "/resources/a/b", nil, nil, 404, "not_found"},
		{"no import", "POST", root + "/import", spec{}, nil, 404, "not_found"},
		{"other root", "GET", "/resources", nil, nil, 404, "not_found"},
		{"credential before option", "POST", root + "/previews", nil, []string{"Authorization", ""}, 401, "unauthenticated"},
		{"credential before method", "PATCH", root + "/resources", nil, []string{"Authorization", "Bearer wrong"}, 401, "unauthenticated"},
		{"credential of the side channel", "PUT", "/artifacts/sha256/" + strings.Repeat("0", 64), "x", []string{"Authorization", ""}, 401, "unauthenticated"},
		{"other scheme", "GET", root + "/resources", nil, []string{"Authorization", "Basic " + n.token}, 401, "unauthenticated"},
		{"method of previews", "DELETE", root + "/previews?x", nil, nil, 405, "method_not_allowed"},
		{"offerings", "GET", root + "/offerings?form=" + form.ModuleWorkerURL + "&space=default", nil, nil, 404, "capability_unavailable"},
		{"private inputs", "PUT", root + "/operations/x/private-inputs", spec{}, nil, 400, "invalid_request"},
		{"method of private inputs", "POST", root + "/operations/x/private-inputs?x", nil, nil, 405, "method_not_allowed"},
		{"method", "PATCH", root + "/resources?x=1", nil, nil, 405, "method_not_allowed"},
		{"method of one", "POST", root + "/resources/" + uid, nil, nil, 405, "method_not_allowed"},
		{"method of discovery", "POST", "/.well-known/takoform/v2", nil, []string{"Authorization", ""}, 405, "method_not_allowed"},
		{"query", "POST", root + "/resources?x=1", "{", nil, 400, "invalid_request"},
		{"query repeated", "GET", root + "/resources?space=a&space=a", nil, nil, 400, "invalid_request"},
		{"query unknown", "GET", root + "/resources/" + uid + "?x", nil, nil, 400, "invalid_request"},
		{"support without form", "GET", root + "/support", nil, nil, 400, "invalid_request"},
		{"support twice", "GET", root + "/support?form=https://a.test/&form=https://a.test/", nil, nil, 400, "invalid_request"},
		{"support malformed", "GET", root + "/support?form=http://a.test/", nil, nil, 400, "invalid_request"},
		{"limit 0", "GET", root + "/resources?limit=0", nil, nil, 400, "invalid_request"},
		{"limit signed", "GET", root + "/resources?limit=%2B5", nil, nil, 400, "invalid_request"},
		{"limit 101", "GET", root + "/resources?limit=101", nil, nil, 400, "invalid_request"},
		{"cursor", "GET", root + "/resources?cursor=abc", nil, nil, 400, "invalid_request"},
		{"no key", "POST", root + "/resources", big, []string{"Content-Type", "text/plain"}, 400, "invalid_request"},
		{"short key", "POST", root + "/resources", spec{}, []string{"Idempotency-Key", "fifteen-chars-x"}, 400, "invalid_request"},
		{"odd key", "POST", root + "/resources", spec{}, []string{"Idempotency-Key", ".starts-with-a-dot"}, 400, "invalid_request"},
		{"key before fence", "PUT", root + "/resources/" + uid, spec{}, nil, 400, "invalid_request"},
		{"no fence", "PUT", root + "/resources/" + uid, big, []string{"Idempotency-Key", "0123456789abcdef", "Content-Type", "text/plain"}, 428, "expected_generation_required"},
		{"no fence of a delete", "DELETE", root + "/resources/" + uid, "x", []string{"Idempotency-Key", "0123456789abcdef"}, 428, "expected_generation_required"},
		{"odd fence", "PUT", root + "/resources/" + uid, big, []string{"Idempotency-Key", "0123456789abcdef", "Takoform-Expected-Generation", "+1"}, 400, "invalid_request"},
		{"media type", "POST", root + "/resources", big, []string{"Idempotency-Key", "0123456789abcdef", "Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		{"no media type", "POST", root + "/resources", big, []string{"Idempotency-Key", "0123456789abcdef", "Content-Type", ""}, 415, "unsupported_media_type"},
		{"encoding", "POST", root + "/resources", big, []string{"Idempotency-Key", "0123456789abcdef", "Content-Encoding", "gzip"}, 415, "unsupported_media_type"},
		{"size", "POST", root + "/resources", big, []string{"Idempotency-Key", "0123456789abcdef"}, 413, "request_too_large"},
		{"empty", "POST", root + "/resources", "", []string{"Idempotency-Key", "0123456789abcdef"}, 400, "invalid_request"},
		{"delete with body", "DELETE", root + "/resources/" + uid, " ", []string{"Idempotency-Key", "0123456789abcdef", "Takoform-Expected-Generation", "9"}, 400, "invalid_request"},
		{"unknown UID", "DELETE", root + "/resources/never", nil, []string{"Idempotency-Key", "0123456789abcdef", "Takoform-Expected-Generation", "9"}, 404, "not_found"},
		{"charset", "POST", root + "/resources", "{}", []string{"Idempotency-Key", "0123456789abcdef", "Content-Type", "application/json; charset=latin1"}, 415, "unsupported_media_type"},
	}
	for _, tt := range tests {
		a := n.do(tt.method, tt.path, tt.body, tt.headers...)
		if a.status != tt.status || a.text(t, "code") != tt.code || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %s %s, want %d %s", tt.name, a.status, a.header.Get("Content-Type"), a.body, tt.status, tt.code)
			continue
		}
		if a.member(t, "type") != "about:blank" || a.member(t, "status") != float64(tt.status) || a.text(t, "title") == "" {
			t.Errorf("%s: not a Problem: %s", tt.name, a.body)
		}
		if (a.header.Get("Allow") != "") != (tt.status == 405) || (a.header.Get("WWW-Authenticate") != "") != (tt.status == 401) {
			t.Errorf("%s: headers %v", tt.name, a.header)
		}
	}
}

// host-api §2.2: the raw bytes, then the envelope.
func TestEnvelope(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	f := `"form":"` + form.ModuleWorkerURL + `"`
	rest := f + `,"space":"default","name":"x"`
	for name, body := range map[string]string{
		"not JSON": "{", "trailing": `{` + rest + `,"spec":{}} 1`, "duplicate": `{` + rest + `,"spec":{},"spec":{}}`,
		"duplicate deep": `{` + rest + `,"spec":{"a":{"b":1,"b":2}}}`, "not UTF-8": `{` + rest + `,"spec":{"a":"` + "\xff" + `"}}`,
		"lone surrogate": `{` + rest + `,"spec":{"a":"\ud800"}}`, "1e400": `{` + rest + `,"spec":{"a":1e400}}`, "NaN": `{` + rest + `,"spec":{"a":NaN}}`,
		"array": `[]`, "unknown member": `{` + rest + `,"spec":{},"x":1}`, "case": `{` + rest + `,"Spec":{}}`, "no spec": `{` + rest + `}`,
		"no form": `{"space":"default","name":"x","spec":{}}`, "form null": `{"form":null,"space":"default","name":"x","spec":{}}`,
		"form malformed": `{"form":"http://a.test/","space":"default","name":"x","spec":{}}`, "name": `{` + f + `,"space":"default","name":"-x","spec":{}}`,
		"space": `{` + f + `,"space":"a b","name":"x","spec":{}}`, "name number": `{` + f + `,"space":"default","name":1,"spec":{}}`,
		"private value": `{` + rest + `,"spec":{},"privateInputs":{"A":1}}`, "private null": `{` + rest + `,"spec":{},"privateInputs":null}`,
		"offering": `{` + rest + `,"spec":{},"offering":{"id":"a","revision":"b"}}`, "offering odd": `{` + rest + `,"spec":{},"offering":1}`,
	} {
		a := n.do("POST", root+"/resources", body, "Idempotency-Key", freshKey())
		if a.status != 400 || a.text(t, "code") != "invalid_request" {
			t.Errorf("%s: got %d %s", name, a.status, a.body)
		}
	}
	for name, body := range map[string]string{"spec null": `{` + rest + `,"spec":null}`, "spec array": `{` + rest + `,"spec":[]}`, "spec member": `{` + rest + `,"spec":{"a":1}}`} {
		a := n.do("POST", root+"/resources", body, "Idempotency-Key", freshKey())
		if a.status != 422 || a.text(t, "code") != "invalid_spec" {
			t.Errorf("%s: got %d %s", name, a.status, a.body)
		}
	}
	// D-31: the mere presence of private inputs, before the spec is looked at.
	n.do("POST", root+"/resources", `{`+rest+`,"spec":1,"privateInputs":{}}`, "Idempotency-Key", freshKey()).is(t, 422, "capability_required")
}

// Wire codes of README §4, with the seed's code first in detail.
func TestWireCodes(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	check := func(a answer, status int, code, first string) {
		t.Helper()
		a.is(t, status, code)
		if d := a.text(t, "detail"); !strings.HasPrefix(d, first) {
			t.Errorf("detail is %q, want it to begin with %q", d, first)
		}
	}
	check(n.create(form.WorkerEndpointURL, "e", spec{"worker": ref(w)}), 422, "capability_required", "unsupported_capability: WA-3.5: ")
	check(n.create(form.WorkerDeploymentURL, "d", weighted(w, "nothing", 9999)), 422, "invalid_spec", "invalid_argument: WA-2.2: ")
	check(n.create(form.WorkerDeploymentURL, "d", weighted(w, "nothing", 10000)), 404, "not_found", "resource_not_found: REL-1: ")
	check(n.create(form.ModuleWorkerURL, "web", spec{}), 409, "name_conflict", "")
	v := n.version(w, "v", "fetch")
	check(n.del(w), 409, "dependency_conflict", "dependency_in_use: REL-8: ")
	check(n.create(form.WorkerVersionURL, "v2", spec{"worker": ref(w), "bundle": ref(n.code("queue.code", "queue")), "handlers": []string{"fetch"}}), 422, "invalid_spec", "invalid_argument: D-20: handler_not_exported")
	bad := n.made(form.WorkerBundleURL, "bad", n.bundle("m.js", "m.js", jsModule, "syntax error"))
	check(n.create(form.WorkerVersionURL, "v3", spec{"worker": ref(w), "bundle": ref(bad), "handlers": []string{}}), 422, "invalid_spec", "invalid_argument: module-worker §2: module_syntax_error: line 1")
	_ = v
}

// host-api §2.1 and worker-bundle §3: an artifact that cannot be had ends the Operation, and the Resource can be repaired
// or removed.
func TestArtifactFailure(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	sum := strings.Repeat("a", 64)
	s := spec{"artifact": spec{"url": origin + "/artifacts/sha256/" + sum, "sha256": sum}}
	a := n.create(form.WorkerBundleURL, "b", s)
	if a.status == 202 && a.header.Get("Retry-After") == "" {
		t.Error("202 without Retry-After")
	}
	op := n.ended(a)
	e, _ := op.member(t, "error").(map[string]any)
	if op.text(t, "status") != "failed" || op.text(t, "effect") != "none" || e["code"] != "artifact_invalid" || e["message"] == "" {
		t.Fatalf("operation ended %s", op.body)
	}
	uid := op.text(t, "resourceUid")
	if r := n.get(uid); r.text(t, "phase") != "error" || fmt.Sprint(r.member(t, "observed")) != "map[]" {
		t.Errorf("resource reads %s", r.body)
	}
	n.create(form.ModuleWorkerURL, "b", spec{}).is(t, 409, "name_conflict")
	n.succeeded(n.del(uid))
	good := n.made(form.WorkerBundleURL, "b", n.bundle("m.js", "m.js", jsModule, "exports fetch"))
	var doc struct {
		Observed struct {
			ManifestSha256, Entrypoint string
			FileCount, TotalBytes      int
			Files                      []map[string]any
		}
	}
	if err := json.Unmarshal(n.get(good).body, &doc); err != nil || doc.Observed.FileCount != 1 || doc.Observed.Entrypoint != "m.js" || len(doc.Observed.Files[0]) != 4 {
		t.Errorf("observed reads %s (%v)", n.get(good).body, err)
	}
}

// host-api §9: pages, cursors bound to filters, Space and principal.
func TestPaging(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	for i := range 5 {
		n.made(form.ModuleWorkerURL, fmt.Sprint("w", i), spec{})
	}
	var uids []string
	path := root + "/resources?limit=2"
	cursor := ""
	for {
		a := n.do("GET", path+cursor, nil)
		a.is(t, 200, "")
		for _, item := range a.member(t, "items").([]any) {
			uids = append(uids, item.(map[string]any)["uid"].(string))
		}
		next, more := a.member(t, "nextCursor").(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
		n.do("GET", path+"&space=default"+cursor, nil).is(t, 400, "invalid_request")
		n.do("GET", path+cursor+"A", nil).is(t, 400, "invalid_request")
		other := n.principal("default", "other", "editor")
		other.do("GET", path+cursor, nil).is(t, 400, "invalid_request")
	}
	if len(uids) != 5 {
		t.Errorf("%d items listed", len(uids))
	}
	for i := 1; i < len(uids); i++ {
		if uids[i] <= uids[i-1] {
			t.Errorf("order: %v", uids)
		}
	}
}

// principal returns the node as another principal sees it.
func (n *node) principal(tenant, principal, role string, spaces ...string) *node {
	n.t.Helper()
	body := spec{"tenant": tenant, "principal": principal, "role": role}
	if spaces != nil {
		body["spaces"] = spaces
	}
	a := n.do("POST", "/operator/v1/control/tokens", body)
	a.is(n.t, 200, "")
	return &node{t: n.t, dir: n.dir, c: n.c, token: a.text(n.t, "token")}
}

// worker-aggregate §6 over the wire: a stranger's answers are byte for byte those of what never existed; both directions
// work.
func TestTenancyOverTheWire(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	m := n.principal("other", "p", "editor")
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	opID := n.get(w).text(t, "lastOperation")
	same := func(what string, a, b answer) {
		t.Helper()
		if a.status != 404 || a.status != b.status || !bytes.Equal(a.body, b.body) || fmt.Sprint(a.header) != fmt.Sprint(b.header) {
			t.Errorf("%s: %d %s %v, never issued: %d %s %v", what, a.status, a.body, a.header, b.status, b.body, b.header)
		}
	}
	same("read", m.get(w), m.get("never"))
	same("operation", m.do("GET", root+"/operations/"+opID, nil), m.do("GET", root+"/operations/never", nil))
	mutate := func(method, uid string) answer {
		var body any
		if method == "PUT" {
			body = spec{"spec": spec{}}
		}
		return m.do(method, root+"/resources/"+uid, body, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1")
	}
	same("update", mutate("PUT", w), mutate("PUT", "never"))
	same("delete", mutate("DELETE", w), mutate("DELETE", "never"))
	same("reference", m.create(form.WorkerEndpointURL, "e", spec{"worker": ref(w)}), m.create(form.WorkerEndpointURL, "e", spec{"worker": ref("never")}))
	mw := m.made(form.ModuleWorkerURL, "web", spec{})
	if items := m.do("GET", root+"/resources", nil).member(t, "items").([]any); len(items) != 1 {
		t.Errorf("the stranger lists %d", len(items))
	}
	m.succeeded(m.put(mw, spec{}))
	m.succeeded(m.del(mw))
	same("tombstone", n.do("GET", root+"/resources/"+mw, nil), n.do("GET", root+"/resources/never", nil))
	n.succeeded(n.put(w, spec{}))
	// Held bytes of one tenant are no source for another.
	s := n.bundle("m.js", "m.js", jsModule, "exports")
	if op := m.ended(m.create(form.WorkerBundleURL, "b", s)); op.text(t, "status") != "failed" {
		t.Errorf("another tenant's bytes were used: %s", op.body)
	}
}

// node-surface §4: tokens, roles, Spaces; 403 only inside the tenant; revocation is at once.
func TestTokensOverTheWire(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	reader := n.principal("default", "r", "reader")
	reader.get(w).is(t, 200, "")
	reader.create(form.ModuleWorkerURL, "x", spec{}).is(t, 403, "forbidden")
	reader.del(w).is(t, 403, "forbidden")
	reader.do("GET", "/operator/v1/control/tokens", nil).is(t, 403, "forbidden")
	elsewhere := n.principal("default", "e", "editor", "other")
	elsewhere.get(w).is(t, 403, "forbidden")
	elsewhere.do("GET", root+"/resources?space=default", nil).is(t, 403, "forbidden")
	elsewhere.create(form.ModuleWorkerURL, "x", spec{}).is(t, 403, "forbidden")
	boss := n.principal("other", "boss", "operator")
	boss.do("POST", "/operator/v1/control/tokens", spec{"tenant": "default", "principal": "x", "role": "editor"}).is(t, 403, "forbidden")
	if items := boss.do("GET", "/operator/v1/control/tokens", nil).member(t, "items").([]any); len(items) != 1 {
		t.Errorf("an operator of another tenant lists %d tokens", len(items))
	}
	for _, body := range []string{`{}`, `[]`, `{"tenant":"a","principal":"b","role":"king"}`, `{"tenant":"a","principal":"b","role":"editor","x":1}`, `{"tenant":"a","principal":"b","role":"editor","spaces":["a b"]}`} {
		n.do("POST", "/operator/v1/control/tokens", body).is(t, 400, "invalid_request")
	}
	list := n.do("GET", "/operator/v1/control/tokens", nil)
	if strings.Contains(string(list.body), reader.token) {
		t.Error("a secret is listed")
	}
	for _, item := range list.member(t, "items").([]any) {
		if tok := item.(map[string]any); tok["principal"] == "r" {
			n.do("DELETE", "/operator/v1/control/tokens/"+tok["id"].(string), nil).is(t, 200, "")
		}
	}
	reader.get(w).is(t, 401, "unauthenticated")
	n.do("DELETE", "/operator/v1/control/tokens/never", nil).is(t, 404, "not_found")
}

// A principal outlives its tokens: a key used with one token is known with the next (host-api §7.4).
func TestRotationKeepsKeys(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	a, b := n.principal("default", "deployer", "editor"), n.principal("default", "deployer", "editor")
	body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "web", "spec": spec{}}
	first := a.do("POST", root+"/resources", body, "Idempotency-Key", "rotation-key-0001")
	second := b.do("POST", root+"/resources", body, "Idempotency-Key", "rotation-key-0001")
	if first.text(t, "id") != second.text(t, "id") {
		t.Errorf("the second token gets %s", second.body)
	}
	c := n.principal("default", "stranger", "editor")
	c.do("POST", root+"/resources", body, "Idempotency-Key", "rotation-key-0001").is(t, 409, "name_conflict")
}

// host-api §7.4: of concurrent copies exactly one is accepted, the others see it.
func TestConcurrentCopies(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "web", "spec": spec{}}
	ids := make([]string, 16)
	var jobs sync.WaitGroup
	for i := range ids {
		jobs.Go(func() {
			ids[i] = n.do("POST", root+"/resources", body, "Idempotency-Key", "concurrent-key-01").text(t, "id")
		})
	}
	jobs.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("copies got %v", ids)
		}
	}
	// And of concurrent claims of one name under different keys exactly one wins.
	var won, lost int
	var mu sync.Mutex
	for i := range 16 {
		jobs.Go(func() {
			a := n.do("POST", root+"/resources", spec{"form": form.ModuleWorkerURL, "space": "default", "name": "one", "spec": spec{}}, "Idempotency-Key", "claim-key-00000"+strconv.Itoa(i))
			mu.Lock()
			defer mu.Unlock()
			if a.status == 200 {
				won++
			} else if a.status == 409 {
				lost++
			}
		})
	}
	jobs.Wait()
	if won != 1 || lost != 15 {
		t.Errorf("%d won, %d lost", won, lost)
	}
}

// host-api §3: what discovery points to is served here, without a credential.
func TestDocumentationIsServed(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	d := n.do("GET", "/.well-known/takoform/v2", nil, "Authorization", "", "Host", "evil.test", "Forwarded", "host=evil.test")
	auth := d.member(t, "authentication").(map[string]any)
	for _, link := range []string{d.text(t, "documentation"), auth["documentation"].(string), origin + "/docs/profile"} {
		path, ok := strings.CutPrefix(link, origin)
		if !ok {
			t.Fatalf("%s is at another origin", link)
		}
		a := n.do("GET", path, nil, "Authorization", "")
		if a.status != 200 || len(a.body) < 200 {
			t.Errorf("%s answers %d, %d bytes", path, a.status, len(a.body))
		}
	}
	n.do("GET", "/docs/nothing", nil).is(t, 404, "not_found")
	n.do("GET", "/docs/../pages/index", nil).is(t, 404, "not_found")
	if d.text(t, "baseUrl") != origin+root {
		t.Errorf("a request header moved baseUrl to %s", d.text(t, "baseUrl"))
	}
}

// attachments §3 and D-54: the operator's zones are the control proof; the endpoint domain is in nobody's zone.
func TestZones(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) {
		o.Zones = []Zone{{Name: "mine.test", Tenant: "default"}, {Name: "yours.test", Tenant: "other"}, {Name: "all.test"}, {Name: "localhost"}}
	})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch"), 10000))
	for i, row := range []struct {
		host string
		ok   bool
	}{
		{"mine.test", true}, {"a.b.mine.test", true}, {"notmine.test", false}, {"yours.test", false}, {"x.all.test", true},
		{"edge.localhost", false}, {"x.edge.localhost", false}, {"other.localhost", true},
	} {
		a := n.create(form.CustomDomainURL, fmt.Sprint("dom", i), spec{"hostname": row.host, "worker": ref(w)})
		if row.ok {
			n.succeeded(a)
		} else {
			a.is(t, http.StatusForbidden, "forbidden")
		}
	}
}
