package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"edged/control/form"
	"edged/control/operator"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
)

// Root is where the Host API is.
const Root = "/apis/" + apiID

// The places of the API.
const (
	apiID         = "forms.takoform.com/v2"
	discoveryPath = "/.well-known/takoform/v2"
	docsPath      = "/docs/"
)

// Options is what the handler needs; all members are required but those that say otherwise.
type Options struct {
	State   *state.State
	Drivers form.Table
	Origin  string // public origin, without a trailing slash; never taken from a request

	MaxRequestBytes int64
	MaxPageSize     int
	ReplayWindow    time.Duration

	// Ready reports whether the state is current, so that a credential can be looked up.
	Ready func() bool
	// Mutate carries a create, update or delete through acceptance. It stamps time, ids and what is found out outside.
	Mutate func(ctx context.Context, c *state.Command, values Private) (state.Outcome, error)
	// Preview judges a mutation like Mutate and carries nothing out. A refusal of authorization is told apart.
	Preview func(ctx context.Context, c *state.Command, values Private) (denied *rules.Verdict, out state.Outcome, err error)
	// Replenish gives an Operation the private inputs of its original request again.
	Replenish func(ctx context.Context, c *state.Command, values Private) (state.Outcome, error)
	// Used is told the token of every request that was authenticated; nil tells nobody.
	Used func(token string)
	// Refused is told of every mutation that was not accepted, with the Problem's code and whether that is certain. What
	// the command holds of it may be incomplete. nil tells nobody.
	Refused func(c *state.Command, code string, certain bool)
	// RequestRate is how many requests a principal may make per second, RequestBurst how many at once. 0 is no limit.
	RequestRate, RequestBurst int
	// Operator is the operators' door; nil leaves it out.
	Operator *operator.Door
	// Artifacts serves SidePath for a caller that was found out; nil leaves the side channel out.
	Artifacts func(http.ResponseWriter, *http.Request, *state.Actor)
	SidePath  string

	Profile Profile // what the page of the support profile says
	Log     *slog.Logger
}

// Handler is the whole control listener. Safe for concurrent use.
type Handler struct {
	opt Options
	// pageBytes bounds the items of one page, but for the first; set by New.
	pageBytes int
	limit     *limiter
	pages     map[string][]byte // documentation by file name; set by New
}

// maxPageBytes is the bound of a page: a spec may have as many bytes as a request, and a page a hundred of them.
const maxPageBytes = 16 << 20

// New returns the handler. It starts nothing.
func New(opt Options) *Handler {
	h := &Handler{opt: opt, pageBytes: maxPageBytes, limit: newLimiter(opt.RequestRate, opt.RequestBurst)}
	h.render()
	return h
}

// call is one request on its way through the checks.
type call struct {
	*Handler
	w     http.ResponseWriter
	r     *http.Request
	actor state.Actor
	id    string // the variable segment of the path, decoded
	rel   string // path below the API's root

	cmd *state.Command // of a mutation, once it is known to be one; for the audit of a refusal
}

// route is one place: what it answers, and to whom.
type route struct {
	methods  string // as Allow has them
	open     bool   // no authentication
	disabled bool   // optional and not advertised
	serve    func(*call) *problem
}

// ServeHTTP answers one request of the control listener.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if bug := recover(); bug != nil {
			if bug == http.ErrAbortHandler {
				panic(bug)
			}
			h.opt.Log.Error("request panicked", "err", bug, "method", r.Method, "do", fault.ReportBug)
			internalFailed.write(w)
		}
	}()
	c := &call{Handler: h, w: w, r: r}
	if r.Body != http.NoBody {
		// Not every writer can bound its reads (a test's recorder cannot); a server's connection can.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	if p := c.serve(); p != nil {
		p.write(w)
	}
}

func (c *call) serve() *problem {
	rt := c.match()
	if rt == nil || !rt.open {
		c.w.Header().Set("Cache-Control", "no-store")
	}
	if rt == nil {
		return noRoute
	}
	if !rt.open {
		if !c.opt.Ready() {
			return notReady
		}
		var ok bool
		if c.actor, ok = c.authenticate(); !ok {
			return unknownCaller
		}
		if wait := c.limit.take(c.actor.Tenant, c.actor.Principal, time.Now()); wait > 0 {
			return rateLimited(wait)
		}
	}
	if rt.disabled {
		return notOffered
	}
	if rt.methods != "" && !allowed(rt.methods, c.r.Method) {
		return &problem{status: http.StatusMethodNotAllowed, code: "method_not_allowed", detail: "allowed are " + rt.methods, allow: rt.methods}
	}
	p := rt.serve(c)
	if p != nil && !rt.open {
		c.drain()
	}
	if p != nil && c.cmd != nil && c.opt.Refused != nil {
		c.opt.Refused(c.cmd, p.code, p.status < http.StatusInternalServerError)
	}
	return p
}

