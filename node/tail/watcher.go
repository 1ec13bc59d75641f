package tail

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"edged/sandbox"
	"edged/sandbox/event"
)

// What a watcher that does not read may leave waiting.
const (
	maxLines = 1024
	maxBytes = 1 << 20
)

// aliveEvery is how often a watcher that has nothing to be told is told that it is still connected.
const aliveEvery = 15 * time.Second

// Watcher is one who watches. Serve is called once; all else of it may be called by any goroutine.
type Watcher struct {
	hub    *Hub
	worker string
	filter Filter
	lines  chan line // capacity maxLines; never closed

	waiting atomic.Int64  // bytes in lines
	dropped atomic.Uint64 // lines since the last time that was told
}

// line is one thing to tell: an invocation or an entry of the log.
type line struct {
	invocation *event.Invocation
	entry      sandbox.Entry
	size       int64
}

func (w *Watcher) invocation(i *event.Invocation) {
	if i.Status == 0 && (i.Kind == event.KindFetch || i.Kind == event.KindService) {
		i.Status = w.hub.status(i.Outcome)
	}
	if !w.filter.takes(i) || !w.drawn() {
		return
	}
	own := *i
	own.Receipt.Waits = slices.Clone(i.Receipt.Waits)
	w.offer(line{invocation: &own, size: int64(512 + len(i.URL) + len(i.Method) + 64*len(i.Receipt.Waits))})
}

func (w *Watcher) console(e *sandbox.Entry) {
	if w.filter.takesEntry(e) && w.drawn() {
		w.offer(line{entry: *e, size: int64(256 + len(e.Text))})
	}
}

func (w *Watcher) drawn() bool { return w.filter.Sample >= 1 || rand.Float64() < w.filter.Sample }

// offer never waits.
func (w *Watcher) offer(l line) {
	if w.waiting.Add(l.size) <= maxBytes {
		select {
		case w.lines <- l:
			return
		default:
		}
	}
	w.waiting.Add(-l.size)
	w.dropped.Add(1)
	w.hub.metrics.dropped.Inc()
}

// Close ends the watching. Idempotent.
func (w *Watcher) Close() { w.hub.close(w) }

// Serve writes what happens to out, one JSON document a line, until ctx is done, a write fails, or the hub is stopped; then it says so in
// a last line. flush is called when nothing more is there to be written. The error is that of a write.
func (w *Watcher) Serve(ctx context.Context, out io.Writer, flush func() error) error {
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	var buf []byte
	write := func() error {
		_, err := out.Write(buf)
		return err
	}
	buf = appendMark(buf[:0], "watching", time.Now())
	for {
		if err := write(); err != nil {
			return err
		}
		if len(w.lines) == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		buf = buf[:0]
		select {
		case l := <-w.lines:
			w.waiting.Add(-l.size)
			buf = w.appendDropped(buf)
			buf = l.append(buf)
		case now := <-alive.C:
			buf = appendMark(w.appendDropped(buf), "alive", now)
		case <-ctx.Done():
			return nil
		case <-w.hub.stopped:
			buf = appendMark(w.appendDropped(buf), "stopping", time.Now())
			if err := write(); err != nil {
				return err
			}
			return flush()
		}
	}
}

func (w *Watcher) appendDropped(buf []byte) []byte {
	if n := w.dropped.Swap(0); n > 0 {
		buf = appendDropped(buf, n, time.Now())
	}
	return buf
}
