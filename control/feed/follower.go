package feed

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"edged/control/artifact"
	"edged/control/plan"
	"edged/internal/fault"
)

// freshEvery is how often it is put on disk that the plan is the newest. A restart forgets at most so much of it.
const freshEvery = time.Minute

// FollowerOptions is what a Follower needs.
type FollowerOptions struct {
	Client    *http.Client      // required: presents this node's certificate and checks the others'; no overall timeout
	Upstreams func() []Upstream // required: who may be followed, this node not among them; asked before each attempt
	Store     *plan.Store       // required: the follower's own from now on; the caller closes it after Run
	Files     *artifact.Store   // required
	Fetcher   *Fetcher          // required
	Server    *Server           // required: hands the plan on; nobody else publishes to it
	// Use takes what a delta changes into use and returns when it is; one call at a time. The files of all that is deployed are in Files.
	Use func(*plan.Delta)
	// Confirmed is called, as Use is, when an upstream says for the first time since the start that what is in use is the newest plan: there
	// may be nothing to take into use. nil if nobody wants to know.
	Confirmed func()
	Program   Program      // that this node runs; it is announced to the voters
	Log       *slog.Logger // nil discards
	Metrics   *Metrics     // nil counts into the void
}

// Follower keeps the plan that other nodes make in use here. All methods are safe for concurrent use once it is made; Run is called once.
type Follower struct {
	opt      FollowerOptions
	inbox    inbox
	received position                 // the session's: what is used, or in the inbox, or pending
	upstream atomic.Pointer[Upstream] // followed last
	open     atomic.Bool              // a feed from it
	reports  *Reporter

	needs   needs       // Run's, like all up to mu
	target  *plan.Plan  // all that was taken from the inbox
	mark    plan.Mark   // of target
	pending *plan.Delta // from the plan in use to target; nil if they are the same
	beat    arrival     // the last beat behind target; zero fresh if there is none
	sure    bool        // Confirmed was called
	saved   time.Time   // when the mark was written

	mu    sync.Mutex
	moved chan struct{} // closed when index moves; nil while nobody waits
	fresh time.Time     // the plan in use was known to be the newest then
	index uint64        // that is served
	epoch uint64
}

// NewFollower makes a follower that goes on from the plan in opt.Store, and pins what that needs: it comes before the first sweep of
// opt.Files. A plan that cannot be read is told and asked for anew.
func NewFollower(opt FollowerOptions) (*Follower, error) {
	if opt.Client == nil || opt.Upstreams == nil || opt.Store == nil || opt.Files == nil || opt.Fetcher == nil || opt.Server == nil || opt.Use == nil {
		return nil, fault.New(fault.Invalid, "feed.NewFollower", "everything but Log and Metrics is needed")
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(nil)
	}
	f := &Follower{opt: opt, reports: NewReporter(opt.Client, opt.Upstreams, opt.Program, opt.Log)}
	f.inbox.init()
	f.needs.init(opt.Files)
	var err, merr error
	f.target, err = opt.Store.Load()
	f.mark, merr = opt.Store.Mark()
	if err = errors.Join(err, merr); err != nil {
		opt.Log.Error("the last plan cannot be read; serving waits for another member", "err", err,
			"do", "nothing, if another member gives a plan; else check the disk of the data directory: free space, and the kernel's log for errors")
		f.target, f.mark = plan.New(), plan.Mark{}
	}
	f.received = position{epoch: f.mark.Epoch, index: f.target.Index, partial: f.mark.Partial}
	f.epoch, f.index, f.fresh = f.mark.Epoch, f.target.Index, f.mark.Fresh
	f.reports.Serves(f.epoch, f.index)
	all := f.target.Delta()
	f.needs.update(f.target, all)
	if len(f.needs.missing()) > 0 {
		f.pending = &plan.Delta{Index: f.target.Index} // takes nothing into use but what can be opened by then
	}
	opt.Server.Advance(0, f.fresh) // from now on it knows that it is not the source
	return f, opt.Server.Publish(f.mark.Epoch, f.mark.Partial, all)
}

// LastPlan returns the plan that was in use before, as what leads to it from an empty one. It is called before Run.
func (f *Follower) LastPlan() *plan.Delta { return f.target.Delta() }

// CutOff returns since when the plan in use is not known to be the newest, the zero time if it never was, and whether this node is cut
// off: nobody confirmed it for longer than a feed may be silent. It counts the time before a restart.
func (f *Follower) CutOff() (since time.Time, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fresh, time.Since(f.fresh) > stall
}

