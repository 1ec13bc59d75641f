package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	reportGap  = 250 * time.Millisecond // between two reports
	reportTime = 5 * time.Second        // for one
	reportTo   = 7                      // voters at most
)

// report tells every voter which index is served, when that moves and every now and then: whoever leads knows it, and a report that did
// not arrive is made up for by the next.
func (f *Follower) report(ctx context.Context) {
	for {
		timer := time.NewTimer(reportEvery/2 + rand.N(reportEvery/2))
		select {
		case <-f.served:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		f.reportOnce(ctx)
		gap := time.NewTimer(reportGap)
		select {
		case <-gap.C:
		case <-ctx.Done():
		}
		gap.Stop()
	}
}

func (f *Follower) reportOnce(ctx context.Context) {
	f.mu.Lock()
	now := report{Epoch: f.epoch, Index: f.index}
	f.mu.Unlock()
	if now.Epoch == 0 {
		return
	}
	body, err := json.Marshal(now)
	if err != nil {
		f.opt.Log.Error("report is not encoded", "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	var posts sync.WaitGroup
	defer posts.Wait()
	sent := 0
	for _, u := range f.opt.Upstreams() {
		if !u.Voter || sent == reportTo {
			continue
		}
		sent++
		posts.Go(func() {
			if err := f.post(ctx, u, body); err != nil {
				f.opt.Log.Debug("report did not arrive", "member", u.Member, "err", err)
			}
		})
	}
}

func (f *Follower) post(ctx context.Context, u Upstream, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+pathServing, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.opt.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}
