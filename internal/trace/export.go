package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxAttempts  = 5                // of one message
	firstBackOff = time.Second      // doubled with each attempt, and up to half of it off by chance
	maxWait      = 30 * time.Second // also where the collector asks for more
	maxAnswer    = 64 << 10         // bytes of an answer that are read
)

// take puts an ended span into the queue, or drops it.
func (t *Tracer) take(s *Span) {
	t.mu.Lock()
	fits := len(t.waiting) < t.opt.MaxQueued
	if fits {
		t.waiting = append(t.waiting, s)
	}
	t.mu.Unlock()
	if !fits {
		t.opt.Metrics.queue.Inc()
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// batch takes the oldest spans out of the queue; rest says how many stay.
func (t *Tracer) batch() (spans []*Span, rest int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), t.opt.BatchSize)
	spans = append(spans, t.waiting[:n]...)
	rest = copy(t.waiting, t.waiting[n:])
	clear(t.waiting[rest:])
	t.waiting = t.waiting[:rest]
	return spans, rest
}

func (t *Tracer) queued() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// Run sends what ends until ctx is done, and then what still waits, for as long as Options.Flush. It returns nil.
func (t *Tracer) Run(ctx context.Context) error {
	defer t.client.CloseIdleConnections()
	for t.gather(ctx) {
		t.sendAll(ctx, false)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.opt.Flush)
	defer cancel()
	t.sendAll(last, true)
	if left := t.queued(); left > 0 {
		t.drop(left)
	}
	return nil
}

// gather waits for a batch: as many spans as one message takes, or some and the interval. false says that ctx is done.
func (t *Tracer) gather(ctx context.Context) bool {
	var due <-chan time.Time
	for {
		switch n := t.queued(); {
		case n >= t.opt.BatchSize:
			return ctx.Err() == nil
		case n > 0 && due == nil:
			timer := time.NewTimer(t.opt.Interval)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return false
		case <-due:
			return true
		case <-t.wake:
		}
	}
}

// sendAll sends what waits. last says that there is no later: nothing is tried twice.
func (t *Tracer) sendAll(ctx context.Context, last bool) {
	for rest := 1; rest > 0 && (last || ctx.Err() == nil); {
		var spans []*Span
		if spans, rest = t.batch(); len(spans) == 0 {
			return
		}
		err := t.send(ctx, spans, last)
		if err != nil && last {
			return
		}
		if !last && rest < t.opt.BatchSize {
			return // they wait for others again
		}
	}
}

// refusal is an answer that says that the message will never be taken.
type refusal struct{ status int }

func (r refusal) Error() string { return fmt.Sprintf("the collector answers with status %d", r.status) }

// later is an answer that asks for another attempt.
type later struct {
	status int
	after  time.Duration // 0: it does not say when
}

func (l later) Error() string { return fmt.Sprintf("the collector answers with status %d", l.status) }

// send delivers one message, with as many attempts as it may have. Whatever becomes of it is counted; err is its failure.
func (t *Tracer) send(ctx context.Context, spans []*Span, last bool) (err error) {
	body := t.encode(spans)
	for attempt := 1; ; attempt++ {
		var rejected int
		rejected, err = t.post(ctx, body)
		var no refusal
		switch {
		case err == nil:
			t.opt.Metrics.messages[messageSent].Inc()
			rejected = min(rejected, len(spans))
			t.opt.Metrics.refused.Add(float64(rejected))
			t.opt.Metrics.sent.Add(float64(len(spans) - rejected))
			if t.failing.Swap(false) {
				t.opt.Log.Info("spans reach the collector again")
			}
			return nil
		case errors.As(err, &no):
			t.opt.Metrics.messages[messageFailed].Inc()
			t.opt.Metrics.refused.Add(float64(len(spans)))
			t.complain(err)
			return err
		}
		if !last && ctx.Err() != nil {
			t.giveBack(spans)
			return err
		}
		t.complain(err)
		if !last && attempt < maxAttempts && !t.pause(ctx, err, attempt) {
			t.giveBack(spans)
			return err
		}
		if last || attempt == maxAttempts {
			t.opt.Metrics.messages[messageFailed].Inc()
			t.drop(len(spans))
			return err
		}
		t.opt.Metrics.messages[messageRetried].Inc()
	}
}

// giveBack returns spans whose message was interrupted by the end of Run: the flush sends them. The collector may have them
// twice, as OTLP allows.
func (t *Tracer) giveBack(spans []*Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(spans, t.waiting...)
}

// pause waits before the next attempt; false if ctx ends first.
func (t *Tracer) pause(ctx context.Context, err error, attempt int) bool {
	wait := firstBackOff << (attempt - 1)
	wait -= time.Duration(rand.Int64N(int64(wait / 2)))
	var asked later
	if errors.As(err, &asked) && asked.after > 0 {
		wait = asked.after
	}
	timer := time.NewTimer(min(wait, maxWait))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// complain says once that the collector does not take spans, until it takes some again.
func (t *Tracer) complain(err error) {
	if !t.failing.Swap(true) {
		t.opt.Log.Warn("spans do not reach the collector", "err", err,
			"do", "check --otlp-endpoint, --otlp-headers and the collector; spans that cannot wait are dropped, requests are not held up")
	}
}

func (t *Tracer) drop(n int) { t.opt.Metrics.lost.Add(float64(n)) }

// post sends a message once. rejected is how many of its spans the collector did not want although it took the message.
func (t *Tracer) post(ctx context.Context, body []byte) (rejected int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.opt.Endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, refusal{}
	}
	for name, values := range t.opt.Headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "edged/"+t.opt.Version)
	res, err := t.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL, which may hold a key
		}
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // to its end, so that the connection is used again
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		if err != nil {
			return 0, nil // it was taken, and how many of it not is all that is lost
		}
		return rejectedOf(answer), nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, later{res.StatusCode, retryAfter(res.Header.Get("Retry-After"), time.Now())}
	}
	return 0, refusal{res.StatusCode}
}

// rejectedOf reads ExportTraceServiceResponse. What is not one rejects nothing.
func rejectedOf(answer []byte) int {
	var r struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // an int64 is a string in proto3's JSON, or a number
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &r) != nil {
		return 0
	}
	n, err := strconv.Atoi(string(bytes.Trim(r.PartialSuccess.RejectedSpans, `"`)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// retryAfter reads the field: seconds, or a date. 0 if it says nothing of use.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 1<<20 {
		return max(time.Duration(n)*time.Second, time.Millisecond)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
