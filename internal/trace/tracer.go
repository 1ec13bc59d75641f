package trace

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a Tracer. The zero value of an optional field is its default.
type Options struct {
	Endpoint string         // required: the URL that batches are posted to (Settings.URL)
	Headers  http.Header    // sent with every batch; never logged
	Roots    *x509.CertPool // authorities of an https endpoint; nil trusts the system's

	Ratio float64 // share of the traces that begin here and are recorded, 0 to 1

	Service  string // service.name; "" means edged
	Version  string // service.version
	Instance string // service.instance.id

	MaxQueued int           // ended spans that wait to be sent; 0 means 4,096, more are dropped
	MaxSpans  int           // spans of one piece of work here; 0 means 256, more are dropped
	BatchSize int           // spans of one message; 0 means 512
	Interval  time.Duration // how long a span waits for others; 0 means 1 s
	Timeout   time.Duration // of one message; 0 means 10 s
	Flush     time.Duration // for what waits when Run is told to stop; 0 means 3 s

	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void
}

// Tracer decides what is recorded, and sends it. A nil Tracer is off. Safe for concurrent use.
type Tracer struct {
	opt    Options
	bound  uint64 // a trace is recorded whose ID's last 63 bits are below
	client *http.Client

	mu      sync.Mutex // guards the fields below
	waiting []*Span
	wake    chan struct{} // capacity 1: something waits

	failing atomic.Bool // the last message was not taken; so that a failure is said once
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// New makes a Tracer. It starts nothing; Run sends. Errors name everything that is wrong with the options.
func New(opt Options) (*Tracer, error) {
	def(&opt.Service, "edged")
	def(&opt.MaxQueued, 4096)
	def(&opt.MaxSpans, 256)
	def(&opt.BatchSize, 512)
	def(&opt.Interval, time.Second)
	def(&opt.Timeout, 10*time.Second)
	def(&opt.Flush, 3*time.Second)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(nil)
	}
	var faults []error
	if opt.Endpoint == "" {
		faults = append(faults, errors.New("the endpoint is missing"))
	}
	if !(opt.Ratio >= 0 && opt.Ratio <= 1) { // NaN too
		faults = append(faults, fmt.Errorf("a Ratio of %v is not between 0 and 1", opt.Ratio))
	}
	if opt.MaxQueued < 0 || opt.MaxSpans < 0 || opt.BatchSize < 0 || opt.Interval < 0 || opt.Timeout < 0 || opt.Flush < 0 {
		faults = append(faults, errors.New("a limit is negative"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	t := &Tracer{opt: opt, bound: uint64(opt.Ratio * (1 << 63)), wake: make(chan struct{}, 1)}
	t.client = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:       &tls.Config{RootCAs: opt.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   opt.Timeout,
			ResponseHeaderTimeout: opt.Timeout,
			MaxIdleConns:          1,
			IdleConnTimeout:       time.Minute,
			ForceAttemptHTTP2:     true,
		},
		Timeout:       opt.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers are for this endpoint alone
	}
	return t, nil
}

// Root begins the first span of a trace: nobody's child. It returns nil from a nil Tracer.
func (t *Tracer) Root(kind Kind, name string, start time.Time) *Span {
	if t == nil {
		return nil
	}
	c := Context{Flags: randomFlag}
	newID(c.TraceID[:])
	if binary.BigEndian.Uint64(c.TraceID[8:])>>1 < t.bound {
		c.Flags |= sampledFlag
	}
	return t.begin(c, [8]byte{}, kind, name, start)
}

// Join begins a span of this node below a parent elsewhere, which must be valid. The parent's decision whether the trace
// is recorded holds: call it for peers that may decide that, and Root for others.
func (t *Tracer) Join(parent *Context, kind Kind, name string, start time.Time) *Span {
	if t == nil {
		return nil
	}
	return t.begin(*parent, parent.SpanID, kind, name, start)
}

// begin makes the first span of a piece of work on this node; c is complete but for the span's ID.
func (t *Tracer) begin(c Context, parent [8]byte, kind Kind, name string, start time.Time) *Span {
	newID(c.SpanID[:])
	s := &Span{tracer: t, ctx: c}
	if c.Sampled() {
		s.rec = &record{parent: parent, kind: kind, name: name, start: start, tally: new(atomic.Int32)}
	}
	return s
}

// newID fills an ID with random bytes that are not all zero. IDs are no secrets: the runtime's generator, which has a
// state per thread, is good enough and takes no lock.
func newID(id []byte) {
	for i := 0; i < len(id); i += 8 {
		n := rand.Uint64()
		if n == 0 {
			n = 1
		}
		binary.BigEndian.PutUint64(id[i:], n)
	}
}
