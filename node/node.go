package node

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/control"
	"edged/control/artifact"
	"edged/control/feed"
	"edged/control/plan"
	"edged/cron"
	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/life"
	"edged/internal/trace"
	"edged/node/accesslog"
	"edged/node/certs"
	"edged/node/machine"
	"edged/node/tail"
	"edged/router"
	"edged/sandbox"
	"edged/sandbox/outbound"
)

// Node is one edge node in this process. New takes what it needs, Run serves; use it once.
type Node struct {
	opt      Options
	log      *slog.Logger
	registry *prometheus.Registry
	ready    *readiness
	lock     *disk.Locked
	space    *disk.Space
	bound    map[string]net.Listener
	info     runInfo
	names    *certs.Names // leaves of the public listener
	hosts    *certs.Hosts // the leaf of the control listener

	operatorCerts *certs.Dir // nil without --tls-dir

	stores    stores
	tracer    *trace.Tracer // nil without --otlp-endpoint
	outbound  *outbound.Client
	box       *sandbox.Sandbox
	control   *control.Control                               // nil on a member of a fleet without the role
	follower  *follower                                      // what such a member has instead
	artifacts *artifact.Store                                // of either
	secrets   func(*plan.Version) (map[string]string, error) // of either
	feeds     *feed.Metrics
	fleet     *fleet // nil on a node that runs alone
	cron      *cron.Scheduler
	tails     *tail.Hub
	access    *accesslog.Log // nil without one
	router    *router.Router
	memory    memoryWatch
	versions  *versions
	consumers consumers
	id        string

	way     chan Way // capacity 1: how to give way to the process after this one
	handing atomic.Bool
	tasks   tasks // what runs besides requests of clients
	events  stage // ended first in a hand-over: what begins work by itself
	doors   stage // ended second: what this node is told to do

	stopLoading context.CancelFunc
	drainBy     time.Time     // when the drain is over; set by the first part to stop, read by those below it
	planned     chan struct{} // closed when a plan that this process was given is in use, or the last one was confirmed
}

// New checks the options, takes the data directory and the listeners, and opens every room. It starts nothing. Errors:
// Invalid for wrong options (all of them told), Conflict for a data directory that is in use or of a newer format,
// Unavailable for a directory or an address that cannot be had and for a program that was built without its engine.
func New(opt Options) (*Node, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fault.New(fault.Invalid, "node.New", err.Error())
	}
	n := &Node{opt: opt, log: opt.Log, registry: newRegistry(opt.Version), ready: newReadiness(), planned: make(chan struct{}),
		way: make(chan Way, 1), events: newStage(), doors: newStage()}
	n.feeds = feed.NewMetrics(n.registry)
	n.memory.show(n.registry)
	n.memory.read, n.memory.log = machine.System{}.Memory, n.log
	n.memory.shed, n.memory.tight = func() int { return n.box.Shed() }, func(on bool) { n.box.SetTight(on) }
	n.memory.shut = func(on bool) { n.router.SetShut(on) }
	steps := []func() error{n.openData, n.openListeners, n.openOutbound, n.openWatching, n.openSandbox}
	if opt.Await != nil { // another process has the directory: what needs none of it is made ready first
		steps = []func() error{n.openListeners, n.openOutbound, n.openWatching, n.openSandbox, opt.Await, n.openData}
	}
	steps = append(steps, n.openTracer, n.openCertificates, n.openFleet, n.openStores, n.openRouter, n.openCron, n.openPlan)
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, errors.Join(err, n.closeOpened())
		}
	}
	return n, nil
}

func (n *Node) openData() (err error) {
	dir := n.opt.DataDir
	if err := disk.Prepare(dir); err != nil {
		return err
	}
	if err = patiently(func() error { n.lock, err = disk.Lock(dir); return err }); err != nil {
		return err
	}
	if err := os.Remove(runPath(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, "node.run.json", err)
	}
	if _, err := disk.CheckFormat(dir, "node", formatVersion); err != nil {
		return err
	}
	if n.id, err = nodeID(dir); err != nil {
		return err
	}
	n.space = disk.NewSpace(disk.SpaceOptions{Dir: dir})
	n.showState()
	return n.emptyOutgoing()
}

// predecessorPatience is how long a start waits for what another process holds: one that was killed a moment ago lets go of
// its lock and its listeners when the kernel has taken it apart.
const predecessorPatience = 2 * time.Second

