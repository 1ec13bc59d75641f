package control

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"edged/control/artifact"
	"edged/control/form"
)

// audit reads the whole audit, newest first, in pages, as "by action target outcome code".
func (n *node) audit(query string, limit int) []string {
	n.t.Helper()
	var out []string
	for cursor := ""; ; {
		a := n.do("GET", fmt.Sprintf("/operator/v1/control/audit?limit=%d%s%s", limit, query, cursor), nil)
		a.is(n.t, 200, "")
		for _, item := range a.member(n.t, "items").([]any) {
			r := item.(map[string]any)
			text := func(name string) string { s, _ := r[name].(string); return s }
			out = append(out, strings.Join([]string{text("byTenant") + "/" + text("byPrincipal"), text("action"), text("name"), text("outcome"), text("code")}, " "))
			if text("at") == "" || text("tenant") == "" || text("outcome") == "accepted" && (text("byToken") == "") != (text("byPrincipal") == "") {
				n.t.Errorf("record %v", r)
			}
		}
		next := a.member(n.t, "nextCursor")
		if next == nil {
			return out
		}
		cursor = "&cursor=" + next.(string)
	}
}

// Every mutation that was accepted or refused leaves one record with who, what and how it ended, never a value; reads,
// previews and replays leave none. It survives a crash without a gap or a repeat.
func TestAuditRecordsMutations(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	start := len(n.audit("", 100))
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	e := n.principal("default", "ed", "editor")
	r := n.principal("default", "ro", "reader")
	s := n.secretSpec(w, "v", "KEY")
	key := freshKey()
	v := e.succeeded(e.createWith(form.WorkerVersionURL, "v", s, spec{"KEY": "hush-hush"}, "Idempotency-Key", key))
	e.createWith(form.WorkerVersionURL, "v", s, spec{"KEY": "hush-hush"}, "Idempotency-Key", key).is(t, 200, "") // a replay
	e.putWith(v, s, spec{"KEY": "hush-hush-2"}).is(t, 422, "invalid_spec")
	r.create(form.ModuleWorkerURL, "x", spec{}).is(t, 403, "forbidden")
	r.get(w)
	e.do("POST", root+"/resources", "{", "Idempotency-Key", freshKey()).is(t, 400, "invalid_request")
	e.replenish("op-never", spec{}).is(t, 404, "not_found")
	e.do("POST", root+"/previews", spec{"action": "delete", "uid": w, "expectedGeneration": 1})
	e.succeeded(e.del(v))
	e.do("DELETE", "/operator/v1/control/tokens/x", nil).is(t, 403, "forbidden") // not an operator: nobody the door knows
	list := n.do("GET", "/operator/v1/control/tokens", nil)
	for _, item := range list.member(t, "items").([]any) {
		if tok := item.(map[string]any); tok["principal"] == "ro" {
			n.do("DELETE", "/operator/v1/control/tokens/"+tok["id"].(string), nil).is(t, 200, "")
		}
	}
	n.do("DELETE", "/operator/v1/control/tokens/never", nil).is(t, 404, "not_found")
	n.do("POST", "/operator/v1/control/rotate-key", nil).is(t, 200, "")
	want := []string{
		"default/bootstrap create web accepted ",
		"default/bootstrap control.tokens.create ed accepted ",
		"default/bootstrap control.tokens.create ro accepted ",
		"default/bootstrap create v.code accepted ",
		"default/ed create v accepted ",
		"default/ed update  refused invalid_spec",
		"default/ro create x refused forbidden",
		"default/ed create  refused invalid_request",
		"default/ed replenish  refused not_found",
		"default/ed delete v accepted ",
		"default/bootstrap control.tokens.revoke ro accepted ",
		"default/bootstrap control.tokens.revoke  refused not_found",
		"default/bootstrap control.rotate-key  accepted ",
	}
	slices.Sort(want) // the two logs are merged by time, which may be equal
	check := func(n *node, more ...string) {
		t.Helper()
		for _, size := range []int{3, 1000} {
			got := n.audit("", size)
			got = got[:len(got)-start]
			slices.Sort(got)
			if all := append(more, want...); !slices.Equal(got, sorted(all)) {
				t.Errorf("pages of %d:\n%s\nwant\n%s", size, strings.Join(got, "\n"), strings.Join(sorted(all), "\n"))
			}
		}
	}
	check(n)
	if got := n.audit("&principal=ed&outcome=refused", 100); len(got) != 3 {
		t.Errorf("filtered: %v", got)
	}
	if got := n.audit("&target="+v, 100); len(got) != 3 {
		t.Errorf("of one UID: %v", got)
	}
	raw := n.do("GET", "/operator/v1/control/audit", nil)
	if bytes.Contains(raw.body, []byte("hush")) || bytes.Contains(raw.body, []byte("edged_")) {
		t.Errorf("the audit shows a secret: %s", raw.body)
	}
	for _, bad := range []string{"limit=0", "cursor=x", "outcome=maybe", "x=1"} {
		n.do("GET", "/operator/v1/control/audit?"+bad, nil).is(t, 400, "invalid_request")
	}
	check(startNode(t, n.crashCopy(), nil))
}

