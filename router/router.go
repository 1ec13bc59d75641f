package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"edged/internal/fault"
	"edged/router/table"
)

// Why a connection's context ended.
var (
	errClientGone = fault.New(fault.Canceled, "router", "the client left")
	errDrainOver  = fault.New(fault.Canceled, "router", "the node is stopping")
	errConnOver   = fault.New(fault.Canceled, "router", "the connection ended")
)

// Router is the public data plane front. Its methods are safe for concurrent use.
type Router struct {
	opt      Options // set by New, then constant
	tls      *tls.Config
	gate     gate
	table    atomic.Pointer[table.Table]
	draining atomic.Bool

	watch *watcher // made by Run before it accepts

	take    func(Handed) bool // of a hand-over; set before handing
	handing atomic.Bool       // this drain is a hand-over
	moved   chan struct{}     // capacity 1: a hand-over may have come further
	rest    func()            // what Run leaves to Rest after a hand-over
	serving sync.WaitGroup    // connections; added to under mu, and not any more once stopped

	crowd crowd // the open connections

	mu      sync.Mutex      // guards the fields below; taken before the crowd's
	apart   int             // connections that are in a TLS handshake or relayed: they need nothing of the node
	base    context.Context // what connections live on; nil before Run
	stopped bool            // Run takes no more connections
	adopted []Handed        // that came before Run
}

// New checks the options and makes a Router that serves nothing yet: before the first Publish every host is unknown. It
// starts nothing; the listeners are closed by Run.
func New(opt Options) (*Router, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "router.New", err)
	}
	r := &Router{opt: opt, crowd: crowd{max: opt.MaxConns, perClient: opt.MaxClientConns, trusted: opt.TrustedProxies,
		conns: make(map[*conn]struct{}), clients: make(map[netip.Addr]int)}, moved: make(chan struct{}, 1)}
	r.gate = gate{gateLimits: opt.gateLimits(), metrics: opt.Metrics}
	opt.Metrics.gate.Store(&r.gate)
	r.tls = &tls.Config{
		GetCertificate: opt.GetCertificate,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
	}
	empty, err := table.Build(nil)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "router.New", err)
	}
	r.table.Store(empty)
	return r, nil
}

// Publish makes t the picture that requests accepted from now on see. Requests at work keep the version they were given
// (worker-deployment §3).
func (r *Router) Publish(t *table.Table) { r.table.Store(t) }

// SetShut says whether new requests are refused as overloaded, because memory is short. Assets are served, and what was
// admitted or waits goes on.
func (r *Router) SetShut(shut bool) { r.gate.setShut(shut) }

// Routes reports whether the picture has a host name.
func (r *Router) Routes(name string) bool { return r.table.Load().Match([]byte(name)) != nil }

// Run serves both listeners until ctx is done. Then it stops accepting, closes idle connections, lets running requests
// finish for DrainTimeout, cuts what is left, and returns the context's cause once every connection has ended. A
// listener that fails for good is an error. Call it once. After HandOver it ends differently, and Rest has to be called.
func (r *Router) Run(ctx context.Context) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	var err error
	if r.watch, err = newWatcher(); err != nil {
		cut(errConnOver)
		return fault.Wrap(fault.Internal, "router.Run", err)
	}
	watchCtx, stopWatch := context.WithCancel(base)
	var watching, accepting sync.WaitGroup
	watching.Go(func() { r.watch.run(watchCtx) })
	over := func() {
		stopWatch()
		watching.Wait()
		cut(errConnOver)
	}
	r.begin(base)

	failed := make(chan error, 2) // one value per listener
	for _, l := range []struct {
		net.Listener
		secure bool
	}{{r.opt.HTTP, false}, {r.opt.HTTPS, true}} {
		if l.Listener != nil {
			accepting.Go(func() { failed <- r.accept(base, ctx, l.Listener, l.secure) })
		}
	}
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case err = <-failed:
		err = fault.Wrap(fault.Unavailable, "router.Run", err)
	}
	r.draining.Store(true)
	errClose := r.closeListeners()
	accepting.Wait()
	r.close()
	if r.handing.Load() {
		r.rest = over
		r.handAll()
		return errors.Join(err, errClose)
	}
	r.drain(cut)
	over()
	return errors.Join(err, errClose)
}

func (r *Router) closeListeners() error {
	var faults []error
	for _, l := range []net.Listener{r.opt.HTTP, r.opt.HTTPS} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				faults = append(faults, fmt.Errorf("close listener: %w", err))
			}
		}
	}
	return fault.Wrap(fault.Internal, "router.Run", errors.Join(faults...))
}

// drain waits for the connections: a while in peace, then it cuts them.
func (r *Router) drain(cut context.CancelCauseFunc) {
	r.crowd.each(func(c *conn) { c.closeIfIdle() })
	done := make(chan struct{}) // closed by the goroutine below, which ends with the last connection
	go func() { r.serving.Wait(); close(done) }()
	timer := time.NewTimer(r.opt.DrainTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	cut(errDrainOver)
	r.crowd.each((*conn).abort)
	<-done
}

// delist counts a connection out.
func (r *Router) delist(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crowd.delist(c)
	if c.apart {
		r.apart--
	}
	r.nudge()
}