// patiently repeats take for a while.
func patiently(take func() error) error {
	for deadline := time.Now().Add(predecessorPatience); ; time.Sleep(20 * time.Millisecond) {
		if err := take(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (n *Node) openSandbox() (err error) {
	isolation, err := sandbox.ParseIsolation(n.opt.Isolation)
	if err != nil {
		return err
	}
	n.box, err = sandbox.New(sandbox.Options{
		CacheDir:       filepath.Join(n.opt.DataDir, "sandbox", "code"),
		ImageDir:       filepath.Join(n.opt.DataDir, "sandbox", "images"),
		MaxCPU:         n.opt.MaxCPU,
		MaxWall:        n.opt.MaxWall,
		MaxWallEvents:  n.opt.MaxWallEvents,
		MaxMemoryBytes: n.opt.MaxMemory,
		Isolation:      isolation,
		MaxRunning:     n.opt.Cores,
		MaxBrief:       max(0, runtime.GOMAXPROCS(0)-n.opt.Cores-1), // a thread is left to what is no guest
		Fetch:          n.outbound,
		Console:        consoleTo(n.log, n.tails.Console),
		Watch:          n.tails.Watch,
		Log:            n.log,
		Metrics:        sandbox.NewMetrics(n.registry),
	})
	return err
}

func (n *Node) openRouter() (err error) {
	proxies, err := parsePrefixes(n.opt.TrustedProxies)
	if err != nil {
		return err
	}
	diagnostics, err := parsePrefixes(n.opt.TrustedDiagnostics)
	if err != nil {
		return err
	}
	if diagnostics == nil {
		diagnostics = []netip.Prefix{}
	}
	n.router, err = router.New(router.Options{
		HTTP:                n.bound["http"],
		HTTPS:               n.bound["https"],
		GetCertificate:      n.names.GetCertificate,
		TrustedProxies:      proxies,
		Diagnostics:         diagnostics,
		MaxRequestBodyBytes: n.opt.MaxRequestBody,
		MaxInflight:         n.opt.MaxInflight,
		MaxWorkerInflight:   n.opt.MaxWorkerInflight,
		MaxTenantInflight:   n.opt.MaxTenantInflight,
		MaxQueue:            n.opt.MaxQueue,
		MaxStreams:          n.opt.MaxStreams,
		QueueTimeout:        n.opt.QueueTimeout,
		MaxConns:            n.opt.MaxConns,
		MinClientRate:       n.opt.MinClientRate,
		MaxClientConns:      n.opt.MaxClientConns,
		DrainTimeout:        n.opt.DrainTimeout,
		Access:              n.toAccessLog(),
		Watch:               n.tails.Watch,
		Rule:                n.rule,
		Tracer:              n.tracer,
		SettleTime:          settleTime,
		Log:                 n.log,
		Metrics:             router.NewMetrics(n.registry),
	})
	return err
}

// openPlan opens what says what this node serves: its control room, or the feed of others.
func (n *Node) openPlan() error {
	var loading context.Context
	loading, n.stopLoading = context.WithCancel(context.Background())
	n.versions = newVersions(loading, n.box, n.openBlob, n.environment, n.router.Publish, n.log)
	n.versions.facades = sandbox.FacadeSet() // also of a last plan from another program, before control has judged it
	if !n.opt.hasRole("control") {
		if err := n.openFollower(); err != nil {
			return err
		}
	} else if err := n.openControl(); err != nil {
		return err
	}
	n.mountPeers()
	return nil
}

func (n *Node) openControl() error {
	opt, err := n.controlOptions()
	if err != nil {
		return err
	}
	opt.Fleet = n.fleetOptions()
	if n.control, err = control.Open(opt); err != nil {
		return err
	}
	n.artifacts, n.secrets = n.control.Artifacts(), n.control.Secrets
	if n.fleet != nil {
		if n.control.HasLog() {
			n.noteLog()
		}
		n.openGate(n.cutOff)
		n.fleet.reports = feed.NewReporter(n.fleet.peers.Client(), n.fleet.upstreams, n.program(), n.log)
	}
	if last := n.control.LastPlan(); !last.Empty() {
		n.takePlan(last) // serving does not wait for the control room
	}
	return nil
}

// closeOpened gives back what New took before it failed.
func (n *Node) closeOpened() error {
	var errs []error
	if n.stopLoading != nil {
		n.stopLoading()
	}
	if n.control != nil {
		errs = append(errs, n.control.Close())
	}
	if n.follower != nil {
		errs = append(errs, n.follower.close())
	}
	if n.box != nil {
		errs = append(errs, n.box.Close())
	}
	if n.access != nil {
		errs = append(errs, n.access.Close())
	}
	closeAll(n.bound)
	errs = append(errs, n.stores.close())
	if n.lock != nil {
		errs = append(errs, n.lock.Release())
	}
	return errors.Join(errs...)
}

// Run serves until ctx is done, then drains and stops everything, last the admin listener. It returns nil after an
// orderly stop.
func (n *Node) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var giving sync.WaitGroup
	defer giving.Wait()
	defer stop()
	giving.Go(func() { n.giveWay(ctx, stop) })
	var parts life.Stack
	parts.Push(life.Part{Name: "data directory", Close: n.lock.Release})
	if ln := n.bound["admin"]; ln != nil {
		h := adminHandler(n.ready, n.problems, n.serveStatus, n.registry)
		parts.Push(life.Part{Name: "admin listener", Run: func(ctx context.Context) error { return webServer(ctx, ln, h, nil, n.log) }})
	}
	n.traceParts(&parts)
	parts.Push(life.Part{Name: "disk watch", Run: n.space.Run})
	parts.Push(life.Part{Name: "memory watch", Run: n.memory.run})
	parts.Push(life.Part{Name: "kv", Run: n.stores.kv.Run, Close: n.stores.kv.Close})
	parts.Push(life.Part{Name: "sql", Run: n.stores.sql.Run, Close: n.stores.sql.Close})
	parts.Push(life.Part{Name: "objects", Run: n.stores.objects.Run, Close: n.stores.objects.Close})
	parts.Push(life.Part{Name: "outbound", Close: func() error { n.outbound.Close(); return nil }})
	if n.operatorCerts != nil {
		parts.Push(life.Part{Name: "certificates", Run: n.operatorCerts.Run})
	}
	parts.Push(life.Part{Name: "sandbox", Run: n.box.Run, Close: n.box.Close})
	parts.Push(life.Part{Name: "versions", Stop: n.opt.DrainTimeout + 5*time.Second, Run: func(ctx context.Context) error {
		<-ctx.Done()
		rest, cancel := context.WithDeadline(context.WithoutCancel(ctx), n.drainBy)
		defer cancel()
		n.versions.drain(rest)
		return nil
	}, Close: func() error { n.stopLoading(); return n.versions.close() }})
	parts.Push(life.Part{Name: "queue", Stop: n.opt.DrainTimeout + 5*time.Second, Run: n.events.early(n.stores.queue.Run), Close: n.stores.queue.Close})
	door := http.Handler(http.HandlerFunc(n.elsewhere))
	if n.control != nil {
		door = n.tracer.Handler(false, n.control.Handler())
		parts.Push(life.Part{Name: "control", Run: n.control.Run, Close: n.control.Close})
	} else {
		n.followerParts(&parts)
	}
	n.fleetParts(&parts)
	// Above the control room, and above what hands its leadership on: a run that ends in the drain is put on record.
	parts.Push(life.Part{Name: "cron", Stop: n.opt.DrainTimeout + 5*time.Second, Run: n.events.early(n.runCron)})
	parts.Push(life.Part{Name: "control listener", Run: n.doors.early(func(ctx context.Context) error {
		conf := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: n.hosts.GetCertificate}
		return webServer(ctx, n.bound["control"], n.tasks.counted(door), conf, n.log)
	})})
	// They stop after the router, to show its drain, and before the listener that carries the tails.
	parts.Push(life.Part{Name: "tails", Run: func(ctx context.Context) error { <-ctx.Done(); n.tails.Stop(); return nil }})
	if n.access != nil {
		parts.Push(life.Part{Name: "access log", Run: n.access.Run, Close: n.access.Close})
	}
	parts.Push(life.Part{Name: "router", Run: n.runRouter, Stop: n.opt.DrainTimeout + 5*time.Second})
	parts.Push(life.Part{Name: "announcement", Run: n.announce})
	return parts.Run(ctx)
}

// controlPatience is how long a start waits for the control room before the node says that it is there without it.
const controlPatience = 20 * time.Second

// feedPatience is the same on a member that follows the plan of others: it may be cut off for long.
const feedPatience = 2 * time.Second

// awaitPlan waits until the node serves its plan, or until that may take long; false if ctx is done.
func (n *Node) awaitPlan(ctx context.Context) bool {
	most := controlPatience
	if n.follower != nil {
		most = feedPatience
	}
	patience, look := time.NewTimer(most), time.NewTicker(100*time.Millisecond)
	defer patience.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-n.planned:
			return true
		case <-look.C:
			if n.control != nil && n.control.Halted() != nil {
				return true // it has said so
			}
			if !n.waitsForVote() {
				continue
			}
			n.log.Warn("this node has the role control and no vote yet; it serves nothing new before", "node", n.id, "do", "edged fleet add-control with the ID of this node")
		case <-patience.C:
			n.log.Warn("no newer plan came; serving the last plan without it")
		}
		return true
	}
}

// announce says that the node is there once it serves its plan, and takes that back when it stops: the first step of a
// drain is that /readyz turns 503.
func (n *Node) announce(ctx context.Context) error {
	if !n.awaitPlan(ctx) {
		return nil
	}
	if err := n.info.write(n.opt.DataDir); err != nil {
		return err
	}
	n.ready.set("node", "") // before anybody is told to come
	for _, l := range n.opt.listeners() {
		if ln := n.bound[l.name]; ln != nil {
			n.opt.Announce(l.name, ln.Addr().String())
		}
	}
	<-ctx.Done()
	if n.handing.Load() {
		n.drainBy = time.Now().Add(settleTime) // traffic may go on coming: it waits for the next process
	} else {
		n.drainBy = time.Now().Add(n.opt.DrainTimeout)
		n.ready.set("node", "draining")
	}
	if err := os.Remove(runPath(n.opt.DataDir)); err != nil {
		return fault.Wrap(fault.Unavailable, "node.run.json", err)
	}
	return nil
}
