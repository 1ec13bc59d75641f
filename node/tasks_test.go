package node

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// What holds a node is told by method and area, never by what a path names, and for as long as the request lasts, however it ends.
func TestTasksOfTheControlListener(t *testing.T) {
	var ts tasks
	for _, c := range []struct{ method, path, kind, name string }{
		{"GET", "/apis/forms.takoform.com/v2/resources/secret-uid?space=s", "control request", "GET /apis/forms.takoform.com/v2/"},
		{"POST", "/operator/v1/kv/put", "control request", "POST /operator/v1/"},
		{"PUT", "/artifacts/sha256/" + "abc", "upload", "PUT /artifacts/"},
		{"GET", "/artifacts/sha256/abc", "control request", "GET /artifacts/"},
		{"GET", "/artifacts", "control request", "GET /"},
		{"PUT", "/what/else", "control request", "PUT /"},
	} {
		seen := 0
		h := ts.counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			for _, one := range ts.list() {
				seen++
				if one.kind != c.kind || one.name != c.name || one.worker != "" || one.since.IsZero() {
					t.Errorf("%s %s is told as %+v", c.method, c.path, one)
				}
			}
			panic(http.ErrAbortHandler)
		}))
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil))
		}()
		if left := ts.list(); seen != 1 || len(left) != 0 {
			t.Errorf("%s %s: told %d times, %d are left", c.method, c.path, seen, len(left))
		}
	}
	ends := []func(){ts.begin("cron", "nightly", "w1"), ts.begin("cron", "nightly", "w1")} // alike, and still two
	ends[0]()
	ends[0]()
	if left := ts.list(); len(left) != 1 {
		t.Errorf("%d are left", len(left))
	}
	ends[1]()
	if left := ts.list(); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

// The oldest are told, as many as a list holds.
func TestTheOldestAreTold(t *testing.T) {
	const all = 2*heldMost + 1
	var list []HeldWork
	for i := range all {
		list = append(list, HeldWork{Age: time.Duration(i * heldMost % all)}) // each age once, in disorder
	}
	got := oldest(list)
	if len(got) != heldMost {
		t.Fatalf("%d are told", len(got))
	}
	for i, w := range got {
		if w.Age != time.Duration(all-1-i) {
			t.Errorf("number %d is %v old", i, w.Age)
		}
	}
}
