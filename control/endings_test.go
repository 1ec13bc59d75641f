package control

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/form"
)

// host-api §7: a mutation whose Operation ends at once is answered with its end, success or failure, and 200.
func TestQuickOperationIsAnsweredAsItEnded(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	n.c.settleWait = 20 * time.Second // however slow this machine is
	start := time.Now()
	a := n.create(form.WorkerBundleURL, "good", n.bundle("m.js", "m.js", jsModule, "exports fetch"))
	if a.status != 200 || a.text(t, "status") != "succeeded" || a.text(t, "effect") != "complete" || a.header.Get("Retry-After") != "" {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	if r := n.get(a.text(t, "resourceUid")); r.text(t, "phase") != "idle" {
		t.Errorf("resource reads %s", r.body)
	}
	sum := strings.Repeat("a", 64)
	a = n.create(form.WorkerBundleURL, "bad", spec{"artifact": spec{"url": origin + "/artifacts/sha256/" + sum, "sha256": sum}})
	if a.status != 200 || a.text(t, "status") != "failed" || a.text(t, "effect") != "none" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if took := time.Since(start); took >= n.c.settleWait {
		t.Errorf("the ends were not noticed, but waited out: %v", took)
	}
	if len(n.c.endings.waiting) != 0 {
		t.Errorf("%d are still waited for", len(n.c.endings.waiting))
	}
}

// An Operation that takes longer is answered with 202 and as it is by then (host-api §7.4), not as it was accepted.
func TestSlowOperationIsAnsweredAsItIs(t *testing.T) {
	patience, leave := context.WithCancel(t.Context())
	defer leave()
	n := startNode(t, t.TempDir(), func(o *Options) {
		o.Retire = func(ctx context.Context, _ []string) error {
			leave() // stands for the end of the wait, which then needs no real time
			<-ctx.Done()
			return ctx.Err()
		}
	})
	n.c.settleWait = time.Minute
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch"), 10000))
	req := httptest.NewRequest("DELETE", root+"/resources/"+d, nil).WithContext(patience)
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("Idempotency-Key", freshKey())
	req.Header.Set("Takoform-Expected-Generation", "1")
	rec := httptest.NewRecorder()
	n.c.Handler().ServeHTTP(rec, req)
	a := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
	if a.status != 202 || a.header.Get("Retry-After") == "" || a.text(t, "status") != "running" || a.text(t, "effect") != "unknown" {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
}

// The wait ends with the Operation, with its time, and with the client, whichever is first.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e endings
		e.init()
		ended, forget := e.expect("op-1")
		defer forget()
		start := time.Now()
		if settle(t.Context(), ended, time.Second); time.Since(start) != time.Second {
			t.Errorf("an Operation that goes on was waited for %v", time.Since(start))
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		start = time.Now()
		if settle(left, ended, time.Second); time.Since(start) != 0 {
			t.Errorf("a client that left is waited for %v", time.Since(start))
		}
		time.AfterFunc(10*time.Millisecond, func() { e.tell("op-2"); e.tell("op-1"); e.tell("op-1") })
		start = time.Now()
		if settle(t.Context(), ended, time.Second); time.Since(start) != 10*time.Millisecond {
			t.Errorf("an end was seen after %v", time.Since(start))
		}
	})
}
