package router

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"edged/internal/trace"
	"edged/router/h1"
	"edged/sandbox/event"
)

// Options configures a Router. The zero value of an optional field is its default.
type Options struct {
	HTTP           net.Listener                                         // plain HTTP/1.1; nil is off
	HTTPS          net.Listener                                         // the same over TLS, the bare TCP listener; nil is off
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error) // required with HTTPS

	// TrustedProxies are believed: their forwarding fields pass, and they may speak the PROXY protocol.
	TrustedProxies []netip.Prefix
	// Diagnostics are the peers that see Edged-Version and Edged-Sandbox; nil means loopback, empty means nobody. A
	// trusted proxy never counts, because what it is told it tells others.
	Diagnostics []netip.Prefix

	MaxTargetBytes      int   // request target; 0 means 16 KiB, below that 414
	MaxFields           int   // header fields of a request; 0 means 128, more is 431
	MaxFieldBytes       int   // header lines of a request; 0 means 32 KiB, more is 431
	MaxRequestBodyBytes int64 // 0 means 100 MiB
	MaxConns            int   // open connections; 0 means 32768. One that waits for a request makes room for another
	MaxClientConns      int   // of one address that is no trusted proxy; 0 means MaxConns

	MaxInflight       int           // invocations at work; 0 means 512
	MaxWorkerInflight int           // of one worker; it may have the same share of MaxQueue and MaxStreams; 0 means MaxInflight
	MaxTenantInflight int           // of one tenant's workers, likewise
	MaxQueue          int           // invocations waiting; 0 means 1024
	MaxStreams        int           // responses that stream for longer than a second and hold no place; 0 means 4 * MaxInflight
	QueueTimeout      time.Duration // how long one waits before 503, at most; 0 means 5 s

	HeadTimeout  time.Duration // from a head's first byte (and a TLS handshake's start) to its end; 0 means 10 s
	IdleTimeout  time.Duration // between requests, and before the first; 0 means 60 s
	BodyTimeout  time.Duration // between two pieces of a request body that is waited for; 0 means 60 s
	WriteTimeout time.Duration // for each piece (at most 64 KiB) of a response; 0 means 30 s
	// MinClientRate is what a client has to send of a body that is waited for, and to take of a response that streams or is
	// large, in bytes per second, once it has been waited for BodyTimeout or WriteTimeout in all; 0 means 240. Time in
	// which the worker is not ready does not count.
	MinClientRate int
	DrainTimeout  time.Duration // for running requests after Run's context is done; 0 means 25 s
	SettleTime    time.Duration // the same in a hand-over, while clients already wait for the next process; 0 means 500 ms

	// Access is told of each exchange with a client after its end, on the connection's goroutine: it must not wait. nil tells nobody.
	Access func(*Access)
	// Watch is asked, for a request that a worker's code was not called for, who is told of its end: as sandbox.Options.Watch. nil tells
	// nobody.
	Watch func(worker string) func(*event.Invocation)
	// Rule says what routes a canonical host name that the table has, and of which generation its worker's deployment is, for
	// explanations. nil leaves it out.
	Rule func(host, deployment string) Rule

	Tracer  *trace.Tracer // nil traces nothing
	Log     *slog.Logger  // nil discards
	Metrics *Metrics      // nil counts into the void
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// withDefaults returns a complete copy, or all faults at once.
func (o Options) withDefaults() (Options, error) {
	fill(&o.MaxTargetBytes, 16<<10)
	fill(&o.MaxFields, 128)
	fill(&o.MaxFieldBytes, 32<<10)
	fill(&o.MaxRequestBodyBytes, 100<<20)
	fill(&o.MaxConns, 32768)
	fill(&o.MaxClientConns, o.MaxConns)
	fill(&o.MaxInflight, 512)
	fill(&o.MaxQueue, 1024)
	fill(&o.MaxWorkerInflight, o.MaxInflight)
	fill(&o.MaxTenantInflight, o.MaxInflight)
	fill(&o.MaxStreams, 4*o.MaxInflight)
	fill(&o.QueueTimeout, 5*time.Second)
	fill(&o.HeadTimeout, 10*time.Second)
	fill(&o.IdleTimeout, 60*time.Second)
	fill(&o.BodyTimeout, 60*time.Second)
	fill(&o.WriteTimeout, 30*time.Second)
	fill(&o.MinClientRate, 240)
	fill(&o.DrainTimeout, 25*time.Second)
	fill(&o.SettleTime, 500*time.Millisecond)
	if o.Diagnostics == nil {
		o.Diagnostics = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	var faults []error
	if o.HTTPS != nil && o.GetCertificate == nil {
		faults = append(faults, errors.New("https listener without certificates"))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"MaxTargetBytes", int64(o.MaxTargetBytes)}, {"MaxFields", int64(o.MaxFields)},
		{"MaxFieldBytes", int64(o.MaxFieldBytes)}, {"MaxRequestBodyBytes", o.MaxRequestBodyBytes},
		{"MaxConns", int64(o.MaxConns)}, {"MaxClientConns", int64(o.MaxClientConns)}, {"MaxInflight", int64(o.MaxInflight)}, {"MaxQueue", int64(o.MaxQueue)},
		{"MaxWorkerInflight", int64(o.MaxWorkerInflight)}, {"MaxTenantInflight", int64(o.MaxTenantInflight)}, {"MaxStreams", int64(o.MaxStreams)},
		{"MinClientRate", int64(o.MinClientRate)}, {"QueueTimeout", int64(o.QueueTimeout)}, {"HeadTimeout", int64(o.HeadTimeout)},
		{"IdleTimeout", int64(o.IdleTimeout)}, {"BodyTimeout", int64(o.BodyTimeout)},
		{"WriteTimeout", int64(o.WriteTimeout)}, {"DrainTimeout", int64(o.DrainTimeout)},
		{"SettleTime", int64(o.SettleTime)},
	} {
		if n.value < 0 {
			faults = append(faults, fmt.Errorf("%s is negative", n.name))
		}
	}
	return o, errors.Join(faults...)
}

// patience is how long a client may be waited for now that has moved so many bytes and was waited for so long: never more
// than timeout, and that only for one that keeps up MinClientRate. It is positive.
func (o *Options) patience(timeout time.Duration, moved int64, waited time.Duration) time.Duration {
	earned := time.Duration(moved/int64(o.MinClientRate)) * time.Second
	return max(time.Millisecond, min(timeout, timeout+earned-waited))
}

func (o *Options) headLimits() h1.Limits {
	return h1.Limits{Target: o.MaxTargetBytes, Fields: o.MaxFields, FieldBytes: o.MaxFieldBytes}
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
