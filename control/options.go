package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"edged/control/api"
	"edged/control/artifact"
	"edged/control/operator"
	"edged/control/plan"
	"edged/internal/disk"
	"edged/internal/trace"
)

// Options is what the control room needs. Open copies it, fills the defaults and reports every fault at once.
type Options struct {
	Dir            string // required: the data directory; control keeps its files below it and control.token in it
	NodeID         string // "" means "local"; the permanent identity of this node in the control log, which it can never change
	ControlOrigin  string // required: the public origin, like "https://127.0.0.1:8081", without a path or trailing slash
	EndpointDomain string // "" means endpoints cannot be assigned; addresses are made below it
	// Zones names the DNS zones whose names may be claimed, each for one tenant or, with Tenant "", for all. Zone "*"
	// is every name. nil means no custom domain can be claimed.
	Zones []Zone
	// ArtifactOrigins are exact https origins, private ones allowed, that artifact bytes may come from.
	ArtifactOrigins []string

	// ArtifactCredentials are what those origins are asked with; no other origin ever sees one.
	ArtifactCredentials []artifact.Credential
	MaxHeldBytes        int64 // 0 means 16 GiB: of artifacts that one tenant may hold

	MaxRequestBytes  int64         // 0 means 8 MiB: 64 var strings of 8192 characters fit however they are escaped
	MaxPageSize      int           // 0 means 100
	ReplayWindow     time.Duration // 0 means 24 h; whole seconds
	MaxOperations    int           // 0 means 8: how many Operations of a kind the runner works on at once, half for one tenant
	InspectTimeout   time.Duration // 0 means 30 s
	SweepEvery       time.Duration // 0 means 1 min
	PlanWait         time.Duration // 0 means 10 s: how long a mutation waits for its plan to be in use before it answers
	SnapshotCommands uint64        // 0 means 8192 commands between snapshots of the state
	RequestRate      int           // 0 means 10,000: requests per second of one principal; twice as many at once
	TransferLife     time.Duration // 0 means 1 h: how long an Operation that has not begun keeps private inputs before it asks for them again

	// Inspect evaluates a module graph without env, bindings and network and returns the handlers that its default
	// export has, in the order fetch, scheduled, queue. Its named errors (module_not_found …) reach the caller of the
	// API. nil refuses every version with code.
	Inspect func(ctx context.Context, in Inspection) (exported []string, err error)
	// OnPlan is called, one call at a time, with what each plan changes in the one before, the first time in LastPlan; it returns
	// when the plan is in use. nil ignores plans.
	OnPlan func(*plan.Delta)
	// InUse reports whether invocations of a version are still running. nil means none ever are.
	InUse func(versionUID string) bool
	// Retire returns when every context of the versions has physically ended; it is called while a deployment is being
	// deleted, after a plan without it is in use. It may be called again with the same versions. nil returns at once.
	Retire func(ctx context.Context, versionUIDs []string) error

	// Detach returns when no delivery of a queue consumer runs any more, or what runs is owed by its queue again; it is called while
	// the consumer is being deleted, after a plan without it is in use. It may be called again. nil returns at once.
	Detach func(ctx context.Context, consumerUID, queueUID string) error

	// Stores are the stores of this node by kind: kv, objects, sql and queue. Forms of a kind that is absent are not supported.
	Stores map[string]Store
	// Migrate applies a migration set to a database, file by file, each with its entry in the database's ledger (sql §8.1). It may
	// be repeated after a crash at any instant and goes on where the ledger ends; it is called for one database at a time. Errors are
	// named as in sql §8.2; one of code Invalid without a name speaks of a file that is not what the set says. nil, or no store of the
	// kind sql: migrations cannot be applied, and their Form is not supported.
	Migrate func(ctx context.Context, m Migration) (Migrated, error)
	// ServiceBindings says that workers can call each other here; otherwise a version with service bindings is refused.
	ServiceBindings bool

	// FacadeSet identifies what this program offers to workers; a new version is sealed with it (worker-version §9). FacadeSets are
	// the others that it still carries. A version of any other set is not ready and cannot be selected, and nothing seals it
	// anew. "" judges no version by its set.
	FacadeSet  string
	FacadeSets []string

	// Fleet connects this room with other voters of one log. nil: this node is the only one.
	Fleet *FleetOptions

	// Profile are limits of other rooms, for the documentation that discovery leads to.
	Profile []api.ProfileRow
	// BackupFiles are files of the data directory that belong into a backup, sealed, as slash-separated paths below tls/.
	BackupFiles []string
	// Rooms are the operators' calls of other rooms; "control" and "fleet" are taken.
	Rooms []operator.Room

	Space   *disk.Space   // asked before anything new is accepted; nil means that there is room
	Tracer  *trace.Tracer // of requests that other members hand on; nil traces nothing
	Log     *slog.Logger  // nil discards
	Metrics *Metrics      // nil counts into the void
}

// Zone is a DNS zone whose names may be claimed as custom domains.
type Zone struct {
	Name   string // canonical name, or "*"
	Tenant string // "" means every tenant
}

// Inspection is a module graph to evaluate. The slices belong to the caller of Inspect and must not be changed.
type Inspection struct {
	Tenant     string
	Entrypoint string
	Handlers   []string // as declared
	Modules    []Module
}

// Module is one file of a bundle.
type Module struct {
	Path, MediaType string
	Bytes           []byte
}

func (o Options) withDefaults() (Options, error) {
	var faults []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	need(o.Dir != "", "control: a data directory is needed")
	u, err := url.Parse(o.ControlOrigin)
	need(err == nil && u.Scheme == "https" && u.Host != "" && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil,
		"control: control origin %q is not an https origin", o.ControlOrigin)
	need(o.Fleet.check(o.NodeID) == nil, "%v", o.Fleet.check(o.NodeID))
	if o.NodeID == "" {
		o.NodeID = "local"
	}
	o.EndpointDomain = strings.ToLower(strings.TrimSuffix(o.EndpointDomain, "."))
	orInt := func(p *int, name string, def int) {
		need(*p >= 0, "control: %s is negative", name)
		if *p == 0 {
			*p = def
		}
	}
	orTime := func(p *time.Duration, name string, def time.Duration) {
		need(*p >= 0, "control: %s is negative", name)
		if *p == 0 {
			*p = def
		}
	}
	need(o.MaxHeldBytes >= 0, "control: MaxHeldBytes is negative")
	if o.MaxHeldBytes == 0 {
		o.MaxHeldBytes = 16 << 30
	}
	need(o.MaxRequestBytes >= 0, "control: MaxRequestBytes is negative")
	if o.MaxRequestBytes == 0 {
		o.MaxRequestBytes = 8 << 20
	}
	orInt(&o.MaxPageSize, "MaxPageSize", 100)
	orInt(&o.MaxOperations, "MaxOperations", 8)
	orInt(&o.RequestRate, "RequestRate", 10_000)
	orTime(&o.ReplayWindow, "ReplayWindow", 24*time.Hour)
	need(o.ReplayWindow%time.Second == 0, "control: ReplayWindow is not a whole number of seconds")
	orTime(&o.InspectTimeout, "InspectTimeout", 30*time.Second)
	orTime(&o.SweepEvery, "SweepEvery", time.Minute)
	orTime(&o.PlanWait, "PlanWait", 10*time.Second)
	orTime(&o.TransferLife, "TransferLife", time.Hour)
	if o.SnapshotCommands == 0 {
		o.SnapshotCommands = 8192
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("room", "control")
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return o, errors.Join(faults...)
}
