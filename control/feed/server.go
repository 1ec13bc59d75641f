package feed

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
	"weak"

	"edged/control/plan"
	"edged/internal/fault"
)

// Bounds of the history that a Server keeps: followers that are farther behind are sent the whole plan.
const (
	historyDeltas = 4096
	historyBytes  = 32 << 20
)

// Filter says which parts a follower needs. Both are asked again for every change, and must give the same answer for the same part.
type Filter struct {
	Consumer func(*plan.Consumer) bool
	Cron     func(*plan.Cron) bool
}

// pass returns d with what is not needed as gone.
func (f *Filter) pass(d *plan.Delta) *plan.Delta {
	out := *d
	out.Crons = plan.Changes[plan.Cron]{Gone: append([]string(nil), d.Crons.Gone...)}
	for _, c := range d.Crons.Put {
		if f.Cron(c) {
			out.Crons.Put = append(out.Crons.Put, c)
		} else {
			out.Crons.Gone = append(out.Crons.Gone, c.UID)
		}
	}
	out.Consumers = plan.Changes[plan.Consumer]{Gone: append([]string(nil), d.Consumers.Gone...)}
	for _, c := range d.Consumers.Put {
		if f.Consumer(c) {
			out.Consumers.Put = append(out.Consumers.Put, c)
		} else {
			out.Consumers.Gone = append(out.Consumers.Gone, c.UID)
		}
	}
	return &out
}

// ServerOptions is what a Server needs.
type ServerOptions struct {
	Caller func(*http.Request) string // required: ID of the member that asks
	// Filter returns what a member needs, nil for all: only such a member can feed others. A nil Filter gives all to everyone.
	Filter func(member string) *Filter
	// Fresh returns when the plan was last known to be the newest of the fleet. nil means always now. A voter that does not lead gives
	// the instant in which it last heard from the leader. Server is told by its Follower instead where there is one.
	Fresh   func() time.Time
	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void
}

// Server has the plan as this node hands it on. All methods are safe for concurrent use, but Publish is called by one goroutine at a
// time, which alone changes the plan.
type Server struct {
	opt ServerOptions

	mu      sync.Mutex
	epoch   uint64 // 0 before the first Publish
	partial bool
	plan    *plan.Plan    // as published; its Index is the last that changed anything
	index   uint64        // the newest that is known to change nothing more
	history []*entry      // adjacent, oldest first; the last leads to plan
	bytes   int           // of their frames
	moved   chan struct{} // closed when plan or index move, then replaced
	ended   chan struct{} // closed when what was sent no longer leads to plan, then replaced
	follows bool          // Advance says how fresh the plan is
	fresh   time.Time     // as it said
	streams int

	snapMu sync.Mutex // one snapshot is made at a time
	snap   weak.Pointer[snapshot]

	serving serving
}

// entry is one delta of the history.
type entry struct {
	prev, index uint64
	delta       *plan.Delta
	frames      []byte // unfiltered
}

// NewServer makes a server without a plan: it refuses followers until the first Publish.
func NewServer(opt ServerOptions) (*Server, error) {
	if opt.Caller == nil {
		return nil, fault.New(fault.Invalid, "feed.NewServer", "a way to name callers is needed")
	}
	if opt.Filter == nil {
		opt.Filter = func(string) *Filter { return nil }
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(nil)
	}
	s := &Server{opt: opt, plan: plan.New(), moved: make(chan struct{}), ended: make(chan struct{})}
	s.serving.init()
	return s, nil
}

// Index returns the index of the newest plan that Publish and Advance were told of; 0 before the first.
func (s *Server) Index() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index
}

// Publish hands on the plan after d, which follows the one published before, in the control state's history epoch. That plan must be
// exactly the one at d.Index, so that all who publish it agree. partial says that it lacks what this node does not need: then nobody is
// served from it. The error says that it cannot be sent; followers are then refused until one can.
func (s *Server) Publish(epoch uint64, partial bool, d *plan.Delta) error {
	prev := s.plan.Index
	frames, err := appendChange(nil, prev, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	same := err == nil && epoch == s.epoch && partial == s.partial
	if same && d.Empty() {
		s.advanceLocked(d.Index, s.fresh)
		return nil
	}
	s.plan.Apply(d)
	s.epoch, s.partial, s.index = epoch, partial, d.Index
	if same && d.Index > prev {
		s.history = append(s.history, &entry{prev: prev, index: d.Index, delta: d, frames: frames})
		s.bytes += len(frames)
		for len(s.history) > historyDeltas || s.bytes > historyBytes {
			s.bytes -= len(s.history[0].frames)
			s.history[0] = nil
			s.history = s.history[1:]
		}
	} else { // whoever follows would not get to this plan by deltas
		s.history, s.bytes = nil, 0
		close(s.ended)
		s.ended = make(chan struct{})
	}
	s.moveLocked()
	if err != nil {
		s.epoch = 0
	}
	return fault.Wrap(fault.Internal, "feed.Publish", err)
}

// Advance says that the plan published last is still the one at index, and that it was known at the instant fresh to be the newest.
func (s *Server) Advance(index uint64, fresh time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follows = true
	s.advanceLocked(index, fresh)
}

func (s *Server) advanceLocked(index uint64, fresh time.Time) {
	if fresh.After(s.fresh) {
		s.fresh = fresh
	}
	if index > s.index {
		s.index = index
		s.moveLocked()
	}
}

func (s *Server) moveLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// age returns how long ago the plan was known to be the newest.
func (s *Server) age() time.Duration {
	if s.opt.Fresh != nil {
		return time.Since(s.opt.Fresh())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.follows {
		return 0 // this is the source
	}
	return time.Since(s.fresh)
}

// position is where a follower is.
type position struct {
	epoch, index uint64
	partial      bool
}

// The reasons for which a feed is refused. A follower then tries another upstream.
var (
	errNoPlan  = errors.New("this node has no plan to hand on")
	errPartial = errors.New("this node has only its own part of the plan")
	errBehind  = errors.New("this node has an older plan than yours")
	errCrowd   = errors.New("this node feeds as many as it can")
	errAnew    = errors.New("the plan of this node began anew") // ends a feed
)

// begin admits a follower.
func (s *Server) begin(at position) (epoch uint64, ended <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.epoch == 0:
		return 0, nil, errNoPlan
	case s.partial:
		return 0, nil, errPartial
	case at.epoch > s.epoch || at.epoch == s.epoch && at.index > s.plan.Index:
		return 0, nil, errBehind
	case s.streams >= maxStreams:
		return 0, nil, errCrowd
	}
	s.streams++
	s.opt.Metrics.followers.Inc()
	return s.epoch, s.ended, nil
}

// Followers returns how many members read the plan from this one now.
func (s *Server) Followers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
	s.opt.Metrics.followers.Dec()
}

// step is what a follower gets next.
type step struct {
	entries []*entry
	whole   bool // it has to get everything, or nothing is known of where it is
	newest  uint64
	moved   <-chan struct{} // closed when there is more
}

// after returns the next deltas after the plan at index, and none if that is the newest.
func (s *Server) after(index uint64) step {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := step{newest: s.index, moved: s.moved}
	if index == s.plan.Index {
		return st
	}
	i := s.find(index)
	if i < 0 {
		st.whole = true
		return st
	}
	st.entries = append(st.entries, s.history[i:min(len(s.history), i+64)]...)
	return st
}

// to returns what leads from the plan published last to next. It is called by whoever publishes.
func (s *Server) to(next *plan.Plan) *plan.Delta { return s.plan.To(next) }
