package node

import (
	"time"

	"golang.org/x/sys/unix"

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

	MaxConns int // open public connections, 0 means 32768, or what the limit of open files leaves beside the stores
	// MinClientRate is the bytes per second that a client has to send or take when it is waited for, 0 means 240.
	MinClientRate  int
	MaxClientConns int // of one address that is no trusted proxy, 0 means half of them
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
	if a.MaxConns == 0 {
		a.MaxConns = DefaultConns(openFiles())
	}
	if a.MaxClientConns == 0 {
		a.MaxClientConns = a.MaxConns - a.MaxConns/2
	}
	if a.MinClientRate == 0 {
		a.MinClientRate = 240
	}
	if a.MinClientRate < 0 {
		bad("--min-client-rate cannot be negative; 1 asks for next to nothing")
	}
	if a.MaxConns < 0 || a.MaxClientConns < 0 {
		bad("--max-connections and --max-connections-per-client cannot be negative")
	}
	if a.MaxWorkerInflight < 0 || a.MaxTenantInflight < 0 || a.MaxStreams < 0 || a.QueueTimeout < 0 {
		bad("--max-inflight-per-worker, --max-inflight-per-tenant, --max-streams and --queue-timeout cannot be negative")
	}
}

// Descriptors that are not for clients: of the stores, listeners and images, and what fetch and the peers connect to.
const (
	leastOwnFiles = 512
	leastConns    = 64
)

// MostConns is how many public connections a node takes by default where files are no limit.
const MostConns = 32768

// DefaultConns is how many public connections a node takes by default where so many files may be open: a quarter is kept for
// the rest, and 512 at least. 0 stands for a limit that cannot be read.
func DefaultConns(files int) int {
	if files <= 0 {
		return MostConns
	}
	return max(leastConns, min(MostConns, files-max(files/4, leastOwnFiles)))
}

// openFiles is this process's limit of open files; the Go runtime has raised it as far as it may.
func openFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(max(l.Cur, l.Max), 1<<30))
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
