package control

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/state"
)

// host-api §2.1, the table of headers: every answer, of every kind, on every route.
func TestHeadersOfEveryAnswer(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	op := n.get(w).text(t, "lastOperation")
	key := freshKey()
	create := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "other", "spec": spec{}}
	for _, row := range []struct {
		method, path string
		body         any
		headers      []string
		status       int
	}{
		{"GET", "/support?form=" + form.ModuleWorkerURL, nil, nil, 200},
		{"GET", "/support", nil, nil, 400},
		{"GET", "/resources", nil, nil, 200},
		{"GET", "/resources/" + w, nil, nil, 200},
		{"GET", "/resources/never", nil, nil, 404},
		{"GET", "/operations/" + op, nil, nil, 200},
		{"GET", "/offerings", nil, nil, 404},
		{"POST", "/resources", create, []string{"Idempotency-Key", key}, 200},
		{"POST", "/resources", create, []string{"Idempotency-Key", key}, 200},
		{"PUT", "/resources/" + w, spec{"spec": spec{}}, []string{"Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1"}, 200},
		{"PUT", "/resources/" + w, spec{"spec": spec{}}, []string{"Idempotency-Key", freshKey()}, 428},
		{"PATCH", "/resources/" + w, nil, nil, 405},
		{"GET", "/resources", nil, []string{"Authorization", ""}, 401},
		{"POST", "/previews", spec{"action": "create", "input": create}, nil, 200},
		{"PUT", "/operations/" + op + "/private-inputs", spec{"privateInputs": spec{}}, nil, 409},
	} {
		what := row.method + " " + row.path
		a := n.do(row.method, root+row.path, row.body, row.headers...)
		if a.status != row.status {
			t.Errorf("%s: %d %s", what, a.status, a.body)
			continue
		}
		want := "application/json"
		if a.status >= 400 {
			want = "application/problem+json"
		}
		if a.header.Get("Content-Type") != want || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", what, a.header)
		}
		mutation := a.status == 200 && (row.method == "PUT" || row.method == "POST" && row.path == "/resources")
		if got := a.header.Get("Location"); (got != "") != mutation || mutation && got != origin+root+"/operations/"+a.text(t, "id") {
			t.Errorf("%s: Location %q", what, got)
		}
		if got := a.header.Get("ETag"); (got != "") != (what == "GET /resources/"+w) {
			t.Errorf("%s: ETag %q", what, got)
		}
		for _, h := range []struct {
			name   string
			status int
		}{{"Allow", 405}, {"WWW-Authenticate", 401}} {
			if (a.header.Get(h.name) != "") != (a.status == h.status) {
				t.Errorf("%s: %s %q", what, h.name, a.header.Get(h.name))
			}
		}
	}
	for path, allow := range map[string]string{
		"/support": "GET", "/resources": "GET, POST", "/resources/" + w: "GET, PUT, DELETE", "/operations/" + op: "GET",
		"/operations/" + op + "/private-inputs": "PUT", "/previews": "POST",
	} {
		if a := n.do("TRACE", root+path, nil); a.status != 405 || a.header.Get("Allow") != allow {
			t.Errorf("%s: %d allows %q, want %q", path, a.status, a.header.Get("Allow"), allow)
		}
	}
	if a := n.do("TRACE", "/operator/v1/control/tokens", nil); a.status != 405 || a.header.Get("Allow") != "GET, POST" {
		t.Errorf("the operators' door: %d %q", a.status, a.header.Get("Allow"))
	}
}

