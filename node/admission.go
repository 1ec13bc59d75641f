package node

import (
	"time"

	"edged/router/table"
)

// Admission is what bounds invocations and clients besides MaxInflight and MaxQueue.
type Admission struct {
	// MaxWorkerInflight and MaxTenantInflight are how many of the places one worker and one tenant may hold; each may have the
	// same share of MaxQueue and MaxStreams. 0 means three quarters and seven eighths: places that are held cannot be taken
	// back, so some are kept for the others.
	MaxWorkerInflight, MaxTenantInflight int
	MaxStreams                           int           // responses that stream for more than a second, 0 means 4 * MaxInflight
	QueueTimeout                         time.Duration // how long an invocation may wait, 0 means 5 s
}

func (a *Admission) defaults(inflight int, bad func(string, ...any)) {
	if a.MaxWorkerInflight == 0 {
		a.MaxWorkerInflight = inflight - inflight/4
	}
	if a.MaxTenantInflight == 0 {
		a.MaxTenantInflight = max(a.MaxWorkerInflight, inflight-inflight/8)
	}
	if a.MaxStreams == 0 {
		a.MaxStreams = 4 * inflight
	}
	if a.QueueTimeout == 0 {
		a.QueueTimeout = 5 * time.Second
	}
	if a.MaxWorkerInflight < 0 || a.MaxTenantInflight < 0 || a.MaxStreams < 0 || a.QueueTimeout < 0 {
		bad("--max-inflight-per-worker, --max-inflight-per-tenant, --max-streams and --queue-timeout cannot be negative")
	}
}

// tenants keeps what the workers of a tenant hold together, for as long as it has any here. One goroutine.
type tenants map[string]*tenant

type tenant struct {
	party   *table.Party
	workers int
}

// join returns the party of a worker that is new here.
func (t tenants) join(name string) *table.Party {
	if t[name] == nil {
		t[name] = &tenant{party: new(table.Party)}
	}
	t[name].workers++
	return &table.Party{Tenant: t[name].party}
}

// leave is told of a worker that is gone. What still runs of it goes on counting for its tenant.
func (t tenants) leave(name string) {
	if of := t[name]; of != nil {
		if of.workers--; of.workers == 0 {
			delete(t, name)
		}
	}
}
