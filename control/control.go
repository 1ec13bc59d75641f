package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"edged/control/api"
	"edged/control/artifact"
	"edged/control/form"
	"edged/control/plan"
	"edged/control/raftlog"
	"edged/control/state"
	"edged/internal/disk"
	"edged/internal/fault"
)

// format is the version of everything below the room's directory.
const format = 1

// inspectAtOnce bounds how many bundles are evaluated at the same time: each holds its modules in memory and takes a core.
const inspectAtOnce = 2

// Control is the control room of one node. All methods but Run and Close are safe for concurrent use.
type Control struct {
	opt Options
	// settleWait bounds the wait for the end of an accepted Operation; set by Open.
	settleWait time.Duration
	drivers    form.Table
	state      *state.State
	machine    *machine
	secrets    *secrets
	artifacts  *artifact.Store
	log        *raftlog.Store
	startRaft  func() error // restores the last snapshot and starts the one voter
	raft       *raft.Raft   // nil before Run
	saved      *plan.Store
	last       *plan.Plan // what saved had at the start; the publisher's once Run was called
	handler    http.Handler

	ready   chan struct{} // closed when the state has caught up
	inspect turns         // as many as modules may be held in memory for
	plans   published
	endings endings
	audit   *recorder
	used    uses

	mu      sync.Mutex      // guards the field below
	working map[string]work // Operations in the runner's hands
}

// Open opens or makes the control state in opt.Dir, which no other process may have open. The state is read and catches up with
// its log in Run; until then Handler answers 503 for all that needs it. A newer format is refused with a Conflict.
func Open(opt Options) (*Control, error) { return open(opt, form.Builtin()) }

func open(opt Options, drivers form.Table) (*Control, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "control.Open", "%v", err)
	}
	dir := filepath.Join(opt.Dir, "control")
	if err := disk.Prepare(dir); err != nil {
		return nil, err
	}
	if _, err := disk.CheckFormat(dir, "control", format); err != nil {
		return nil, err
	}
	c := &Control{opt: opt, settleWait: defaultSettleWait, drivers: drivers, ready: make(chan struct{}), working: map[string]work{}}
	c.inspect.init(inspectAtOnce)
	c.plans.init()
	c.state = state.New(c.drivers)
	c.endings.init()
	if c.secrets, err = openSecrets(opt.Dir); err != nil {
		return nil, err
	}
	if c.audit, err = openRecorder(filepath.Join(dir, "audit"), opt.Log); err != nil {
		return nil, err
	}
	c.machine = newMachine(&c.opt, c.state, &c.endings, c.audit)
	c.artifacts, err = artifact.Open(artifact.Options{
		Dir: filepath.Join(opt.Dir, "artifacts"), Origin: opt.ControlOrigin, Origins: opt.ArtifactOrigins, Credentials: opt.ArtifactCredentials,
		MaxHeldBytes: opt.MaxHeldBytes, Space: opt.Space, Log: opt.Log,
	})
	if err != nil {
		return nil, errors.Join(err, c.audit.close())
	}
	if err := c.openPlan(filepath.Join(dir, "plan")); err != nil {
		return nil, errors.Join(err, c.artifacts.Close(), c.audit.close())
	}
	if c.handler, err = c.newHandler(); err == nil {
		err = c.openLog(dir)
	}
	if err != nil {
		return nil, errors.Join(err, c.saved.Close(), c.artifacts.Close(), c.audit.close())
	}
	return c, nil
}

// openPlan reads the last plan. One that cannot be read is told and made anew from the state: serving then waits for that.
func (c *Control) openPlan(dir string) (err error) {
	if c.saved, err = plan.OpenStore(dir, c.opt.Log); err != nil {
		return err
	}
	if c.last, err = c.saved.Load(); err != nil {
		c.opt.Log.Error("the last plan cannot be read; serving waits for the control state", "err", err)
		c.last = plan.New()
	}
	return nil
}

// openLog opens raft's files and finds out whether this node is the voter that they know. Nothing of the state is read here: that
// takes long for a large one, and serving does not wait for it.
func (c *Control) openLog(dir string) error {
	log, err := raftlog.Open(raftlog.Options{Dir: filepath.Join(dir, "log"), Log: c.opt.Log})
	if err != nil {
		return err
	}
	fail := func(what string, err error) error {
		return errors.Join(fault.Wrap(fault.Unavailable, "control.Open", fmt.Errorf("%s: %w", what, err)), log.Close())
	}
	hl := raftLogger(c.opt.Log)
	snaps, err := raftlog.OpenSnapshots(filepath.Join(dir, "snapshots"), 2, hl)
	if err != nil {
		return fail("open snapshots", err)
	}
	conf := raftConfig(c.opt.NodeID, c.opt.SnapshotCommands, hl)
	addr, transport := raft.NewInmemTransport(raft.ServerAddress(c.opt.NodeID))
	known, err := raft.HasExistingState(log, log, snaps)
	if err != nil {
		return fail("read log", err)
	}
	if !known {
		voters := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: addr}}}
		if err := raft.BootstrapCluster(conf, log, log, snaps, transport, voters); err != nil {
			return fail("found log", err)
		}
	}
	reading := *conf
	reading.NoSnapshotRestoreOnStart = true
	voters, err := raft.GetConfiguration(&reading, c.machine, log, log, snaps, transport)
	if err != nil {
		return fail("read voters", err)
	}
	// A log of which this node is no voter would wait for an election for ever.
	if !slices.ContainsFunc(voters.Servers, func(s raft.Server) bool { return s.ID == conf.LocalID }) {
		return errors.Join(fault.Newf(fault.Conflict, "control.Open", "the control log in %s belongs to another node than %s", c.opt.Dir, conf.LocalID), log.Close())
	}
	c.log = log
	c.startRaft = func() (err error) {
		c.raft, err = raft.NewRaft(conf, c.machine, log, log, snaps, transport)
		return fault.Wrap(fault.Unavailable, "control.Run", err)
	}
	return nil
}