// README §5 and D-03: the ETag is the quoted revision, 1 at first; it moves with what is shown and is never a fence.
func TestETagIsNoFence(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	first := n.get(w)
	if first.header.Get("ETag") != `"1"` {
		t.Errorf("ETag is %s", first.header.Get("ETag"))
	}
	for _, h := range []string{"If-None-Match", "If-Match"} {
		for _, value := range []string{`"1"`, `"7"`, "*"} {
			if a := n.do("GET", root+"/resources/"+w, nil, h, value); a.status != 200 || !bytes.Equal(a.body, first.body) {
				t.Errorf("GET with %s %s: %d", h, value, a.status)
			}
		}
	}
	put := n.do("PUT", root+"/resources/"+w, spec{"spec": spec{}}, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1", "If-Match", `"99"`)
	n.succeeded(put)
	if now := n.get(w); now.header.Get("ETag") == first.header.Get("ETag") {
		t.Error("the generation moved and the ETag did not")
	}
	n.succeeded(n.do("DELETE", root+"/resources/"+w, nil, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "2", "If-Match", `"99"`))
}

// host-api §7.4: the fence header is part of a request's identity, also on a create, where it means nothing else.
func TestStrayFenceOfACreate(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	key := freshKey()
	ask := func(fence ...string) answer {
		body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "web", "spec": spec{}}
		return n.do("POST", root+"/resources", body, append([]string{"Idempotency-Key", key}, fence...)...)
	}
	first := ask("Takoform-Expected-Generation", "7")
	n.succeeded(first)
	if a := ask("Takoform-Expected-Generation", "7"); a.text(t, "id") != first.text(t, "id") {
		t.Errorf("replay gives %s", a.body)
	}
	ask().is(t, 409, "idempotency_conflict")
	ask("Takoform-Expected-Generation", "8").is(t, 409, "idempotency_conflict")
}

// host-api §§6.2, 6.5, 7.4: after a delete, the key of the delete and of the create still answer with their Operations; any
// other key finds a tombstone, which only callers of the tenant see, until retention ends.
func TestTombstone(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	stranger := n.principal("other", "p", "editor")
	elsewhere := n.principal("default", "e", "editor", "other")
	createKey, deleteKey := freshKey(), freshKey()
	body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "web", "spec": spec{}}
	created := n.do("POST", root+"/resources", body, "Idempotency-Key", createKey)
	w := n.succeeded(created)
	remove := func(n *node, key string) answer {
		return n.do("DELETE", root+"/resources/"+w, nil, "Idempotency-Key", key, "Takoform-Expected-Generation", "1")
	}
	deleted := remove(n, deleteKey)
	n.succeeded(deleted)
	if a := remove(n, deleteKey); a.status != 200 || !bytes.Equal(a.body, deleted.body) {
		t.Errorf("replay of the delete: %d %s", a.status, a.body)
	}
	if a := n.do("POST", root+"/resources", body, "Idempotency-Key", createKey); a.status != 200 || !bytes.Equal(a.body, created.body) { // D-33
		t.Errorf("replay of the create: %d %s", a.status, a.body)
	}
	n.get(w).is(t, 410, "gone")
	remove(n, freshKey()).is(t, 410, "gone")
	n.do("PUT", root+"/resources/"+w, spec{"spec": spec{}}, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1").is(t, 410, "gone")
	elsewhere.get(w).is(t, 403, "forbidden")
	stranger.get(w).is(t, 404, "not_found")
	remove(stranger, freshKey()).is(t, 404, "not_found")
	again := n.made(form.ModuleWorkerURL, "web", spec{}) // the name is free
	if again == w {
		t.Error("a UID came back")
	}
	m := startNode(t, n.crashCopy(), nil)
	m.get(w).is(t, 410, "gone")
	if a := remove(m, deleteKey); !bytes.Equal(a.body, deleted.body) {
		t.Errorf("replay after a restart: %s", a.body)
	}
}

// host-api §§3, 7.4: a lowered replay window cuts nothing that was promised before.
func TestLoweredReplayWindow(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, func(o *Options) { o.ReplayWindow = 2 * time.Hour })
	key := freshKey()
	body := spec{"form": form.ModuleWorkerURL, "space": "default", "name": "web", "spec": spec{}}
	first := n.do("POST", root+"/resources", body, "Idempotency-Key", key)
	n.succeeded(first)
	n.stop()
	n = startNode(t, dir, func(o *Options) { o.ReplayWindow = time.Second })
	if got := n.do("GET", "/.well-known/takoform/v2", nil).member(t, "limits").(map[string]any)["replayWindowSeconds"]; got != 1.0 {
		t.Errorf("discovery says %v", got)
	}
	sweep := func(after time.Duration) {
		t.Helper()
		for more := true; more; {
			out, err := n.c.submit(&state.Command{Kind: state.Sweep, At: time.Now().Add(after).UnixMilli()})
			if err != nil {
				t.Fatal(err)
			}
			more = out.More
		}
	}
	sweep(time.Hour)
	if a := n.do("POST", root+"/resources", body, "Idempotency-Key", key); !bytes.Equal(a.body, first.body) {
		t.Errorf("replay within the promised window: %d %s", a.status, a.body)
	}
	sweep(3 * time.Hour)
	n.do("POST", root+"/resources", body, "Idempotency-Key", key).is(t, 409, "name_conflict") // it is a new request now
}

