package sandbox

import (
	"sync"
	"sync/atomic"
	"time"

	"edged/sandbox/event"
)

// loan is a source in the hands of somebody who is not the guest: a response that only forwards it, or a call that sends
// it on. Its methods are event.Body's and io.ReadCloser's.
type loan struct {
	body    event.Body
	metrics *Metrics
	once    sync.Once
	over    chan struct{} // closed when it was read to its end, failed, or was closed

	passed atomic.Int64 // bytes
	waited atomic.Int64 // nanoseconds spent in Reads that are over
	since  atomic.Int64 // start of the Read that waits, Unix nanoseconds; 0 if none does
}

func newLoan(body event.Body, m *Metrics) *loan {
	return &loan{body: body, metrics: m, over: make(chan struct{})}
}

// TryRead is event.Body's.
func (l *loan) TryRead(p []byte) (int, error) { return l.note(l.body.TryRead(p)) }

// Read is event.Body's.
func (l *loan) Read(p []byte) (int, error) {
	start := time.Now().UnixNano()
	l.since.Store(start)
	n, err := l.body.Read(p)
	l.since.Store(0)
	l.waited.Add(time.Now().UnixNano() - start)
	return l.note(n, err)
}

// waiting returns how long Reads have waited so far. It may be off by one of them while that ends.
func (l *loan) waiting() time.Duration {
	d := l.waited.Load()
	if since := l.since.Load(); since != 0 {
		d += max(0, time.Now().UnixNano()-since)
	}
	return time.Duration(d)
}

func (l *loan) note(n int, err error) (int, error) {
	l.metrics.bodySpliced.Add(float64(n))
	l.passed.Add(int64(n))
	if err != nil {
		l.finish()
	}
	return n, err
}

// Close is event.Body's.
func (l *loan) Close() error {
	l.finish()
	return l.body.Close()
}

func (l *loan) finish() { l.once.Do(func() { close(l.over) }) }

// abandon ends a loan that is still open.
func (l *loan) abandon() {
	select {
	case <-l.over:
	default:
		l.Close()
	}
}
