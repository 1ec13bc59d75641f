package api

import (
	"strconv"
	"testing"
	"time"
)

// host-api §11, 429: a burst is let through, then the rate; one principal's haste is not another's; memory is bounded.
func TestLimiter(t *testing.T) {
	l := newLimiter(10, 20)
	now := time.Unix(1000, 0)
	count := func(principal string, now time.Time) (n int) {
		for l.take("t", principal, now) == 0 {
			n++
		}
		return n
	}
	if got := count("a", now); got != 20 {
		t.Errorf("%d at once", got)
	}
	if got := count("b", now); got != 20 {
		t.Errorf("the other may make %d", got)
	}
	if got := count("a", now.Add(time.Second)); got != 10 {
		t.Errorf("%d after a second", got)
	}
	if got := count("a", now.Add(time.Hour)); got != 20 {
		t.Errorf("%d after an hour", got)
	}
	if wait := l.take("t", "a", now); wait != 1 { // a clock that went back
		t.Errorf("wait is %d", wait)
	}
	slow := newLimiter(1, 1)
	slow.take("t", "a", now)
	if wait := slow.take("t", "a", now); wait != 1 {
		t.Errorf("wait is %d", wait)
	}
	for i := range 3 * maxBuckets {
		l.take("t", strconv.Itoa(i), now)
	}
	if len(l.buckets) > maxBuckets {
		t.Errorf("%d buckets", len(l.buckets))
	}
	l.take("t", "late", now.Add(time.Hour))
	if len(l.buckets) > 1 {
		t.Errorf("%d buckets after an hour", len(l.buckets))
	}
	if newLimiter(0, 0).take("t", "a", now) != 0 {
		t.Error("no limit limits")
	}
}
