package control

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

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
	hasLog     bool                       // there was something in it at the start; set by Open
	startRaft  func() (*raft.Raft, error) // restores the last snapshot and starts this voter
	raft       atomic.Pointer[raft.Raft]  // nil before Run
	questions  questions                  // to raft
	saved      *plan.Store
	last       *plan.Plan   // what saved had at the start; the publisher's once Run was called
	blank      bool         // last was empty at the start
	inner      http.Handler // what a node that leads answers
	handler    http.Handler
	hands      *Hands // what this node does for the leader, itself or another

	ready     chan struct{} // closed when the state has caught up
	readyOnce func()        // closes ready
	leads     leads
	leading   atomic.Uint64 // the log's term in which this node leads with a current state; 0 in none
	rounds    rounds        // by which it makes sure that it still leads
	inspect   turns         // as many as modules may be held in memory for
	plans     progress
	late      lateBundles
	reigns    reigns
	endings   endings
	audit     *recorder
	used      uses

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
	c.readyOnce = sync.OnceFunc(func() { close(c.ready) })
	c.inspect.init(inspectAtOnce)
	c.hands = NewHands(HandsOptions{
		Stores: opt.Stores, Migrate: opt.Migrate, InUse: opt.InUse, Retire: opt.Retire, Detach: opt.Detach, Reach: c.reachPlan,
		Caller: c.callingVoter, Open: c.blob,
	})
	c.state = state.New(c.drivers)
	c.endings.init()
	c.reigns.ended = make(chan struct{})
	if c.secrets, err = openSecrets(opt.Dir); err != nil {
		return nil, err
	}
	if c.audit, err = openRecorder(filepath.Join(dir, "audit"), opt.Log); err != nil {
		return nil, err
	}
	c.machine = newMachine(&c.opt, c.state, &c.endings, c.audit)
	if opt.Fleet != nil {
		c.machine.bundles = newBundleQueue()
	}
	held := artifact.Options{
		Dir: filepath.Join(opt.Dir, "artifacts"), Origin: opt.ControlOrigin, Origins: opt.ArtifactOrigins, Credentials: opt.ArtifactCredentials,
		MaxHeldBytes: opt.MaxHeldBytes, Space: opt.Space, Log: opt.Log,
	}
	if opt.Fleet != nil {
		held.Siblings, held.Spread, held.Elsewhere = opt.Fleet.Origins, c.spreadOne, c.findElsewhere
	}
	c.artifacts, err = artifact.Open(held)
	if err != nil {
		return nil, errors.Join(err, c.audit.close())
	}
	if err := c.openPlan(filepath.Join(dir, "plan")); err != nil {
		return nil, errors.Join(err, c.artifacts.Close(), c.audit.close())
	}
	if c.inner, err = c.newHandler(); err == nil {
		c.handler = c.front(c.inner)
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
		c.opt.Log.Error("the last plan cannot be read; serving waits for the control state", "err", err,
			"do", "nothing, if the control room comes up and the line does not come again; else check the disk of the data directory: free space, and the kernel's log for errors")
		c.last = plan.New()
		return nil // of what was served something may still be due
	}
	c.blank = c.last.Delta().Empty()
	return nil
}

// Run starts this node as a voter of its log, lets the state catch up, and does the room's work until ctx is done and all of it has
// ended. It is called once.
func (c *Control) Run(ctx context.Context) error {
	r, err := c.startRaft()
	if err != nil {
		return err
	}
	c.raft.Store(r)
	ctx, stop := context.WithCancel(ctx)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	defer stop()
	jobs.Go(func() { c.publish(ctx) })
	jobs.Go(func() { c.tidy(ctx) })
	if c.opt.Fleet != nil {
		jobs.Go(func() { c.follow(ctx) })
		jobs.Go(func() { c.keepBundles(ctx) })
		jobs.Go(func() { c.reigns.watch(ctx, r) })
	}
	return c.lead(ctx)
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

// Knows reports whether a Resource with this UID is in the state, as far as this node has it.
func (c *Control) Knows(uid string) bool { return c.state.Resource(uid) != nil }

// Handler answers everything on the control listener.
func (c *Control) Handler() http.Handler { return c.handler }

// Artifacts gives the node the bytes of plans by their digest.
func (c *Control) Artifacts() *artifact.Store { return c.artifacts }

// Close frees what Open took. It is called after Run returned.
func (c *Control) Close() error {
	var err error
	if r := c.raft.Load(); r != nil {
		err = c.questions.stop(r)
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