// raftConfig has short timeouts: a lone voter hears from nobody, so that waiting only delays its election.
func raftConfig(id string, snapshotCommands uint64, log hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(id)
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	conf.CommitTimeout = 5 * time.Millisecond
	conf.SnapshotThreshold, conf.TrailingLogs = snapshotCommands, snapshotCommands
	conf.SnapshotInterval = 10 * time.Second // with the threshold it bounds what a restart has to apply again
	conf.Logger = log
	conf.NoLegacyTelemetry = true
	return conf
}

// Run reads the state, elects this node, lets the state catch up, and does the room's work until ctx is done and all of it has ended. It
// is called once.
func (c *Control) Run(ctx context.Context) error {
	if err := c.catchUp(ctx); err != nil {
		return err
	}
	var jobs sync.WaitGroup
	defer jobs.Wait()
	jobs.Go(func() { c.publish(ctx) })
	jobs.Go(func() { c.runOperations(ctx) })
	jobs.Go(func() { c.sweep(ctx) })
	jobs.Go(func() { c.resumeRotation(ctx) })
	close(c.ready)
	<-ctx.Done()
	return context.Cause(ctx)
}

// catchUp returns when every acknowledged command is in the state and the state is founded.
func (c *Control) catchUp(ctx context.Context) error {
	start := time.Now()
	if err := c.startRaft(); err != nil {
		return err
	}
	for c.raft.State() != raft.Leader {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.raft.LeaderCh():
		}
	}
	if err := c.raft.Barrier(time.Minute).Error(); err != nil {
		return fault.Wrap(fault.Unavailable, "control.Run", fmt.Errorf("catch up with the log: %w", err))
	}
	c.opt.Log.Info("control state is current", "index", c.raft.AppliedIndex(), "took", time.Since(start))
	if err := c.bootstrap(); err != nil {
		return err
	}
	return c.readySecrets()
}

// Started is closed once the room answers for its whole state.
func (c *Control) Started() <-chan struct{} { return c.ready }

// Ready reports whether the room answers for its whole state.
func (c *Control) Ready() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// Handler answers everything on the control listener.
func (c *Control) Handler() http.Handler { return c.handler }

// Artifacts gives the node the bytes of plans by their digest.
func (c *Control) Artifacts() *artifact.Store { return c.artifacts }

// Close frees what Open took. It is called after Run returned.
func (c *Control) Close() error {
	var err error
	if c.raft != nil {
		err = c.raft.Shutdown().Error()
	}
	return fault.Wrap(fault.Unavailable, "control.Close", errors.Join(err, c.log.Close(), c.saved.Close(), c.artifacts.Close(), c.audit.close()))
}

// LastPlan returns the plan that a node with this data directory served last, as what leads to it from an empty one. It is called
// before Run.
func (c *Control) LastPlan() *plan.Delta { return c.last.Delta() }

func (c *Control) newHandler() (http.Handler, error) {
	door, err := c.newDoor()
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		State: c.state, Drivers: c.drivers.Offered(c.opt.has), Origin: c.opt.ControlOrigin,
		MaxRequestBytes: c.opt.MaxRequestBytes, MaxPageSize: c.opt.MaxPageSize, ReplayWindow: c.opt.ReplayWindow,
		Ready: c.Ready, Mutate: c.mutate, Preview: c.preview, Replenish: c.replenish,
		Used: c.used.note, Refused: c.audit.refusal, RequestRate: c.opt.RequestRate, RequestBurst: 2 * c.opt.RequestRate, Operator: door,
		Artifacts: c.serveArtifacts, SidePath: artifact.SidePath, Profile: c.profile(), Log: c.opt.Log,
	}), nil
}

// profile gathers the limits and choices that the documentation shows.
func (c *Control) profile() api.Profile {
	return api.Profile{
		Settle: c.settleWait, TransferLife: c.opt.TransferLife, EndpointDomain: cmp.Or(c.opt.EndpointDomain, "none, endpoints cannot be assigned"),
		MaxInputs: state.MaxInputs, MaxManifestBytes: artifact.MaxManifestBytes, MaxFiles: artifact.MaxFiles,
		MaxBlobBytes: artifact.MaxBlobBytes, MaxBundleBytes: artifact.MaxBundleBytes, MaxHeldBytes: c.opt.MaxHeldBytes, Grace: artifact.Grace,
		Rows: c.opt.Profile,
	}
}

// serveArtifacts hands a request of a known caller to the side channel.
func (c *Control) serveArtifacts(w http.ResponseWriter, r *http.Request, a *state.Actor) {
	c.artifacts.Serve(w, r, artifact.Caller{Tenant: a.Tenant, MayWrite: a.Role != state.Reader})
}