func sorted(in []string) []string { out := slices.Clone(in); slices.Sort(out); return out }

// An operator of one tenant sees and manages its own alone; whoever is limited to Spaces manages nobody; what is not for a
// caller looks like nothing.
func TestOperatorsOfATenant(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	boss := n.principal("t2", "boss", "operator")
	n.made(form.ModuleWorkerURL, "web", spec{})
	boss.made(form.ModuleWorkerURL, "theirs", spec{})
	boss.principal("t2", "helper", "editor", "default")
	if got := strings.Join(boss.audit("", 100), "|"); strings.Contains(got, "web") || !strings.Contains(got, "theirs") || !strings.Contains(got, "helper") {
		t.Errorf("the tenant's audit is %s", got)
	}
	if got := strings.Join(n.audit("", 100), "|"); !strings.Contains(got, "web") || !strings.Contains(got, "theirs") {
		t.Errorf("the node's audit is %s", got)
	}
	boss.do("POST", "/operator/v1/control/rotate-key", nil).is(t, 403, "forbidden")
	limited := n.principal("t2", "limited", "operator", "default")
	for _, path := range []string{"tokens", "audit"} {
		limited.do("GET", "/operator/v1/control/"+path, nil).is(t, 403, "forbidden")
	}
	var foreign string
	for _, item := range n.do("GET", "/operator/v1/control/tokens", nil).member(t, "items").([]any) {
		if tok := item.(map[string]any); tok["tenant"] == "default" {
			foreign = tok["id"].(string)
		}
	}
	a, b := boss.do("DELETE", "/operator/v1/control/tokens/"+foreign, nil), boss.do("DELETE", "/operator/v1/control/tokens/never", nil)
	if a.status != 404 || !bytes.Equal(a.body, b.body) || fmt.Sprint(a.header) != fmt.Sprint(b.header) {
		t.Errorf("%s tells from %s", a.body, b.body)
	}
}

// node-surface §4: the last use of a token is shown, coarsely, and costs reads no write.
func TestLastUseOfTokens(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	r := n.principal("default", "ro", "reader")
	used := func() any { t.Helper(); return n.lastUse("ro") }
	if used() != nil {
		t.Errorf("used before its first use: %v", used())
	}
	index := n.c.machine.applied.at()
	for range 20 {
		r.do("GET", root+"/resources", nil).is(t, 200, "")
	}
	if n.c.machine.applied.at() != index {
		t.Error("reads wrote something")
	}
	n.c.flushUses()
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(used())); err != nil || time.Since(at) > time.Hour {
		t.Errorf("used at %v", used())
	}
	index = n.c.machine.applied.at()
	r.do("GET", root+"/resources", nil).is(t, 200, "")
	n.c.flushUses()
	if n.c.machine.applied.at() != index {
		t.Error("a use within minutes of the last was written again")
	}
	if got, want := startNode(t, n.crashCopy(), nil).lastUse("ro"), used(); got != want {
		t.Errorf("after a restart the last use is %v, it was %v", got, want)
	}
}

// lastUse is when the token of a principal was last used, as operators see it.
func (n *node) lastUse(principal string) any {
	n.t.Helper()
	for _, item := range n.do("GET", "/operator/v1/control/tokens", nil).member(n.t, "items").([]any) {
		if tok := item.(map[string]any); tok["principal"] == principal {
			return tok["usedAt"]
		}
	}
	return "gone"
}

// What the sweep does by itself beside the end of retention: it asks for private inputs that waited too long (host-api §8), writes the
// last use of tokens down, and collects bytes that nothing refers to (node-surface §4).
func TestSweepGoesRound(t *testing.T) {
	n := startWith(t, t.TempDir(), vault(), func(o *Options) { o.TransferLife, o.SweepEvery = time.Millisecond, 10*time.Millisecond })
	n.c.settleWait = time.Millisecond
	n.c.mu.Lock()
	n.c.opt.MaxOperations = 0 // the runner, which would look at the inputs too, takes nothing up
	n.c.mu.Unlock()
	made := n.do("POST", root+"/resources", spec{"form": "https://test.test/vault", "space": "default", "name": "v",
		"spec": spec{"names": []string{"A"}}, "privateInputs": spec{"A": "one"}}, "Idempotency-Key", freshKey())
	made.is(t, 202, "")
	n.poll(func() bool { return n.operation(made.text(t, "id")).text(t, "status") == "waiting_input" })

	n.principal("default", "ro", "reader").do("GET", root+"/resources", nil).is(t, 200, "")
	n.poll(func() bool { return n.lastUse("ro") != nil })

	kept, _ := n.upload("young")
	old := "old"
	digest := artifact.Digest(sha256.Sum256([]byte(old)))
	if err := n.c.artifacts.Keep(t.Context(), digest, strings.NewReader(old), map[string]time.Time{"default": time.Now().Add(-2 * artifact.Grace)}); err != nil {
		t.Fatal(err)
	}
	held := func(digest string) int { return n.do("HEAD", artifact.SidePath+digest, nil).status }
	n.poll(func() bool { return held(digest.String()) == 404 })
	if got := held(kept); got != 200 {
		t.Errorf("bytes within their grace read %d", got)
	}
}

