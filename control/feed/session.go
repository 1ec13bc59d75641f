package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
	// mostUpstreams are tried in one round: all voters of any fleet, and a few others. A fleet that is cut off does not drown in attempts.
	mostUpstreams = 8
)

// Upstream is a member that may be followed or asked.
type Upstream struct {
	Member string // its ID
	URL    string // without a path or trailing slash, like https://ID.node.edged
	Voter  bool   // it makes the plan; others hand it on
}

// follow keeps one feed from one upstream until ctx is done: voters first, then any member. A pause after a failed round grows, and the
// one after a feed that lived is short; both are random, so that those who lose an upstream together do not come back together.
func (f *Follower) follow(ctx context.Context) {
	told, left := "", ""
	for failed := 0; ctx.Err() == nil; failed++ {
		lived := false
		var errs []error
		for _, u := range order(f.opt.Upstreams(), "", left, mostUpstreams) {
			var err error
			if lived, err = f.session(ctx, u); lived || ctx.Err() != nil {
				left = u.Member // what vanished keeps callers waiting: it is tried last
				f.opt.Log.Info("the feed of the plan ended", "upstream", u.Member, "err", err)
				break
			}
			if len(errs) < 3 {
				errs = append(errs, fmt.Errorf("member %s: %w", u.Member, err))
			}
		}
		if lived {
			failed, told = 0, ""
		} else if text := fmt.Sprint(errors.Join(errs...)); ctx.Err() == nil && text != told {
			told = text
			f.opt.Log.Warn("nobody gives the plan; serving the last one", "err", text)
		}
		most := min(retryMost, retryFirst<<min(failed+2, 10))
		pause := time.NewTimer(rand.N(most))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// session follows one upstream until that fails, stalls, or is itself cut off. lived says that it was up to date once.
func (f *Follower) session(ctx context.Context, u Upstream) (lived bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(stall, func() { cancel(errors.New("it says nothing")) })
	defer idle.Stop()
	at := f.received
	url := fmt.Sprintf("%s%s?epoch=%d&from=%d&partial=%t&beat=%d", u.URL, pathFeed, at.epoch, at.index, at.partial, quickBeat.Milliseconds())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	resp, err := f.opt.Client.Do(req)
	if err != nil {
		return false, errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusNotFound {
			return false, errors.New("it does not speak version 1 of the plan feed: it runs another version of edged than this node can follow")
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // what came of it is said
		return false, fmt.Errorf("it answered %d: %s", resp.StatusCode, bytes.TrimSpace(text))
	}
	silence := stall
	if beatOf(resp.Header.Get(headerBeat)) == quickBeat {
		silence = quickStall
	}
	idle.Reset(silence)
	f.upstream.Store(&u)
	f.open.Store(true)
	defer f.open.Store(false)
	f.opt.Metrics.sessions.Inc()
	dec := NewDecoder(resp.Body, func() { idle.Reset(silence) })
	var hello Hello
	for {
		e, err := dec.Next()
		if err != nil {
			return lived, errors.Join(err, context.Cause(ctx))
		}
		idle.Stop() // waiting for room is not the upstream's silence
		switch {
		case e.Hello != nil:
			if hello = *e.Hello; hello.Epoch < f.received.epoch {
				return lived, fmt.Errorf("it is of an older epoch, %d", hello.Epoch)
			}
		case e.Change != nil:
			err = f.receive(ctx, hello, e.Change)
		default:
			err = f.heard(ctx, hello, e.Beat)
			lived = lived || err == nil
		}
		if err != nil {
			return lived, err
		}
		idle.Reset(silence)
	}
}

// receive checks that a change follows what was received before and keeps it for the follower.
func (f *Follower) receive(ctx context.Context, hello Hello, c *Change) error {
	same := hello.Epoch == f.received.epoch && hello.Partial == f.received.partial
	a := arrival{delta: c.Delta, whole: c.Whole, bytes: c.Bytes}
	now := position{epoch: hello.Epoch, partial: hello.Partial}
	switch {
	case c.Whole != nil:
		now.index = c.Whole.Index
		if hello.Epoch == f.received.epoch && now.index < f.received.index {
			return fmt.Errorf("it sends the plan at index %d, but %d was received before", now.index, f.received.index)
		}
		a.from = now
	case !same || c.Prev != f.received.index:
		return fmt.Errorf("it sends what follows index %d, but %d was received before", c.Prev, f.received.index)
	default:
		now.index = c.Delta.Index
	}
	if err := f.inbox.put(ctx, a); err != nil {
		return err
	}
	f.received = now
	return nil
}

// heard notes that all was received. An upstream that is cut off itself is left for a better one.
func (f *Follower) heard(ctx context.Context, hello Hello, b *Beat) error {
	if hello.Epoch != f.received.epoch || hello.Partial != f.received.partial || b.Index < f.received.index {
		return fmt.Errorf("it is at index %d of epoch %d, and sent no plan for that", b.Index, hello.Epoch)
	}
	if err := f.inbox.put(ctx, arrival{index: b.Index, fresh: time.Now().Add(-b.Age)}); err != nil {
		return err
	}
	if b.Age >= maxAge {
		return errors.New("it does not know yet whether its plan is the newest")
	}
	if b.Age > stall {
		return fmt.Errorf("it was cut off itself %v ago", b.Age)
	}
	return nil
}
