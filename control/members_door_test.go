package control

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// The peer listener's part: the ring is for members alone; a report changes what it says and, repeated, writes nothing.
func TestFleetHandler(t *testing.T) {
	n, a := startFounder(t, t.TempDir(), nil)
	n.join("two", "edge")
	caller := "n-two"
	h := n.c.FleetHandler(func(*http.Request) string { return caller })
	call := func(method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w
	}
	if w := call("GET", PathRing, ""); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), a.RingFile) || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a member gets %d %q", w.Code, w.Body)
	}
	if w := call("GET", PathKnown, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"id":"n-one","control":true,"edge":true,"peer":"one.test:7000"`) ||
		!strings.Contains(w.Body.String(), `"id":"n-two"`) {
		t.Errorf("the members are %d %s", w.Code, w.Body)
	}
	report := `{"peer":"new.test:1","kvEpoch":"18446744073709551615","labels":{"disk":"fast"}}`
	if w := call("POST", PathReport, report); w.Code != 204 {
		t.Errorf("a report is answered %d %s", w.Code, w.Body)
	}
	if m := n.lastPlan().Members["n-two"]; m.Peer != "new.test:1" || m.Gossip != "" || m.KVEpoch != 1<<64-1 || m.Labels["disk"] != "fast" {
		t.Errorf("the plan has %+v", m)
	}
	index := n.c.raft.Load().AppliedIndex()
	if w := call("POST", PathReport, report); w.Code != 204 || n.c.raft.Load().AppliedIndex() != index {
		t.Errorf("a report that says nothing new is answered %d and writes", w.Code)
	}
	for body, status := range map[string]int{"{": 400, `{"peer":"x"}`: 400, `{"peer":"a:1","x":"` + strings.Repeat("y", maxReport) + `"}`: 413} {
		if w := call("POST", PathReport, body); w.Code != status {
			t.Errorf("%.30q is answered %d, want %d", body, w.Code, status)
		}
	}
	for _, stranger := range []string{"", "n-nine"} {
		caller = stranger
		for _, w := range []*httptest.ResponseRecorder{call("GET", PathRing, ""), call("POST", PathReport, report)} {
			if w.Code != 403 || strings.Contains(w.Body.String(), "edged node keys") {
				t.Errorf("%q is answered %d %s", stranger, w.Code, w.Body)
			}
		}
	}
	caller = "n-two"
	n.do("DELETE", fleetPath+"nodes/n-two", nil).is(t, 200, "")
	if w := call("GET", PathRing, ""); w.Code != 403 {
		t.Errorf("a removed member gets the ring: %d", w.Code)
	}
}

// The operators' door: who may, what is shown, what is refused.
func TestFleetDoor(t *testing.T) {
	n := startNode(t, t.TempDir(), func(o *Options) { o.NodeID = "n-one" })
	if a := n.do("GET", fleetPath+"nodes", nil); len(a.member(t, "items").([]any)) != 0 {
		t.Errorf("a node alone shows %s", a.body)
	}
	n.do("POST", fleetPath+"invites", spec{"edge": true, "seconds": 60}).is(t, 409, "conflict")
	if _, err := n.c.FoundFleet(t.Context(), asking(t, "one")); err != nil {
		t.Fatal(err)
	}
	tenant := n.principal("acme", "op", "operator")
	for _, row := range []struct {
		who          *node
		method, path string
		body         any
		status       int
		code         string
	}{
		{tenant, "GET", "nodes", nil, 403, "forbidden"},
		{tenant, "POST", "invites", spec{"edge": true, "seconds": 60}, 403, "forbidden"},
		{tenant, "DELETE", "nodes/one", nil, 403, "forbidden"},
		{n, "POST", "invites", spec{"seconds": 60}, 400, "invalid_request"},
		{n, "POST", "invites", spec{"edge": true, "seconds": 59}, 400, "invalid_request"},
		{n, "POST", "invites", spec{"edge": true, "seconds": 30*24*3600 + 1}, 400, "invalid_request"},
		{n, "POST", "invites", spec{"edge": true, "seconds": int64(18446744074 + 60)}, 400, "invalid_request"},
		{n, "POST", "invites", spec{"edge": true, "seconds": 60, "labels": spec{"a b": "c"}}, 400, "invalid_request"},
		{n, "POST", "nodes/none/drain", spec{"draining": true}, 404, "not_found"},
		{n, "DELETE", "nodes/none", nil, 404, "not_found"},
		{n, "DELETE", "nodes/one", nil, 409, "conflict"},
		{n, "DELETE", "nodes/one?loseData=true", nil, 409, "conflict"},
		{n, "DELETE", "nodes/one?loseData=yes", nil, 400, "invalid_request"},
		{n, "POST", "nodes/one/drain", spec{"draining": true}, 200, ""},
	} {
		if a := row.who.do(row.method, fleetPath+row.path, row.body); a.status != row.status || row.code != "" && a.text(t, "code") != row.code {
			t.Errorf("%s %s is answered %d %s, want %d %s", row.method, row.path, a.status, a.body, row.status, row.code)
		}
	}
	n.join("two", "control")
	open := n.invite("control", "edge")
	a := n.do("GET", fleetPath+"nodes", nil)
	items, invites := a.member(t, "items").([]any), a.member(t, "invites").([]any)
	one, two := items[0].(map[string]any), items[1].(map[string]any)
	if one["draining"] != true || one["founder"] != true || two["control"] != true || two["edge"] != nil || two["peer"] != "two.test:7000" {
		t.Errorf("the members are %s", a.body)
	}
	if w := a.member(t, "warnings").([]any); len(w) != 1 || !strings.Contains(w[0].(string), "add-control two") {
		t.Errorf("a member without its vote brings the warnings %v", w)
	}
	if i := slices.IndexFunc(invites, func(i any) bool { return i.(map[string]any)["id"] == open.ID }); len(invites) != 2 || i < 0 || invites[i].(map[string]any)["control"] != true {
		t.Errorf("the invites are %v", invites)
	}
}

// Every act leaves one record, by whom and about whom; repeats and refusals by the way.
func TestFleetAudit(t *testing.T) {
	n, _ := startFounder(t, t.TempDir(), nil)
	in, _ := n.join("two", "edge")
	if _, err := n.c.Join(t.Context(), in); err != nil { // again: the same join
		t.Fatal(err)
	}
	n.do("POST", fleetPath+"nodes/two/drain", spec{"draining": true}).is(t, 200, "")
	n.do("POST", fleetPath+"nodes/two/drain", spec{"draining": false}).is(t, 200, "")
	n.do("DELETE", fleetPath+"nodes/one", nil).is(t, 409, "")
	n.do("DELETE", fleetPath+"nodes/n-two", nil).is(t, 200, "")
	var got []string
	for _, line := range n.audit("", 100) {
		if strings.Contains(line, " fleet.") {
			got = append(got, line)
		}
	}
	want := []string{"/ fleet.found one accepted ", "default/bootstrap fleet.invite  accepted ", "/ fleet.join two accepted ", "default/bootstrap fleet.drain two accepted ",
		"default/bootstrap fleet.undrain two accepted ", "default/bootstrap fleet.remove one refused conflict", "default/bootstrap fleet.remove two accepted "}
	if !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("the audit has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
