package operator

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"edged/internal/fault"
)

// Options is what a Door needs.
type Options struct {
	Rooms []Room
	// Find returns the live Resource with a UID, of any tenant. Required if a path has {uid}.
	Find func(uid string) (Target, bool)
	// Audit is told of every change that was tried, before it is answered. nil tells nobody.
	Audit func(Event)
	Log   *slog.Logger // nil discards
}

// Door serves every room. Immutable; safe for concurrent use.
type Door struct {
	opt    Options
	routes []place
}

// place is a route at its path.
type place struct {
	room     string
	segments []string // of the path below Root, the room's name first
	route    *Route
}

func (r *Route) maxBody() int64 {
	if r.MaxBody == 0 {
		return 1 << 20
	}
	return r.MaxBody
}

// New checks the rooms and returns their door. Every fault is told: two routes at one place, a path or method that is none.
func New(opt Options) (*Door, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{opt: opt}
	var faults []error
	seen := map[string]bool{}
	for _, room := range opt.Rooms {
		for i := range room.Routes {
			r := &room.Routes[i]
			p := place{room.Name, append([]string{room.Name}, strings.Split(r.Path, "/")...), r}
			at := r.Method + " " + p.shape()
			switch {
			case slices.Contains(p.segments, "") || r.Serve == nil || r.Name == "":
				faults = append(faults, fmt.Errorf("operator: route %q of %q is not complete", r.Path, room.Name))
			case !slices.Contains([]string{"GET", "POST", "PUT", "DELETE"}, r.Method):
				faults = append(faults, fmt.Errorf("operator: route %s: method %q", p.shape(), r.Method))
			case seen[at]:
				faults = append(faults, fmt.Errorf("operator: %s is there twice", at))
			}
			seen[at] = true
			d.routes = append(d.routes, p)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fault.New(fault.Invalid, "operator.New", err.Error())
	}
	return d, nil
}

// shape is the path without the names of its variables.
func (p *place) shape() string {
	out := make([]string, len(p.segments))
	for i, s := range p.segments {
		if out[i] = s; isVariable(s) {
			out[i] = "{}"
		}
	}
	return strings.Join(out, "/")
}

func isVariable(segment string) bool { return strings.HasPrefix(segment, "{") }

// match returns the variables of a path that is the place's; ok is false for any other. Segments are compared as they are
// written in the request.
func (p *place) match(segments []string) (values map[string]string, ok bool) {
	if len(segments) != len(p.segments) {
		return nil, false
	}
	values = map[string]string{}
	for i, s := range p.segments {
		if !isVariable(s) {
			if s != segments[i] {
				return nil, false
			}
			continue
		}
		v, err := url.PathUnescape(segments[i])
		if err != nil || v == "" {
			return nil, false
		}
		values[strings.Trim(s, "{}")] = v
	}
	return values, true
}

// Methods returns the methods of an escaped path, as Allow has them; "" if there is nothing.
func (d *Door) Methods(path string) string {
	var out []string
	d.each(path, func(p *place, _ map[string]string) {
		if !slices.Contains(out, p.route.Method) {
			out = append(out, p.route.Method)
		}
	})
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (d *Door) each(path string, fn func(*place, map[string]string)) {
	rest, ok := strings.CutPrefix(path, Root)
	if !ok {
		return
	}
	segments := strings.Split(rest, "/")
	for i := range d.routes {
		if values, ok := d.routes[i].match(segments); ok {
			fn(&d.routes[i], values)
		}
	}
}

// Serve answers a request of an operator whose path has its method among Methods.
func (d *Door) Serve(w http.ResponseWriter, r *http.Request, caller *Caller) {
	c := &Call{Caller: caller, w: w, r: r, find: d.opt.Find, event: Event{Caller: caller, Tenant: caller.Tenant}}
	d.each(r.URL.EscapedPath(), func(p *place, values map[string]string) {
		// A path that is written out goes before one with a variable.
		if p.route.Method == r.Method && (c.route == nil || len(values) < len(c.values)) {
			c.route, c.values, c.event.Action = p.route, values, p.room+"."+p.route.Name
		}
	})
	if c.route == nil {
		writeProblem(w, fault.New(fault.NotFound, "operator.Serve", "no such route"))
		return
	}
	err := d.run(c)
	if c.begun {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the connection's next answer has its own time
	}
	if c.route.Changes && d.opt.Audit != nil {
		c.event.Err = err
		d.opt.Audit(c.event)
	}
	if err == nil {
		return
	}
	if code := fault.CodeOf(err); code == fault.Internal || code == fault.Unavailable {
		d.opt.Log.Error("operator's call failed", "err", err, "call", c.event.Action, "do", "see the cause in err; if it is no disk and no network, report it as a bug")
	}
	if c.begun {
		panic(http.ErrAbortHandler) // an answer that is not whole must not look whole
	}
	writeProblem(w, err)
}

// run does everything up to the answer.
func (d *Door) run(c *Call) error {
	if c.route.Whole && !c.Caller.Whole {
		return fault.New(fault.Denied, "operator", "only operators of the whole node may do this")
	}
	if err := c.readQuery(); err != nil {
		return err
	}
	if c.route.Body == NoBody {
		var one [1]byte
		if n, err := io.ReadFull(c.r.Body, one[:]); n > 0 || err != io.EOF {
			return fault.New(fault.Invalid, "operator", "this request has no body")
		}
	}
	if uid, ok := c.values[targetVariable]; ok {
		t, found := d.opt.Find(uid)
		if !found || !c.Caller.MayIn(t.Tenant, t.Space) {
			return fault.New(fault.NotFound, "operator", "no such Resource")
		}
		c.Target = &t
		c.event.Tenant, c.event.UID, c.event.Space, c.event.Name = t.Tenant, t.UID, t.Space, t.Name
	}
	return c.route.Serve(c)
}

func (c *Call) readQuery() error {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Invalid, "operator", "the query is malformed")
	}
	for name, all := range values {
		if !slices.Contains(c.route.Query, name) || len(all) > 1 {
			return fault.New(fault.Invalid, "operator", "a query parameter is unknown or repeated")
		}
	}
	c.Query = values
	return nil
}