// host-api §12, steps 8 to 17 of an update and a delete: each request breaks the rule of its row and every later one.
func TestOrderOfUpdateChecks(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	s := n.secretSpec(w, "v", "KEY")
	v := n.succeeded(n.createWith(form.WorkerVersionURL, "v", s, spec{"KEY": "value"}))
	b := n.code("b", "fetch")
	reader := n.principal("default", "r", "reader")
	stranger := n.principal("other", "p", "editor")
	used := freshKey()
	n.succeeded(n.do("POST", root+"/resources", spec{"form": form.ModuleWorkerURL, "space": "default", "name": "x", "spec": spec{}}, "Idempotency-Key", used))
	other := spec{"worker": ref("never"), "bundle": ref("never"), "handlers": []string{"fetch"}, "requiredSensitiveVars": []string{"KEY"}}
	put := func(n *node, uid, key, fence string, s, private any) answer {
		body := spec{"spec": s}
		if private != nil {
			body["privateInputs"] = private
		}
		return n.do("PUT", root+"/resources/"+uid, body, "Idempotency-Key", key, "Takoform-Expected-Generation", fence)
	}
	bad, wrong := spec{"x": 1}, spec{"OTHER": "x"}
	for i, row := range []struct {
		got    answer
		status int
		code   string
	}{
		{put(stranger, v, used, "9", bad, wrong), 404, "not_found"},
		{put(reader, v, used, "9", bad, wrong), 403, "forbidden"},
		{put(n, v, used, "9", bad, wrong), 409, "idempotency_conflict"},
		{put(n, b, freshKey(), "9", bad, wrong), 422, "capability_required"},
		{put(n, v, freshKey(), "9", bad, wrong), 409, "generation_conflict"},
		{put(n, v, freshKey(), "1", bad, wrong), 422, "invalid_spec"},
		{put(n, v, freshKey(), "1", other, wrong), 422, "invalid_spec"},
		{put(n, v, freshKey(), "1", other, spec{"KEY": "value"}), 422, "invalid_spec"}, // immutable, before its references
	} {
		if row.got.status != row.status || row.got.text(t, "code") != row.code {
			t.Errorf("row %d: %d %s, want %d %s", i, row.got.status, row.got.body, row.status, row.code)
		}
	}
	if d := put(n, v, freshKey(), "1", other, wrong).text(t, "detail"); !strings.Contains(d, "privateInputs") {
		t.Errorf("names of private inputs come before immutability, but: %s", d)
	}
	if d := put(n, v, freshKey(), "1", other, spec{"KEY": "value"}).text(t, "detail"); !strings.Contains(d, "immutable") {
		t.Errorf("immutability comes before references, but: %s", d)
	}
	remove := func(n *node, uid, key, fence string) answer {
		return n.do("DELETE", root+"/resources/"+uid, nil, "Idempotency-Key", key, "Takoform-Expected-Generation", fence)
	}
	remove(stranger, w, used, "9").is(t, 404, "not_found")
	remove(reader, w, used, "9").is(t, 403, "forbidden")
	remove(n, w, used, "9").is(t, 409, "idempotency_conflict")
	remove(n, w, freshKey(), "9").is(t, 409, "generation_conflict")
	remove(n, w, freshKey(), "1").is(t, 409, "dependency_conflict")
}

// host-api §7.4: a refused request registers nothing; its key may be used again, for something else too.
func TestRefusedKeyIsFree(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	key := freshKey()
	ask := func(name string, s any) answer {
		return n.do("POST", root+"/resources", spec{"form": form.ModuleWorkerURL, "space": "default", "name": name, "spec": s}, "Idempotency-Key", key)
	}
	ask("a", spec{"x": 1}).is(t, 422, "invalid_spec")
	first := ask("b", spec{})
	n.succeeded(first)
	ask("c", spec{}).is(t, 409, "idempotency_conflict")
	if a := ask("b", spec{}); fmt.Sprint(a.header) != fmt.Sprint(first.header) || !bytes.Equal(a.body, first.body) {
		t.Errorf("replay differs: %v %s, was %v %s", a.header, a.body, first.header, first.body)
	}
}
