package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
)

func getAdmin(h http.Handler, path, peer string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = peer
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// node-surface §5: healthz while the process works, readyz 503 with reasons, metrics, pprof to loopback peers only.
func TestAdminListener(t *testing.T) {
	reg := prometheus.NewRegistry()
	meter.For(reg, "node").Gauge("up", "Up.").Set(1)
	ready := newReadiness()
	looked := map[string]string{}
	h := adminHandler(ready, func() map[string]string { return looked }, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, reg)

	if w := getAdmin(h, "/readyz", "127.0.0.1:1"); w.Code != 503 || !strings.Contains(w.Body.String(), `"node":"starting"`) {
		t.Errorf("starting: %d %s", w.Code, w.Body)
	}
	ready.set("node", "")
	if w := getAdmin(h, "/readyz", "127.0.0.1:1"); w.Code != 200 || !strings.Contains(w.Body.String(), `"ready":true`) {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	looked["disk"] = "nearly full"
	if w := getAdmin(h, "/readyz", "127.0.0.1:1"); w.Code != 503 || !strings.Contains(w.Body.String(), "nearly full") {
		t.Errorf("full disk: %d %s", w.Code, w.Body)
	}
	for _, tt := range []struct {
		path, peer string
		code       int
		body       string
	}{
		{"/healthz", "192.0.2.1:1", 200, "ok"},
		{"/metrics", "192.0.2.1:1", 200, "edged_node_up 1"},
		{"/debug/pprof/", "[::1]:1", 200, "goroutine"},
		{"/debug/pprof/", "192.0.2.1:1", 404, ""},
		{"/debug/pprof/profile", "192.0.2.1:1", 404, ""},
		{"/debug/pprof/cmdline", "192.0.2.1:1", 404, ""},
		{"/other", "127.0.0.1:1", 404, ""},
	} {
		if w := getAdmin(h, tt.path, tt.peer); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s from %s: %d %.80s", tt.path, tt.peer, w.Code, w.Body)
		}
	}
}
