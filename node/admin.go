package node

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"edged/internal/fault"
)

// readiness collects why traffic should not be sent here. Safe for concurrent use.
type readiness struct {
	mu      sync.Mutex
	reasons map[string]string // by subject; empty means ready
}

// newReadiness starts not ready: the node says so itself once it serves.
func newReadiness() *readiness {
	return &readiness{reasons: map[string]string{"node": "starting"}}
}

// set gives or (with "") takes away the reason of one subject.
func (r *readiness) set(subject, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason == "" {
		delete(r.reasons, subject)
	} else {
		r.reasons[subject] = reason
	}
}

func (r *readiness) get() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]string, len(r.reasons))
	for k, v := range r.reasons {
		out[k] = v
	}
	return out
}

// problems returns the readiness reasons that are looked up at each question.
func (n *Node) problems() map[string]string {
	out := map[string]string{}
	if err := n.space.Check(); err != nil {
		out["disk"] = fault.Detail(err)
	}
	if why := n.memory.problem(); why != "" {
		out["memory"] = why
	}
	if n.control != nil {
		if err := n.control.Halted(); err != nil {
			out["control"] = fault.Detail(err)
		}
	}
	n.fleetProblems(out)
	n.certificateProblem(out)
	return out
}

// adminHandler serves the admin listener (node-surface §5). check adds reasons that are looked up, not set; status answers /status, to who
// is on this machine.
func adminHandler(ready *readiness, check func() map[string]string, status http.HandlerFunc, reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		reasons := ready.get()
		for k, v := range check() {
			reasons[k] = v
		}
		w.Header().Set("Content-Type", "application/json")
		if len(reasons) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ready": len(reasons) == 0, "reasons": reasons})
	})
	mux.HandleFunc("GET /status", thisMachineOnly(status))
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4}))
	mux.Handle("/debug/pprof/", loopbackOnly(http.HandlerFunc(pprof.Index)))
	mux.Handle("/debug/pprof/profile", loopbackOnly(http.HandlerFunc(pprof.Profile)))
	mux.Handle("/debug/pprof/symbol", loopbackOnly(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("/debug/pprof/trace", loopbackOnly(http.HandlerFunc(pprof.Trace)))
	return mux
}

// loopbackOnly answers 404 to peers that are not on this machine. The command line is not served at all: flags may
// name files.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		ip, perr := netip.ParseAddr(host)
		if err != nil || perr != nil || !ip.Unmap().IsLoopback() {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
