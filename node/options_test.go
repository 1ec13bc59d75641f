package node

import (
	"strings"
	"testing"

	"edged/internal/trace"
)

func good() Options {
	return Options{DataDir: "d", HTTP: "127.0.0.1:0", HTTPS: "127.0.0.1:0", Control: "127.0.0.1:0", Admin: "127.0.0.1:0"}
}

// node-surface §1: wrong configuration lists all faults, nothing started.
func TestOptionsListAllFaults(t *testing.T) {
	if _, err := good().withDefaults(); err != nil {
		t.Fatalf("defaults: %v", err)
	}
	bad := Options{HTTP: "nowhere", Control: "", EndpointDomain: "Bad_Name", ControlOrigin: "http://x",
		CustomDomainZones: []string{"a b"}, ArtifactOrigins: []string{"https://x/path"}, TrustedProxies: []string{"me"},
		MaxCPU: -1, MaxMemory: 1, Isolation: "none", Role: "edge", Traces: TraceOptions{Sample: 2, Settings: trace.Settings{Endpoint: "x"}}}
	_, err := bad.withDefaults()
	for _, want := range []string{"--data-dir", "--http", "--control:", "--endpoint-domain", "--control-origin", "--custom-domain-zones",
		"--artifact-origins", "--trusted-proxies", "--max-cpu", "--max-memory", "--isolation", "--role", "--trace-sample", "--otlp-endpoint"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("faults lack %s:\n%v", want, err)
		}
	}
}

// node-surface §2: --max-inflight comes from cores and memory.
func TestDefaultInflight(t *testing.T) {
	for _, tt := range []struct {
		cores           int
		memory, sandbox int64
		want            int
	}{{2, 24 << 30, 128 << 20, 128}, {2, 4 << 30, 128 << 20, 32}, {8, 1 << 30, 512 << 20, 8}, {4, 0, 128 << 20, 256}} {
		if got := defaultInflight(tt.cores, tt.memory, tt.sandbox); got != tt.want {
			t.Errorf("%d cores, %d MiB, %d MiB each: %d, want %d", tt.cores, tt.memory>>20, tt.sandbox>>20, got, tt.want)
		}
	}
}

// node-surface §2: every name may be claimed on a node that only loopback reaches, none otherwise.
func TestDefaultZones(t *testing.T) {
	o, _ := good().withDefaults()
	if z := o.zones(); len(z) != 1 || z[0].Name != "*" {
		t.Errorf("loopback: %v, want every name", z)
	}
	o.HTTPS = "0.0.0.0:8443"
	if z := o.zones(); z != nil {
		t.Errorf("reachable: %v, want none", z)
	}
	o.CustomDomainZones = []string{"Example.Test.=acme", "open.test"}
	if z := o.zones(); len(z) != 2 || z[0].Name != "example.test" || z[0].Tenant != "acme" || z[1].Tenant != "" {
		t.Errorf("named: %v", z)
	}
}

// Some places are kept for other workers and tenants, and some files for the stores.
func TestAdmissionDefaults(t *testing.T) {
	for inflight, want := range map[int][2]int{1: {1, 1}, 2: {2, 2}, 8: {6, 7}, 128: {96, 112}} {
		var a Admission
		a.defaults(inflight, t.Errorf)
		if got := [2]int{a.MaxWorkerInflight, a.MaxTenantInflight}; got != want || a.MaxStreams != 4*inflight || a.MaxConns < leastConns {
			t.Errorf("%d places: %+v, want %v", inflight, a, want)
		}
	}
	for files, want := range map[int]int{0: MostConns, 64: leastConns, 1024: 512, 4096: 3072, 20_000: 15_000, 1 << 20: MostConns} {
		if got := DefaultConns(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
	o := good()
	o.Admission = Admission{MaxConns: -1, QueueTimeout: -1, MinClientRate: -1}
	_, err := o.withDefaults()
	for _, want := range []string{"--max-connections", "--queue-timeout", "--min-client-rate"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("faults lack %s: %v", want, err)
		}
	}
}

// What a tenant's workers hold counts together for as long as it has any, and a new picture does not forget it.
func TestTenantsShareAParty(t *testing.T) {
	s := tenants{}
	a, b, other := s.join("acme"), s.join("acme"), s.join("other")
	if a.Tenant == nil || a.Tenant != b.Tenant || a.Tenant == other.Tenant {
		t.Error("workers of a tenant have not one party")
	}
	s.leave("acme")
	if c := s.join("acme"); c.Tenant != a.Tenant {
		t.Error("the party went with one of its workers")
	}
	s.leave("acme")
	s.leave("acme")
	s.leave("nobody")
	if len(s) != 1 {
		t.Errorf("%d tenants are kept", len(s))
	}
}
