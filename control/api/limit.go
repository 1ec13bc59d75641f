package api

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// maxBuckets bounds the principals that are counted apart.
const maxBuckets = 4096

// limiter gives each principal a bucket of requests that refills at a steady rate.
type limiter struct {
	rate, burst float64 // rate 0 means no limit

	mu      sync.Mutex // guards the fields below
	buckets map[string]*bucket
	shared  bucket // of those for whom there is no place, while every bucket is in use
}

type bucket struct {
	left float64
	at   time.Time
}

func newLimiter(rate, burst int) *limiter {
	return &limiter{rate: float64(rate), burst: float64(max(rate, burst)), buckets: map[string]*bucket{}}
}

// take counts one request; 0 lets it through, else it may be tried again after so many whole seconds.
func (l *limiter) take(tenant, principal string, now time.Time) (wait int) {
	if l.rate == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketLocked(tenant+"\x00"+principal, now)
	b.left, b.at = l.filled(b, now), now
	if b.left >= 1 {
		b.left--
		return 0
	}
	return max(1, int(math.Ceil((1-b.left)/l.rate)))
}

func (l *limiter) filled(b *bucket, now time.Time) float64 {
	return min(l.burst, b.left+max(0, now.Sub(b.at).Seconds())*l.rate)
}

func (l *limiter) bucketLocked(key string, now time.Time) *bucket {
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= maxBuckets {
		for k, b := range l.buckets { // one that is full again says no more than none
			if l.filled(b, now) >= l.burst {
				delete(l.buckets, k)
			}
		}
	}
	if len(l.buckets) >= maxBuckets {
		return &l.shared
	}
	b := &bucket{left: l.burst, at: now}
	l.buckets[key] = b
	return b
}

func rateLimited(wait int) *problem {
	return &problem{status: http.StatusTooManyRequests, code: "rate_limited", detail: "this principal makes too many requests", retry: wait}
}
