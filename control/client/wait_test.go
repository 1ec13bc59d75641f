package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/fault"
)

// script answers calls in order, without a network, so that waiting is free inside a bubble.
type script struct {
	steps []step
	at    []time.Duration // of each call since start
	start time.Time
	keys  []string // idempotency keys in order
}

// step is one answer; status 0 is a lost connection.
type step struct {
	status     int
	body       string
	retryAfter string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		return respond(step{status: 200, body: discovery("https://n.example")}), nil
	}
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	i := len(s.at)
	s.at = append(s.at, time.Since(s.start))
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	if i >= len(s.steps) {
		return nil, errors.New("the script is over")
	}
	if s.steps[i].status == 0 {
		return nil, errors.New("connection lost")
	}
	return respond(s.steps[i]), nil
}

func respond(st step) *http.Response {
	h := http.Header{}
	if st.retryAfter != "" {
		h.Set("Retry-After", st.retryAfter)
	}
	return &http.Response{StatusCode: st.status, Header: h, Body: io.NopCloser(strings.NewReader(st.body))}
}

func play(t *testing.T, steps ...step) (*Client, *script) {
	s := &script{steps: steps, start: time.Now()}
	c, err := New(Options{URL: "https://n.example", Token: token, transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func operation(status string) string { return fmt.Sprintf(`{"id":"o1","status":%q}`, status) }

// Wait looks again when the node said so, else ever more slowly, and ends with the Operation.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := play(t,
			step{202, operation("queued"), "3"},
			step{200, operation("running"), ""},
			step{200, operation("reconciling"), ""},
			step{200, operation("running"), "600"}, // more than is reasonable
			step{200, operation("succeeded"), ""})
		op, err := c.Create(t.Context(), Create{}, NewKey())
		if err != nil {
			t.Fatal(err)
		}
		op, err = c.Wait(t.Context(), op)
		if err != nil || op.Status != "succeeded" {
			t.Fatalf("got %+v, %v", op, err)
		}
		want := []time.Duration{0, 3 * time.Second, 3100 * time.Millisecond, 3300 * time.Millisecond, 303300 * time.Millisecond}
		if fmt.Sprint(s.at) != fmt.Sprint(want) {
			t.Errorf("calls at %v, want %v", s.at, want)
		}
	})
}

func TestWaitEndsWithoutSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, code := range map[string]fault.Code{"failed": fault.Conflict, "waiting_input": fault.Invalid} {
			c, _ := play(t, step{200, `{"id":"o1","status":"` + status + `","error":{"code":"artifact_invalid","message":"why"}}`, ""})
			_, err := c.Wait(t.Context(), &Operation{ID: "o1", Status: "running"})
			var oe *OperationError
			if !errors.As(err, &oe) || oe.Operation.Status != status || fault.CodeOf(err) != code || !strings.Contains(err.Error(), "artifact_invalid: why") {
				t.Errorf("%s: %v", status, err)
			}
		}
		c, _ := play(t, step{200, operation("running"), ""}, step{200, operation("running"), ""}, step{200, operation("running"), ""})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		op, err := c.Wait(ctx, &Operation{ID: "o1", Status: "queued"})
		if fault.CodeOf(err) != fault.Timeout || op.Status != "running" {
			t.Errorf("got %+v, %v, want timeout", op, err)
		}
		// What it was last seen at is told too.
		c, _ = play(t, step{200, `{"id":"o1","status":"reconciling","error":{"code":"backend_unavailable","message":"no disk"}}`, "600"})
		again, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = c.Wait(again, &Operation{ID: "o1", Status: "queued"})
		var oe *OperationError
		if fault.CodeOf(err) != fault.Timeout || !errors.As(err, &oe) || !strings.Contains(oe.Error(), "reconciling: backend_unavailable: no disk") {
			t.Errorf("got %v, want timeout with what the Operation shows", err)
		}
	})
}

// host-api §7.4, §11: what leaves acceptance open is repeated under the same key; a verdict is not.
func TestRepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := play(t, step{}, step{503, "", "7"}, step{429, "", ""}, step{502, "", ""}, step{200, operation("succeeded"), ""})
		if _, err := c.Create(t.Context(), Create{}, "key-0123456789abcdef"); err != nil {
			t.Fatal(err)
		}
		for _, k := range s.keys {
			if k != "key-0123456789abcdef" {
				t.Errorf("repeated under another key: %q", s.keys)
			}
		}
		if gap := s.at[2] - s.at[1]; gap != 7*time.Second {
			t.Errorf("Retry-After 7 became %v", gap)
		}
		if gap := s.at[1]; gap < 100*time.Millisecond || gap > 200*time.Millisecond {
			t.Errorf("first repetition after %v", gap)
		}

		c, s = play(t, step{}, step{}, step{}, step{}, step{}, step{})
		if _, err := c.Create(t.Context(), Create{}, NewKey()); fault.CodeOf(err) != fault.Unavailable || len(s.at) != 5 {
			t.Errorf("a dead node: %v after %d attempts", err, len(s.at))
		}
		for _, status := range []int{400, 403, 409, 422, 500} {
			c, s = play(t, step{status, "", ""}, step{200, operation("succeeded"), ""})
			if _, err := c.Create(t.Context(), Create{}, NewKey()); err == nil || len(s.at) != 1 {
				t.Errorf("%d: %v after %d attempts", status, err, len(s.at))
			}
		}
		// A token whose answer was lost must not be made twice.
		c, s = play(t, step{}, step{200, `{}`, ""})
		if _, err := c.CreateToken(t.Context(), Token{}); fault.CodeOf(err) != fault.Unavailable || len(s.at) != 1 {
			t.Errorf("got %v after %d attempts", err, len(s.at))
		}
		// The caller's end is not outwaited.
		c, s = play(t, step{503, "", "60"}, step{200, operation("succeeded"), ""})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Create(ctx, Create{}, NewKey()); err == nil || len(s.at) != 1 || time.Since(s.start) > time.Second {
			t.Errorf("got %v after %d attempts and %v", err, len(s.at), time.Since(s.start))
		}
	})
}
