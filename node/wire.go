package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"edged/control"
	"edged/control/api"
	"edged/control/artifact"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/router/table"
	"edged/sandbox"
)

var _ table.Handler = (*sandbox.Version)(nil)

// controlOptions connects the control room with the sandbox and the versions.
func (n *Node) controlOptions() (control.Options, error) {
	var credentials []artifact.Credential
	if n.opt.ArtifactCredentials != "" {
		var err error
		if credentials, err = artifact.ReadCredentials(n.opt.ArtifactCredentials); err != nil {
			return control.Options{}, err
		}
	}
	return control.Options{
		ArtifactCredentials: credentials,
		MaxHeldBytes:        n.opt.MaxHeldBytes,
		RequestRate:         n.opt.ControlRate,
		Profile:             n.profile(),
		Dir:                 n.opt.DataDir,
		NodeID:              n.id,
		ControlOrigin:       n.opt.ControlOrigin,
		EndpointDomain:      n.opt.EndpointDomain,
		Zones:               n.opt.zones(),
		ArtifactOrigins:     n.opt.ArtifactOrigins,
		Inspect:             n.inspect,
		OnPlan:              n.onPlan,
		Stores:              n.stores.forControl(),
		Migrate:             n.stores.migrate,
		ServiceBindings:     true,
		Detach:              n.detach,
		Space:               n.space,
		InUse:               n.versions.inUse,
		Retire:              n.versions.retire,
		BackupFiles:         backupFiles,
		Rooms:               n.operatorRooms(),
		FacadeSet:           sandbox.FacadeSet(),
		Tracer:              n.tracer,
		Log:                 n.log,
		Metrics:             control.NewMetrics(n.registry),
	}, nil
}

// profile is what the support profile says of the sandbox and the public listeners.
func (n *Node) profile() []api.ProfileRow {
	o := &n.opt
	return []api.ProfileRow{
		{Name: "CPU of one invocation", Value: o.MaxCPU.String()},
		{Name: "time to a response head", Value: o.MaxWall.String()},
		{Name: "time of event handlers, and of `waitUntil` tasks", Value: o.MaxWallEvents.String()},
		{Name: "memory of one sandbox", Value: fmt.Sprint(o.MaxMemory, " bytes")},
		{Name: "request body", Value: fmt.Sprint(o.MaxRequestBody, " bytes")},
		{Name: "invocations at work, and waiting", Value: fmt.Sprint(o.MaxInflight, ", ", o.MaxQueue)},
		{Name: "isolation", Value: o.Isolation},
		{Name: "drain of a version that a switch dropped", Value: drainLimit.String()},
		{Name: "grace of running work when its deployment is deleted", Value: deleteGrace.String()},
		{Name: "target for the convergence of EdgeKVNamespace", Value: n.convergence()},
	}
}

// convergence is what the profile promises of a KV write and the nodes that it was not made on.
func (n *Node) convergence() string {
	if n.fleet == nil {
		return "0 s, this node is the only place"
	}
	return "1 s to every member that is connected; one that is cut off has it when it is back"
}

// onPlan takes the next plan of the control room into use. It is called by one goroutine at a time.
func (n *Node) onPlan(d *plan.Delta) {
	n.takePlan(d)
	n.hasPlan()
}

// hasPlan notes that the plan in use is one that this process was given, or that nothing has changed since the last one. Its callers are one
// goroutine at a time.
func (n *Node) hasPlan() {
	select {
	case <-n.planned:
	default:
		if n.fleet != nil && n.control != nil {
			n.noteLog()
		}
		close(n.planned)
	}
}

// keyPatience bounds how long a plan waits for the keys of its secrets.
const keyPatience = 10 * time.Second

// takePlan hands a plan on to the members that follow this one, if it makes the plan itself, and takes it into use as far as the gate lets
// it through.
func (n *Node) takePlan(d *plan.Delta) {
	f := n.fleet
	if f == nil {
		n.usePlan(d)
		return
	}
	if n.control != nil {
		if err := f.server.Publish(f.peers.Epoch(), false, d); err != nil {
			n.log.Error("the plan is not handed on to other members", "err", err, "do", fault.ReportBug)
		}
	} else {
		n.follower.keys.Note(d)
	}
	if n.lacks(d) { // else what is sealed with them would not be tried again before the next plan
		ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
		if err := n.takeKeys(ctx); err != nil {
			n.log.Warn("keys of secrets are missing", "err", err)
		}
		cancel()
	}
	f.gate.Use(d)
	if n.control != nil {
		f.reports.Serves(f.peers.Epoch(), d.Index)
	}
}

func (n *Node) usePlan(d *plan.Delta) {
	n.useMembers(d)
	n.applyData(d)
	n.versions.apply(d)
	n.applyConsumers(d)
	n.applyTriggers(d)
}

func (n *Node) inspect(ctx context.Context, in control.Inspection) ([]string, error) {
	graph := sandbox.Graph{Entrypoint: in.Entrypoint, Modules: make([]sandbox.Module, len(in.Modules))}
	for i, m := range in.Modules {
		graph.Modules[i] = sandbox.Module(m)
	}
	return n.box.Inspect(ctx, graph, in.Handlers)
}

// openBlob opens the bytes of a digest that the plan names.
func (n *Node) openBlob(sha256 string) (io.ReadCloser, error) {
	digest, ok := artifact.ParseDigest(sha256)
	if !ok {
		return nil, fault.Newf(fault.Internal, "node.openBlob", "%q is not a digest", sha256)
	}
	blob, err := n.artifacts.Open(digest)
	if err != nil {
		return nil, err
	}
	return blob.File, nil // an *os.File, which the router sends without a copy
}

// consoleTo sends what workers log to the node's log, and to watch. Its rate was limited by the sandbox.
func consoleTo(log *slog.Logger, watch func(sandbox.Entry)) func(sandbox.Entry) {
	log = log.With("room", "console")
	return func(e sandbox.Entry) {
		watch(e)
		level := slog.LevelInfo
		switch e.Level {
		case sandbox.LevelDebug:
			level = slog.LevelDebug
		case sandbox.LevelWarn:
			level = slog.LevelWarn
		case sandbox.LevelError, sandbox.LevelUncaught:
			level = slog.LevelError
		}
		log.LogAttrs(context.Background(), level, "worker says", slog.String("worker", e.Worker), slog.String("version", e.Version),
			slog.String("console", e.Level.String()), slog.String("text", e.Text), slog.Uint64("dropped", e.Dropped))
	}
}
