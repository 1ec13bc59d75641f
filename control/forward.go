package control

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"edged/control/api"
	"edged/control/artifact"
	"edged/control/operator"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/trace"
)

// apiPrefix is where a voter hands on what came to its control listener. What comes in there is never handed on again.
const apiPrefix = peerRoot + "api"

// leadersRooms are the rooms of the operators' door whose calls speak of the whole fleet; those of others speak of this node's data.
var leadersRooms = []string{"control", "fleet"}

// leaders tells whether only the leader can answer a path of the control listener.
func leaders(path string) bool {
	if rest, ok := strings.CutPrefix(path, operator.Root); ok {
		for _, room := range leadersRooms {
			if strings.HasPrefix(rest, room+"/") {
				return true
			}
		}
		return false
	}
	return strings.HasPrefix(path, api.Root+"/") || strings.HasPrefix(path, artifact.SidePath)
}

// front answers the control listener. Whoever is asked, the leader answers what needs its state, and only while it is certain to lead:
// reads are linearizable with everything that any voter has acknowledged.
func (c *Control) front(inner http.Handler) http.Handler {
	if c.opt.Fleet == nil {
		return inner
	}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { c.rewrite(p) },
		Transport:     c.opt.Fleet.Client.Transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			trace.From(r.Context()).FailAs("unavailable", true)
			c.opt.Log.Warn("a request was not handed on to the leader", "leader", r.Context().Value(leaderKey{}), "err", err)
			api.Unavailable(w, "the node that leads the control room cannot be reached, so whether this was carried out is open; repeat it with the same Idempotency-Key")
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !leaders(r.URL.EscapedPath()) || c.confirm(r.Context()) == nil {
			inner.ServeHTTP(w, r)
			return
		}
		if err := c.Halted(); err != nil {
			api.Unavailable(w, fault.Detail(err))
			return
		}
		over := c.reigns.over() // asked first: a leader who comes after that ends it
		leader := c.leader()
		if leader == "" || leader == c.opt.NodeID {
			api.Unavailable(w, "no node leads the control room now; it needs most of its voters. Nothing was done; retry")
			return
		}
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), leaderKey{}, leader))
		defer cancel()
		span := trace.From(ctx).Child(trace.Client, "control.forward")
		span.Set("edged.member", string(leader))
		defer span.End(nil)
		ctx = trace.With(ctx, span)
		go func() { // ends with the request
			select {
			case <-over:
				cancel()
			case <-ctx.Done():
			}
		}()
		pass.ServeHTTP(w, r.WithContext(ctx))
	})
}

// reigns tells when another leader is known: what was handed on to one that vanished would wait for its connection to break.
type reigns struct {
	mu     sync.Mutex
	leader raft.ServerID // the last that was known
	ended  chan struct{} // closed when another is
}

// over returns what is closed when the next leader is known.
func (r *reigns) over() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// watch follows the leaders until ctx is done.
func (r *reigns) watch(ctx context.Context, log *raft.Raft) {
	seen := make(chan raft.Observation, 1)
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool { _, leads := o.Data.(raft.LeaderObservation); return leads })
	log.RegisterObserver(o)
	defer log.DeregisterObserver(o)
	for {
		_, leader := log.LeaderWithID()
		r.mu.Lock()
		if leader != "" && leader != r.leader {
			r.leader = leader
			close(r.ended)
			r.ended = make(chan struct{})
		}
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-seen: // one that was missed left another unread
		}
	}
}

type leaderKey struct{} // of the context of a request that is handed on: the member that it goes to

func (c *Control) rewrite(p *httputil.ProxyRequest) {
	leader, _ := p.In.Context().Value(leaderKey{}).(string)
	to, err := url.Parse(peerURL(leader, apiPrefix))
	if err != nil { // a member's ID fits into a host name
		panic(http.ErrAbortHandler)
	}
	trace.From(p.In.Context()).Inject(p.Out.Header)
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = to.Scheme, to.Host, to.Host
	p.Out.URL.RawPath = apiPrefix + p.In.URL.EscapedPath()
	p.Out.URL.Path = apiPrefix + p.In.URL.Path
}

// PeerHandler answers other members below /control/v1/ on the peer listener.
func (c *Control) PeerHandler() http.Handler {
	handed := c.opt.Tracer.Handler(true, http.StripPrefix(apiPrefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.confirm(r.Context()); err != nil {
			api.Unavailable(w, "the node that led the control room does so no more. Nothing was done; retry")
			return
		}
		c.inner.ServeHTTP(w, r)
	})))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := c.opt.Fleet.Caller(r)
		what, below := strings.CutPrefix(r.URL.Path, peerRoot)
		switch {
		case caller == "" || !below:
			http.NotFound(w, r)
		case strings.HasPrefix(r.URL.Path, apiPrefix+"/"):
			handed.ServeHTTP(w, r)
		case c.blank && !c.Ready() && slices.Contains([]string{"hands/retire", "hands/detach", "hands/in-use"}, what):
			// It never had a plan and runs nothing, and its first will be newer than what is asked: nobody waits for its vote. It knows no
			// voters either by which to judge the caller.
			reply(w, r, func(context.Context, *runErrand) (any, error) { return inUseDone{}, nil })
		case strings.HasPrefix(r.URL.Path, handsRoot):
			c.hands.ServeHTTP(w, r)
		case what == "position":
			reply(w, r, func(ctx context.Context, _ *position) (any, error) {
				err := c.confirm(ctx)
				return position{c.machine.applied.at()}, err
			})
		case what == "reached":
			reply(w, r, func(ctx context.Context, in *position) (any, error) {
				if err := c.Halted(); err != nil {
					return nil, err
				}
				if err := c.machine.applied.reach(ctx, in.Index); err != nil {
					return nil, fault.Newf(fault.Unavailable, "control.peer", "this node has not come as far as command %d", in.Index)
				}
				return position{c.machine.applied.at()}, nil
			})
		case what == "admit":
			reply(w, r, func(ctx context.Context, in *fleetwire.JoinRequest) (any, error) {
				if c.callingVoter(r) == "" {
					return nil, fault.New(fault.Denied, "control.peer", "only voters hand on who wants to join")
				}
				if err := c.confirm(ctx); err != nil {
					return nil, err
				}
				return c.Join(ctx, *in)
			})
		case what == "keys":
			reply(w, r, func(ctx context.Context, in *keyWanted) (any, error) {
				if c.callingVoter(r) == "" {
					return nil, fault.New(fault.Denied, "control.peer", "only voters rotate keys")
				}
				return in, c.takeKey(ctx, *in)
			})
		case what == "hold":
			reply(w, r, func(ctx context.Context, in *holdRequest) (any, error) {
				return struct{}{}, c.hold(ctx, c.callingVoter(r), in)
			})
		case what == "holds":
			reply(w, r, func(_ context.Context, in *holdRequest) (any, error) { return c.holds(in) })
		default:
			http.NotFound(w, r)
		}
	})
}

// callingVoter names the voter that sent a request, "" for any other member.
func (c *Control) callingVoter(r *http.Request) string {
	caller := c.opt.Fleet.Caller(r)
	if others, err := c.otherVoters(); err != nil || !slices.Contains(others, caller) {
		return ""
	}
	return caller
}
