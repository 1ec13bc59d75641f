package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"edged/internal/fault"
)

const (
	reportGap  = 250 * time.Millisecond // between two reports
	reportTime = 5 * time.Second        // for one
	reportTo   = 7                      // voters at most
)

// Reporter tells the voters which index of the plan this member serves. Safe for concurrent use; Run is called once.
type Reporter struct {
	client  *http.Client
	members func() []Upstream // the others; the voters among them are told
	program Program
	log     *slog.Logger
	moved   chan struct{} // capacity 1: there is something new to tell

	mu  sync.Mutex
	now report
}

// NewReporter makes a reporter, which tells nothing before Serves was called.
func NewReporter(client *http.Client, members func() []Upstream, program Program, log *slog.Logger) *Reporter {
	return &Reporter{client: client, members: members, program: program, log: log, moved: make(chan struct{}, 1)}
}

// Serves notes what is served from now on.
func (r *Reporter) Serves(epoch, index uint64) {
	r.mu.Lock()
	r.now = report{Epoch: epoch, Index: index, Program: r.program}
	r.mu.Unlock()
	if epoch == 0 {
		return // nothing is served yet
	}
	select {
	case r.moved <- struct{}{}:
	default: // it is known already
	}
}

// Run tells it when it moves, and again once in a while, until ctx is done.
func (r *Reporter) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(reportEvery/2 + rand.N(reportEvery/2))
		select {
		case <-r.moved:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.once(ctx)
		gap := time.NewTimer(reportGap)
		select {
		case <-gap.C:
		case <-ctx.Done():
		}
		gap.Stop()
	}
}

func (r *Reporter) once(ctx context.Context) {
	r.mu.Lock()
	now := r.now
	r.mu.Unlock()
	if now.Epoch == 0 {
		return
	}
	body, err := json.Marshal(now)
	if err != nil {
		r.log.Error("report is not encoded", "err", err, "do", fault.ReportBug)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	var posts sync.WaitGroup
	defer posts.Wait()
	sent := 0
	for _, u := range r.members() {
		if !u.Voter || sent == reportTo {
			continue
		}
		sent++
		posts.Go(func() {
			if err := r.post(ctx, u, body); err != nil {
				r.log.Debug("report did not arrive", "member", u.Member, "err", err)
			}
		})
	}
}

func (r *Reporter) post(ctx context.Context, u Upstream, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+pathServing, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}