// Following returns the ID of the member that is followed or was last, "" for none since the start, and whether a feed from it is open.
func (f *Follower) Following() (member string, open bool) {
	if u := f.upstream.Load(); u != nil {
		member = u.Member
	}
	return member, f.open.Load()
}

// Run follows until ctx is done and all that it started has ended.
func (f *Follower) Run(ctx context.Context) error {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	jobs.Go(func() { f.follow(ctx) })
	jobs.Go(func() { f.reports.Run(ctx) })
	retry := time.NewTimer(0)
	defer retry.Stop()
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-retry.C:
		case <-f.inbox.wake:
			for _, a := range f.inbox.take() {
				f.take(a)
			}
		}
		if err := f.settle(ctx); err != nil && ctx.Err() == nil {
			f.opt.Log.Error("a plan waits for its files", "index", f.target.Index, "err", err, "do", "check that the members that have them can be reached")
			most := min(retryMost, retryFirst<<min(failed+1, 10))
			failed++
			retry.Reset(most/2 + rand.N(most/2))
			continue
		}
		failed = 0
	}
}

// take adds an arrival to the target.
func (f *Follower) take(a arrival) {
	switch {
	case a.whole != nil:
		f.target = a.whole
		f.pending = f.opt.Server.to(a.whole)
		f.mark.Epoch, f.mark.Partial = a.from.epoch, a.from.partial
		f.needs.update(f.target, f.pending)
		f.beat = arrival{}
	case a.delta != nil:
		f.target.Apply(a.delta)
		f.needs.update(f.target, a.delta)
		if f.pending != nil {
			f.pending = plan.Merge(f.pending, a.delta)
		} else {
			f.pending = a.delta
		}
		f.beat = arrival{}
	default:
		f.beat = a
	}
}

// settle takes what is pending into use: its files first, then the disk, then the others, then this node. What cannot be saved is
// served all the same: the node is then only worse off after a restart without upstream.
func (f *Follower) settle(ctx context.Context) error {
	if d := f.pending; d != nil {
		first := ""
		if u := f.upstream.Load(); u != nil {
			first = u.Member
		}
		if err := f.opt.Fetcher.all(ctx, first, f.needs.missing()); err != nil {
			return err
		}
		if err := f.opt.Store.SaveMarked(d, f.target, f.mark); err != nil {
			f.opt.Log.Error("plan was not saved", "err", err, "do", fault.CheckDisk)
		}
		if err := f.opt.Server.Publish(f.mark.Epoch, f.mark.Partial, d); err != nil {
			f.opt.Log.Error("plan is not handed on", "err", err, "do", fault.ReportBug)
		}
		f.opt.Use(d)
		f.pending = nil
		f.opt.Metrics.deltas.Inc()
		if err := f.needs.settled(); err != nil {
			f.opt.Log.Error("files that are no longer needed may go early", "err", err, "do", fault.CheckDisk)
		}
		f.serve(f.target.Index, time.Time{})
	}
	if f.beat.fresh.IsZero() {
		return nil
	}
	f.serve(f.beat.index, f.beat.fresh)
	f.opt.Server.Advance(f.beat.index, f.beat.fresh)
	if !f.sure && f.opt.Confirmed != nil && time.Since(f.beat.fresh) <= stall {
		f.sure = true
		f.opt.Confirmed()
	}
	f.beat = arrival{}
	if now := time.Now(); now.Sub(f.saved) >= freshEvery {
		f.saved, f.mark.Fresh = now, f.freshness()
		if err := f.opt.Store.SaveMarked(&plan.Delta{Index: f.target.Index}, f.target, f.mark); err != nil {
			f.opt.Log.Error("plan was not saved", "err", err, "do", fault.CheckDisk)
		}
	}
	return nil
}

// serve notes what is served.
func (f *Follower) serve(index uint64, fresh time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fresh.After(f.fresh) {
		f.fresh = fresh
	}
	if f.mark.Epoch == f.epoch && index <= f.index {
		return
	}
	f.epoch, f.index = f.mark.Epoch, index
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
	f.reports.Serves(f.epoch, f.index)
}

// Reach returns when the plan in use holds at least the command with this index, or when ctx is done.
func (f *Follower) Reach(ctx context.Context, index uint64) error {
	for {
		f.mu.Lock()
		if f.moved == nil {
			f.moved = make(chan struct{})
		}
		there, moved := f.index >= index, f.moved
		f.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *Follower) freshness() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fresh
}