func allowed(methods, method string) bool {
	for m := range strings.SplitSeq(methods, ", ") {
		if m == method {
			return true
		}
	}
	return false
}

// authenticate finds out who asks; anything but exactly one known bearer token is nobody.
func (c *call) authenticate() (state.Actor, bool) {
	values := c.r.Header.Values("Authorization")
	if len(values) != 1 {
		return state.Actor{}, false
	}
	scheme, secret, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > 512 {
		return state.Actor{}, false
	}
	actor, ok := c.opt.State.Authenticate(secret)
	if ok && c.opt.Used != nil {
		c.opt.Used(actor.Token)
	}
	return actor, ok
}

var (
	discoveryRoute  = &route{methods: "GET", open: true, serve: (*call).discovery}
	supportRoute    = &route{methods: "GET", serve: (*call).support}
	offeringsRoute  = &route{methods: "GET", disabled: true}
	previewsRoute   = &route{methods: "POST", serve: (*call).preview}
	privateRoute    = &route{methods: "PUT", serve: (*call).replenish}
	resourcesRoute  = &route{methods: "GET, POST", serve: (*call).resources}
	resourceRoute   = &route{methods: "GET, PUT, DELETE", serve: (*call).resource}
	operationRoute  = &route{methods: "GET", serve: (*call).operation}
	artifactsRoute  = &route{serve: (*call).artifacts}
	pageRoute       = &route{methods: "GET", open: true, serve: (*call).page}
	routesOfAPIRoot = map[string]*route{
		"/support": supportRoute, "/offerings": offeringsRoute, "/previews": previewsRoute, "/resources": resourcesRoute,
	}
)

// match is step 1: which place the path names, nil for none.
func (c *call) match() *route {
	path := c.r.URL.EscapedPath()
	if rel, ok := strings.CutPrefix(path, Root); ok {
		c.rel = rel
		return c.matchAPI(rel)
	}
	switch {
	case path == discoveryPath:
		return discoveryRoute
	case c.opt.Operator != nil && strings.HasPrefix(path, operator.Root):
		if methods := c.opt.Operator.Methods(path); methods != "" {
			return &route{methods: methods, serve: (*call).operator}
		}
	case c.opt.Artifacts != nil && strings.HasPrefix(path, c.opt.SidePath):
		return artifactsRoute
	case strings.HasPrefix(path, docsPath) && c.hasPage(path[len(docsPath):]):
		c.id = path[len(docsPath):]
		return pageRoute
	}
	return nil
}

func (c *call) matchAPI(rel string) *route {
	if rt := routesOfAPIRoot[rel]; rt != nil {
		return rt
	}
	if rest, ok := strings.CutPrefix(rel, "/resources/"); ok {
		return c.one(rest, resourceRoute)
	}
	if rest, ok := strings.CutPrefix(rel, "/operations/"); ok {
		if id, ok := strings.CutSuffix(rest, "/private-inputs"); ok {
			return c.one(id, privateRoute)
		}
		return c.one(rest, operationRoute)
	}
	return nil
}

// one accepts exactly one path segment. Whether it can name anything is for the place to say.
func (c *call) one(segment string, rt *route) *route {
	if segment == "" || strings.Contains(segment, "/") {
		return nil
	}
	id, err := url.PathUnescape(segment)
	if err != nil {
		return nil
	}
	c.id = id
	return rt
}

func (c *call) artifacts() *problem {
	c.opt.Artifacts(c.w, c.r, &c.actor)
	return nil
}

// refused logs what nobody foresaw and renders it.
func (c *call) refused(err error) *problem {
	if fault.CodeOf(err) == fault.Internal {
		c.opt.Log.Error("request failed", "err", err, "method", c.r.Method, "do", "see the cause in err; if it is no disk and no network, report it as a bug")
	}
	return fromError(err)
}