// host-api §11: 429 with Retry-After, per principal; strangers without a credential get their 401 all the same.
func TestRateLimit(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.RequestRate = 5 })
	r := n.principal("default", "ro", "reader")
	limited := answer{}
	for range 50 {
		if limited = r.do("GET", root+"/resources", nil); limited.status != 200 {
			break
		}
	}
	limited.is(t, 429, "rate_limited")
	if limited.header.Get("Retry-After") != "1" || limited.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers are %v", limited.header)
	}
	n.do("GET", root+"/resources", nil).is(t, 200, "")
	n.do("GET", root+"/resources", nil, "Authorization", "").is(t, 401, "unauthenticated")
}

// host-api §4: over every route that takes a name, a stranger's answer is byte for byte that of what never existed.
func TestStrangerOnEveryRoute(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	m := n.principal("other", "boss", "operator")
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	b := n.code("b", "fetch")
	v := n.version(w, "v", "fetch")
	sum, _ := n.upload("held by the tenant alone")
	op := n.get(w).text(t, "lastOperation")
	foreign := ""
	for _, tok := range n.c.state.Tokens() {
		if tok.Tenant == "default" {
			foreign = tok.ID
		}
	}
	fence := []string{"Idempotency-Key", "a-key-that-is-fixed", "Takoform-Expected-Generation", "1"}
	create := func(formURL string, s any) func(string) (string, string, any) {
		return func(uid string) (string, string, any) {
			raw := strings.ReplaceAll(fmt.Sprint(s), "UID", uid)
			return "POST", root + "/resources", `{"form":"` + formURL + `","space":"default","name":"n","spec":` + raw + `}`
		}
	}
	at := func(method, before, after string, body any) func(string) (string, string, any) {
		return func(name string) (string, string, any) { return method, before + name + after, body }
	}
	for _, row := range []struct {
		what, name string
		ask        func(name string) (method, path string, body any)
	}{
		{"read", w, at("GET", root+"/resources/", "", nil)},
		{"update", w, at("PUT", root+"/resources/", "", spec{"spec": spec{}})},
		{"delete", w, at("DELETE", root+"/resources/", "", nil)},
		{"operation", op, at("GET", root+"/operations/", "", nil)},
		{"replenish", op, at("PUT", root+"/operations/", "/private-inputs", spec{"privateInputs": spec{}})},
		{"preview of an update", w, func(uid string) (string, string, any) {
			return "POST", root + "/previews", spec{"action": "update", "uid": uid, "expectedGeneration": 1, "input": spec{"spec": spec{}}}
		}},
		{"preview of a delete", w, func(uid string) (string, string, any) {
			return "POST", root + "/previews", spec{"action": "delete", "uid": uid, "expectedGeneration": 1}
		}},
		{"preview of a reference", w, func(uid string) (string, string, any) {
			return "POST", root + "/previews", spec{"action": "create", "input": spec{"form": form.WorkerEndpointURL, "space": "default", "name": "n", "spec": spec{"worker": ref(uid)}}}
		}},
		{"reference to a worker", w, create(form.WorkerEndpointURL, `{"worker":{"resourceUid":"UID"}}`)},
		{"reference to a bundle", b, create(form.WorkerVersionURL, `{"worker":{"resourceUid":"UID"},"bundle":{"resourceUid":"UID"},"handlers":[]}`)},
		{"reference to a version", v, create(form.WorkerDeploymentURL, `{"worker":{"resourceUid":"UID"},"versions":[{"workerVersion":{"resourceUid":"UID"},"weight":10000}]}`)},
		{"list by name", "web", at("GET", root+"/resources?name=", "", nil)},
		{"artifact", sum, at("GET", "/artifacts/sha256/", "", nil)},
		{"artifact head", sum, at("HEAD", "/artifacts/sha256/", "", nil)},
		{"token", foreign, at("DELETE", "/operator/v1/control/tokens/", "", nil)},
	} {
		never := "r-" + strings.Repeat("0", 26)
		if len(row.name) == 64 {
			never = strings.Repeat("0", 64)
		}
		method, path, body := row.ask(row.name)
		got := m.do(method, path, body, fence...)
		method, path, body = row.ask(never)
		want := m.do(method, path, body, fence...)
		if got.status != want.status || !bytes.Equal(got.body, want.body) || fmt.Sprint(got.header) != fmt.Sprint(want.header) {
			t.Errorf("%s: %d %s, never issued: %d %s", row.what, got.status, got.body, want.status, want.body)
		}
	}
}
