package accesslog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/fault"
	"edged/internal/meter"
	"edged/router"
)

// Options says where the log goes, and how much of it.
type Options struct {
	Path     string    // of the file, made with mode 0600; "-" is Out. Required
	Out      io.Writer // nil means the process's standard output
	Sample   float64   // the share of exchanges that is written, 0 means all
	MaxBytes int64     // of the file, before it becomes Path.1; 0 means 64 MiB
	Keep     int       // how many such files stay; 0 means 4

	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void
}

// Metrics counts what a Log does.
type Metrics struct {
	lines   prometheus.Counter
	dropped map[string]prometheus.Counter
}

// Why a line was dropped.
const (
	dropQueue = "queue" // too many waited for the disk
	dropWrite = "write" // the disk refused it
)

// NewMetrics registers the metrics with reg; nil registers nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "node")
	return &Metrics{lines: f.Counter("access_log_lines_total", "Lines written to the access log."),
		dropped: f.CounterBy("access_log_dropped_total", "Lines that the access log lacks.", "reason", dropQueue, dropWrite)}
}

const (
	maxWaiting = 4096     // lines that wait for the disk
	maxKept    = 8 << 10  // capacity of a line's buffer that is used again
	pieceBytes = 32 << 10 // written at once
	lookEvery  = time.Second
)

// Log is an access log. Write may be called by any goroutine, before and while Run runs.
type Log struct {
	opt   Options
	to    io.Writer // of Options.Out, or file
	file  *file     // nil for Out
	queue chan *[]byte
	bufs  sync.Pool // *[]byte: a line per request would keep the collector busy
	piece []byte    // Run's alone: whole lines that were not written yet
	held  int       // how many
	sick  bool      // the last write failed, and that was said
}

// Open opens the file. Close frees it; the node calls it after Run. Errors: Invalid for wrong options, Unavailable for a file that cannot be
// written.
func Open(opt Options) (*Log, error) {
	if opt.Sample == 0 {
		opt.Sample = 1
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = 64 << 20
	}
	if opt.Keep == 0 {
		opt.Keep = 4
	}
	if opt.Out == nil {
		opt.Out = os.Stdout
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(nil)
	}
	var faults []error
	if opt.Path == "" {
		faults = append(faults, errors.New("the access log has no path"))
	}
	if !(opt.Sample > 0 && opt.Sample <= 1) {
		faults = append(faults, fmt.Errorf("a sample of %v is not more than 0 and at most 1", opt.Sample))
	}
	if opt.MaxBytes < 1<<16 || opt.Keep < 0 {
		faults = append(faults, fmt.Errorf("%d bytes are too few for a file, or %d files no number", opt.MaxBytes, opt.Keep))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fault.New(fault.Invalid, "accesslog.Open", err.Error())
	}
	l := &Log{opt: opt, to: opt.Out, queue: make(chan *[]byte, maxWaiting)}
	l.bufs.New = func() any { b := make([]byte, 0, 1<<10); return &b }
	if opt.Path == "-" {
		return l, nil
	}
	f, err := openFile(opt.Path, opt.MaxBytes, opt.Keep)
	if err != nil {
		return nil, fault.Newf(fault.Unavailable, "accesslog.Open", "the access log cannot be written: %v", err)
	}
	l.to, l.file = f, f
	return l, nil
}

// Write is router.Options.Access. It never waits.
func (l *Log) Write(a *router.Access) {
	if l.opt.Sample < 1 && rand.Float64() >= l.opt.Sample {
		return
	}
	if len(l.queue) == cap(l.queue) { // before the work of rendering it
		l.opt.Metrics.dropped[dropQueue].Inc()
		return
	}
	buf := l.bufs.Get().(*[]byte)
	*buf = appendLine((*buf)[:0], a)
	select {
	case l.queue <- buf:
	default:
		l.opt.Metrics.dropped[dropQueue].Inc()
		l.free(buf)
	}
}

func (l *Log) free(buf *[]byte) {
	if cap(*buf) <= maxKept {
		l.bufs.Put(buf)
	}
}

// Run writes until ctx is done, and then what still waits.
func (l *Log) Run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case buf := <-l.queue:
			l.take(buf)
			if len(l.queue) == 0 {
				l.flush()
			}
		case <-look.C:
			if l.file == nil {
				continue
			}
			if err := l.file.look(); err != nil {
				l.tell(err)
			}
		case <-ctx.Done():
			for len(l.queue) > 0 {
				l.take(<-l.queue)
			}
			l.flush()
			return context.Cause(ctx)
		}
	}
}

func (l *Log) take(buf *[]byte) {
	if len(l.piece)+len(*buf) > pieceBytes {
		l.flush()
	}
	l.piece = append(l.piece, *buf...)
	l.held++
	l.free(buf)
}

func (l *Log) flush() {
	if l.held == 0 {
		return
	}
	_, err := l.to.Write(l.piece)
	if l.tell(err); err != nil {
		l.opt.Metrics.dropped[dropWrite].Add(float64(l.held))
	} else {
		l.opt.Metrics.lines.Add(float64(l.held))
	}
	l.piece, l.held = l.piece[:0], 0
}

// tell writes to the node's log when the file begins to fail, and when it is well again.
func (l *Log) tell(err error) {
	switch {
	case err != nil && !l.sick:
		l.opt.Log.Error("the access log cannot be written; lines are lost until it can", "err", err, "do", "look at its directory: free space, owner, permissions")
	case err == nil && l.sick:
		l.opt.Log.Info("the access log is written again")
	}
	l.sick = err != nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, "accesslog.Close", l.file.close())
}
