package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"edged/control/artifact"
	"edged/internal/fault"
)

// fetchAtOnce bounds how many files a node fetches at a time. Each takes a buffer of 32 KiB.
const fetchAtOnce = 4

// mostAsked bounds how many members are asked for one file before it counts as not to be had now.
const mostAsked = 12

// FetcherOptions is what a Fetcher needs.
type FetcherOptions struct {
	Client  *http.Client      // required; no overall timeout
	Files   *artifact.Store   // required
	Members func() []Upstream // required: who may have a file, this node not among them
	Metrics *Metrics          // nil counts into the void
}

// Fetcher brings files here from any member. Safe for concurrent use.
type Fetcher struct {
	opt    FetcherOptions
	places chan struct{}
}

// NewFetcher makes a fetcher.
func NewFetcher(opt FetcherOptions) (*Fetcher, error) {
	if opt.Client == nil || opt.Files == nil || opt.Members == nil {
		return nil, fault.New(fault.Invalid, "feed.NewFetcher", "a client, a store and the members are needed")
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(nil)
	}
	return &Fetcher{opt: opt, places: make(chan struct{}, fetchAtOnce)}, nil
}

// Fetch returns when the file with this digest and size is in the store, whole, verified and durable. It asks the member with the ID
// first before others, then voters, then any, each once, and goes on at one where another stopped. It pins nothing. Unavailable says that
// no member gave the file.
func (f *Fetcher) Fetch(ctx context.Context, first string, digest artifact.Digest, size int64) error {
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.opt.Files.Has(digest, size) {
		return nil
	}
	err := f.fetch(ctx, first, digest, size)
	f.opt.Metrics.blobs.Count(err)
	return err
}

func (f *Fetcher) fetch(ctx context.Context, first string, digest artifact.Digest, size int64) error {
	members := order(f.opt.Members(), first, "", mostAsked)
	body := &relayed{ctx: ctx, client: f.opt.Client, name: digest.String(), members: members, size: size}
	defer body.close()
	err := f.opt.Files.Take(ctx, digest, size, body)
	if fault.NamedOf(err) != artifact.ErrDigest {
		return err
	}
	// Somebody gave other bytes. Each alone shows who has the right ones.
	errs := []error{err}
	for _, m := range members {
		one := &relayed{ctx: ctx, client: f.opt.Client, name: digest.String(), members: []Upstream{m}, size: size}
		err := f.opt.Files.Take(ctx, digest, size, one)
		one.close()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fault.Wrap(fault.Unavailable, "feed.Fetch", errors.Join(errs...))
}

// order returns at most most of members: the one with the ID first, then voters, then others, each kind in random order but for the one
// with the ID last.
func order(members []Upstream, first, last string, most int) []Upstream {
	out := append([]Upstream(nil), members...)
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	rank := func(u Upstream) int {
		switch {
		case u.Member == last:
			return 3
		case u.Member == first:
			return 0
		case u.Voter:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b Upstream) int { return rank(a) - rank(b) })
	return out[:min(most, len(out))]
}

// relayed reads a file from one member after the other, each from where the one before stopped.
type relayed struct {
	ctx     context.Context
	client  *http.Client
	name    string
	members []Upstream
	size    int64

	at   int64
	body io.ReadCloser // nil between members
	idle *time.Timer   // ends the request
	stop context.CancelFunc
	errs []error
}

// Read fails only when every member was asked and the file is not whole.
func (r *relayed) Read(p []byte) (int, error) {
	for r.at < r.size {
		if r.body == nil {
			if err := r.ctx.Err(); err != nil {
				return 0, err
			}
			if len(r.members) == 0 {
				r.errs = append(r.errs, fmt.Errorf("no member gave all of file %s, %d of %d bytes came", r.name, r.at, r.size))
				return 0, fault.Wrap(fault.Unavailable, "feed.Fetch", errors.Join(r.errs...))
			}
			if err := r.open(r.members[0]); err != nil {
				r.failed(err)
				continue
			}
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.size-r.at)])
		r.idle.Reset(stall)
		r.at += int64(n)
		if err != nil && r.at < r.size {
			r.failed(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// failed goes on with the next member. Few reasons are kept: a fleet may have hundreds of members.
func (r *relayed) failed(err error) {
	if len(r.errs) < 3 {
		r.errs = append(r.errs, fmt.Errorf("member %s: %w", r.members[0].Member, err))
	}
	r.close()
	r.members = r.members[1:]
}

func (r *relayed) close() {
	if r.stop != nil {
		r.stop()
		r.idle.Stop()
		r.stop = nil
	}
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

func (r *relayed) open(m Upstream) error {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(r.ctx)
	r.idle = time.AfterFunc(stall, r.stop)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+pathBlob+r.name, nil)
	if err != nil {
		return err
	}
	want := http.StatusOK
	if r.at > 0 {
		want = http.StatusPartialContent
		req.Header.Set("Range", "bytes="+strconv.FormatInt(r.at, 10)+"-")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	r.body = resp.Body
	if resp.StatusCode != want || r.at > 0 && resp.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", r.at, r.size-1, r.size) {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}

// all fetches files, the member first before others; it tries all and returns the first failure.
func (f *Fetcher) all(ctx context.Context, first string, files []file) error {
	var (
		jobs  sync.WaitGroup
		mu    sync.Mutex
		fault error
	)
	places := make(chan struct{}, fetchAtOnce)
	for _, file := range files {
		places <- struct{}{} // freed by a fetch, which ends: no member may be silent for long
		jobs.Go(func() {
			defer func() { <-places }()
			if err := f.Fetch(ctx, first, file.digest, file.size); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if fault == nil {
					fault = err
				}
			}
		})
	}
	jobs.Wait()
	return fault
}
