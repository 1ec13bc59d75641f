package peer

import (
	"context"
	"net/http"
	"sync"

	"edged/internal/fault"
	"edged/internal/fleetwire"
)

const maxJoins = 8 // joins that are decided at once; who comes then is told to try again

// Handle serves the calls below a path pattern of net/http's mux. Only members reach h; Caller tells which. A pattern that is
// taken panics.
func (p *Peers) Handle(pattern string, h http.Handler) { p.mux.Handle(pattern, h) }

type callerKey struct{}

// Caller returns the ID of the member that makes a request of Handle's, "" for any other request.
func Caller(r *http.Request) string {
	member, _ := r.Context().Value(callerKey{}).(string)
	return member
}

// serve lets members in, and everyone to the one door for those who want to become one.
func (p *Peers) serve(w http.ResponseWriter, r *http.Request) {
	if !p.calls.enter() {
		fleetwire.WriteError(w, fault.New(fault.Unavailable, "peer.serve", "this member is stopping"))
		return
	}
	defer p.calls.leave()
	joins := r.Method == http.MethodPost && r.URL.Path == fleetwire.PathJoin
	cert := leafOf(*r.TLS)
	if cert != nil && !p.fit(cert) && p.gone(cert) {
		tellRemoved(w)
		return
	}
	if cert == nil || !p.fit(cert) {
		if cert != nil || !joins {
			fleetwire.WriteError(w, fault.New(fault.Denied, "peer.serve", "only members of this fleet are answered: show a certificate of one"))
			return
		}
		p.mux.ServeHTTP(w, r)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, memberOf(cert)))
	p.mux.ServeHTTP(w, r)
}

// membership serves the calls that make and keep members.
func (p *Peers) membership() {
	p.mux.HandleFunc("POST "+fleetwire.PathJoin, func(w http.ResponseWriter, r *http.Request) {
		var req fleetwire.JoinRequest
		answer(w, r, p.opt.Join != nil, &req, func() (any, error) {
			select {
			case p.joins <- struct{}{}:
				defer func() { <-p.joins }()
				return p.opt.Join(r.Context(), req)
			default:
				return nil, fault.New(fault.Limited, "peer.join", "too many nodes join at once: try again in a second")
			}
		})
	})
	p.mux.HandleFunc("POST "+fleetwire.PathRenew, func(w http.ResponseWriter, r *http.Request) {
		var req fleetwire.RenewRequest
		answer(w, r, p.opt.Renew != nil, &req, func() (any, error) {
			leaf, err := p.opt.Renew(r.Context(), Caller(r), req.CSR)
			return fleetwire.RenewAnswer{CertPEM: leaf}, err
		})
	})
}

// answer reads a request and writes what do returns.
func answer(w http.ResponseWriter, r *http.Request, voter bool, req any, do func() (any, error)) {
	err := fleetwire.ReadJSON(r.Body, fleetwire.MaxJoin, req)
	if err == nil && !voter {
		err = fault.New(fault.Unavailable, "peer.answer", "this member has no part in the control plane: name the peer address of one that has")
	}
	var out any
	if err == nil {
		out, err = do()
	}
	if err != nil {
		fleetwire.WriteError(w, err)
		return
	}
	fleetwire.WriteJSON(w, out) // a caller that has gone asks again
}

// calls counts requests that are being served, so that Run outlives them.
type calls struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // made by end, closed when the last has left
}

func (c *calls) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running++
	return true
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.closed && c.running == 0 {
		close(c.idle)
	}
}

// end lets no more in and waits for those that are there.
func (c *calls) end() {
	c.mu.Lock()
	c.closed, c.idle = true, make(chan struct{})
	if c.running == 0 {
		close(c.idle)
	}
	c.mu.Unlock()
	<-c.idle // their connections are closed, and with them their contexts
}
