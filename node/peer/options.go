package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

// Options says what a member needs to talk to the others. All funcs are called from many goroutines and must not block long.
type Options struct {
	Dir  string // required: DATA/fleet, which Join or Found filled
	Node string // required: this member's ID

	// Resolve tells the host:port of a member's peer listener, false if it is not known. Required.
	Resolve func(member string) (string, bool)
	// Allowed reports whether a certificate of the fleet with this member and serial is still accepted. It must say false
	// for removed members. It must accept a member's last serial as long as its certificate lives: a member whose renewal
	// was decided but whose answer was lost has no other. Required. Call Recheck when an answer becomes false.
	Allowed func(member, serial string) bool
	// Voters tells whom to ask for a new leaf, in any order; this member itself is passed over. Required.
	Voters func() []string

	// Removed reports whether a node was removed from the fleet: it is told so in place of every answer. It must be certain, for that
	// ends the node's service for good; who is merely not known here may have joined a moment ago. nil: nobody is told.
	Removed func(member string) bool
	// OnRemoved is called once, when this member learns that it was removed itself. nil: nobody wants to know.
	OnRemoved func(how string)

	// Join and Renew decide what PathJoin and PathRenew ask; nil on a member that is no voter. Join is given what an
	// unknown caller claims. Renew is given the caller's ID and its request, and returns the leaf.
	Join  func(context.Context, fleetwire.JoinRequest) (fleetwire.JoinAnswer, error)
	Renew func(ctx context.Context, member string, csr []byte) ([]byte, error)

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil means the machine's network
	Log  *slog.Logger                                                      // nil discards

	write writer // nil means disk.WriteFile; tests crash in it
}

func (o *Options) fill() error {
	var errs []error
	need := func(missing bool, name string) {
		if missing {
			errs = append(errs, fault.Newf(fault.Invalid, "peer.Open", "%s is missing", name))
		}
	}
	need(o.Dir == "", "Dir")
	need(o.Resolve == nil, "Resolve")
	need(o.Allowed == nil, "Allowed")
	need(o.Voters == nil, "Voters")
	if !pki.ValidNode(o.Node) {
		errs = append(errs, fault.Newf(fault.Invalid, "peer.Open", "Node %.80q cannot be the ID of a fleet's member", o.Node))
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	if o.write == nil {
		o.write = disk.WriteFile
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

// Peers is this member's side of all its connections to others. Safe for concurrent use, but for Handle, which comes before
// Run.
type Peers struct {
	opt    Options
	root   *x509.Certificate
	pool   *x509.CertPool // the root alone
	leaf   atomic.Pointer[tls.Certificate]
	mux    *http.ServeMux
	client *http.Client
	joins  chan struct{}                // a slot for each join that is being decided
	raft   atomic.Pointer[RaftListener] // nil: this member takes no raft streams
	conns  conns
	calls  calls
	left   atomic.Pointer[string] // how it is known that this member was removed; nil: it was not

	renewing sync.Mutex // one renewal at a time
	asked    *request   // guarded by renewing; nil while no renewal is under way
}

// Open reads the member's certificate. A directory without one is NotFound; files that are damaged, of another node or of
// two fleets are a Conflict and stay as they are. A leaf that has expired is read: calls then say what to do.
func Open(opt Options) (*Peers, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	root, leaf, err := load(opt.Dir, opt.Node)
	if err != nil {
		return nil, err
	}
	p := &Peers{opt: opt, root: root, pool: x509.NewCertPool(), mux: http.NewServeMux(), joins: make(chan struct{}, maxJoins)}
	p.pool.AddCert(root)
	p.leaf.Store(leaf)
	if err := p.readLeft(); err != nil {
		return nil, err
	}
	if err := tidy(opt.Dir); err != nil {
		opt.Log.Warn("a key that a crash left behind is not removed", "err", err)
	}
	p.client = p.newClient()
	p.membership()
	return p, nil
}

// Epoch is the fleet's: the instant of its authority, in Unix milliseconds. A fleet that is founded anew, as after a restore, has a later one.
func (p *Peers) Epoch() uint64 { return uint64(p.root.NotBefore.UnixMilli()) }

// NotAfter returns when this member's certificate ends. Renewal should keep it more than ten days away.
func (p *Peers) NotAfter() time.Time { return p.leaf.Load().Leaf.NotAfter }
