package kv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"edged/kv/gossip"
	"edged/kv/replica"
)

// PeerOptions say how this store reaches and knows the other members.
type PeerOptions struct {
	Client *http.Client                        // required: presents this node's certificate and checks the peer's; no overall timeout
	Name   func(*http.Request) (string, error) // required: whose certificate a caller showed
	Gossip *gossip.Options                     // nil means no doorbell: feeds alone converge, heads of distant members are not known
}

func (o *PeerOptions) fill(node string) error {
	var errs []error
	if o.Client == nil || o.Name == nil {
		errs = append(errs, errors.New("peers need a client and a way to name callers"))
	}
	if node == "" {
		errs = append(errs, errors.New("a store with peers needs a node name"))
	}
	return errors.Join(errs...)
}

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 5 * time.Second
	redraw     = 30 * time.Second // between looks at who the neighbours are
	avoidAfter = 3                // failures in a row after which a neighbour is drawn anew, above a mesh
)

// pullers keeps one session with each neighbour. Its fields are used by run's goroutine, but for fails.
type pullers struct {
	s       *Store
	running map[replica.Origin]*pulling

	mu    sync.Mutex
	fails map[replica.Origin]int // in a row
}

type pulling struct {
	member Member
	cancel context.CancelFunc
	wake   chan struct{} // capacity 1: the doorbell
}

// kick wakes what waits for a change of the members.
func (s *Store) kick() {
	select {
	case s.kicked <- struct{}{}:
	default: // it is awake already
	}
}

// run keeps sessions with the neighbours until ctx is done.
func (p *pullers) run(ctx context.Context) {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		p.reconcile(ctx, &sessions)
		select {
		case <-ctx.Done():
			return
		case <-p.s.kicked:
		case <-tick.C:
		}
	}
}

func (p *pullers) reconcile(ctx context.Context, sessions *sync.WaitGroup) {
	want := map[replica.Origin]Member{}
	for _, o := range p.neighbours() {
		want[o], _ = p.s.member(o)
	}
	for o, r := range p.running {
		if m, ok := want[o]; !ok || m != r.member {
			r.cancel()
			delete(p.running, o)
		}
	}
	for o, m := range want {
		if p.running[o] == nil {
			pctx, cancel := context.WithCancel(ctx)
			r := &pulling{member: m, cancel: cancel, wake: make(chan struct{}, 1)}
			p.running[o] = r
			sessions.Go(func() { p.pullForever(pctx, r) }) // ends with pctx
		}
	}
	p.s.doorbells.Store(p.bells())
}

func (p *pullers) bells() *map[replica.Origin]chan struct{} {
	bells := make(map[replica.Origin]chan struct{}, len(p.running))
	for o, r := range p.running {
		bells[o] = r.wake
	}
	return &bells
}

// neighbours keeps those that are pulled from, unless they left or fail; who is missing is drawn anew.
func (p *pullers) neighbours() []replica.Origin {
	var others []replica.Origin
	for _, m := range p.s.Members() {
		others = append(others, m.Epoch)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	avoid := map[replica.Origin]bool{}
	for o, n := range p.fails {
		avoid[o] = n >= avoidAfter
	}
	// The same seed draws the same neighbours while nothing changes, so that sessions are kept.
	return replica.Neighbours(p.s.ledger.epoch, others, avoid, rand.New(rand.NewPCG(uint64(p.s.ledger.epoch), 0)))
}

func (p *pullers) failed(o replica.Origin, failed bool) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !failed {
		delete(p.fails, o)
		return 0
	}
	p.fails[o]++
	if p.fails[o] == avoidAfter && len(p.s.Members()) >= replica.MeshSize {
		p.s.kick()
	}
	return p.fails[o]
}

// pullForever keeps a session with one member, with growing pauses while it fails. The doorbell ends a pause.
func (p *pullers) pullForever(ctx context.Context, r *pulling) {
	var log sessionLog
	for ctx.Err() == nil {
		lived, err := p.s.pullOnce(ctx, r.member)
		if ctx.Err() != nil {
			return
		}
		if lived {
			log = sessionLog{}
		}
		times := p.failed(r.member.Epoch, !lived)
		p.s.sessionEnded(r.member, &log, err)
		pause := min(retryMost, retryFirst<<min(times, 10))
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

var errRefused = errors.New("the member refused")

// request makes a request to a member's store.
func (s *Store) request(ctx context.Context, m Member, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, m.URL+path, body)
	if err == nil {
		req.Header.Set(headerFrom, s.ledger.epoch.String())
		req.Header.Set(headerTo, m.Epoch.String())
	}
	return req, err
}

// send sends a request and gives an error for any answer but the statuses that are good.
func (s *Store) send(req *http.Request, good ...int) (*http.Response, error) {
	resp, err := s.opt.Peers.Client.Do(req)
	if err != nil {
		return nil, err
	}
	for _, g := range good {
		if resp.StatusCode == g {
			return resp, nil
		}
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
	resp.Body.Close()
	return nil, fmt.Errorf("%w: %d %s", errRefused, resp.StatusCode, bytes.TrimSpace(text))
}

// pullOnce runs one session with a member until it ends. lived says that it reached a live mark.
func (s *Store) pullOnce(ctx context.Context, m Member) (lived bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(stall, func() { cancel(errors.New("the member says nothing")) })
	defer idle.Stop()
	in, err := s.newIntake(m.Epoch)
	if err != nil {
		return false, err
	}
	defer in.close()
	in.fetch = func(changes []replica.Change) (func(), error) {
		defer idle.Reset(stall)
		idle.Stop() // files have their own limit
		return s.fetchBlobs(ctx, m, changes)
	}
	req, err := s.request(ctx, m, "POST", pathFeed+"?from="+strconv.FormatUint(in.from, 10), bytes.NewReader(in.vector.Append(nil)))
	if err != nil {
		return false, err
	}
	resp, err := s.send(req, http.StatusOK)
	if err != nil {
		return false, errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	frames := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		kind, body, err := replica.ReadFrame(frames)
		if err != nil {
			return lived, errors.Join(err, context.Cause(ctx))
		}
		idle.Reset(stall)
		s.opt.Metrics.frames.Inc()
		mark, marked, err := in.frame(kind, body)
		if err != nil {
			return lived, err
		}
		if marked && mark.Live {
			lived = true
			s.level(m, mark)
		}
	}
}
