package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/internal/testkit"
)

// queue §5, call by call: r retries, a acknowledges, A and R all; then the end, and what it leaves to do.
func TestBatchScripts(t *testing.T) {
	for _, tt := range []struct {
		calls   string
		outcome Outcome
		results string
		places  string
		do      Action
	}{
		{"", Returned, "", "[0 1 2]", Acknowledge},
		{"", Threw, "", "[0 1 2]", Retry},
		{"", Unknown, "", "[0 1 2]", Doubt},
		{"", NotReached, "", "[0 1 2]", Return},
		{"a0", Threw, "ok", "[1 2]", Retry},
		{"a0", NotReached, "ok", "[1 2]", Doubt}, // a settled message proves that a handler ran
		{"a0 r1", Threw, "ok ok", "[2]", Retry},
		{"a0 a0 r0 r1 a1", Returned, "ok already_settled already_settled ok already_settled", "[2]", Acknowledge},
		{"a7 r7", Returned, "unknown_message unknown_message", "[0 1 2]", Acknowledge},
		{"a0 R A R", Threw, "ok ok ok ok", "[]", Retry},
		{"R a1", Returned, "ok already_settled", "[]", Acknowledge},
	} {
		b := NewBatch([]string{"0", "1", "2"})
		var results []string
		for _, call := range strings.Fields(tt.calls) {
			results = append(results, do(b, call))
		}
		if got := strings.Join(results, " "); got != tt.results {
			t.Errorf("%q: %s, want %s", tt.calls, got, tt.results)
		}
		e := b.End(tt.outcome)
		if got := fmt.Sprint(e.Places); got != tt.places || e.Do != tt.do {
			t.Errorf("%q then %v: %s %v, want %s %v", tt.calls, tt.outcome, got, e.Do, tt.places, tt.do)
		}
		for _, call := range []string{"a0", "r1", "A", "R"} {
			if got := do(b, call); got != "unknown_batch" {
				t.Errorf("%s after the end: %s", call, got)
			}
		}
	}
}

func do(b *Batch, call string) string {
	var err error
	switch call[0] {
	case 'a':
		_, err = b.Acknowledge(call[1:])
	case 'r':
		_, err = b.Retry(call[1:])
	case 'A':
		_, err = b.AcknowledgeAll()
	case 'R':
		_, err = b.RetryAll()
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// Whatever the calls: every message gets exactly one outcome.
func TestEveryMessageSettlesOnce(t *testing.T) {
	rng := testkit.Rand(t)
	for range 2000 {
		n := 1 + rng.IntN(5)
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		b := NewBatch(ids)
		settled := make([]int, n)
		count := func(places []int) {
			for _, p := range places {
				settled[p]++
			}
		}
		for range rng.IntN(8) {
			switch id := fmt.Sprint(rng.IntN(n)); rng.IntN(5) {
			case 0, 1:
				if p, err := b.Acknowledge(id); err == nil {
					count([]int{p})
				} else if !errors.Is(err, ErrSettled) {
					t.Fatal(err)
				}
			case 2, 3:
				if p, err := b.Retry(id); err == nil {
					count([]int{p})
				}
			case 4:
				places, _ := b.RetryAll()
				count(places)
			}
			if open := len(b.Unsettled()); open != b.Open() {
				t.Fatalf("%d unsettled, %d open", open, b.Open())
			}
		}
		count(b.End(Outcome(rng.IntN(4))).Places)
		for p, times := range settled {
			if times != 1 {
				t.Fatalf("message %d settled %d times", p, times)
			}
		}
	}
}

// queue §6: at most 1 + maxRetries deliveries; §1: retention counts from acceptance, in milliseconds.
func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		attempts, maxRetries int
		want                 bool
	}{{1, 0, true}, {1, 1, false}, {2, 1, true}, {3, 1, true}, {100, 100, false}, {101, 100, true}} {
		if got := Exhausted(tt.attempts, tt.maxRetries); got != tt.want {
			t.Errorf("Exhausted(%d, %d) = %t", tt.attempts, tt.maxRetries, got)
		}
	}
	for _, tt := range []struct {
		age  int64
		want bool
	}{{0, false}, {59_999, false}, {60_000, true}, {-5, false}} {
		if got := Expired(1000, 1000+tt.age, time.Minute); got != tt.want {
			t.Errorf("Expired after %d ms = %t", tt.age, got)
		}
	}
}

// Outcomes are metric labels: their names are pinned.
func TestOutcomeNames(t *testing.T) {
	if got := fmt.Sprint(Unknown, Returned, Threw, NotReached, Outcome(9)); got != "unknown returned threw not_reached unknown" {
		t.Error(got)
	}
}
