package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/queue/lease"
)

// Outcome says how a delivery ended; see the constants.
type Outcome = lease.Outcome

// The outcomes of a delivery (queue §5).
const (
	Unknown    = lease.Unknown    // it may have run, wholly or in part
	Returned   = lease.Returned   // the handler's promise was fulfilled: what is unsettled is acknowledged
	Threw      = lease.Threw      // it was rejected, or a limit ended the handler: what is unsettled is retried
	NotReached = lease.NotReached // provably no handler saw the batch: the delivery does not count
)

// Options says where the store lives and what it is connected to.
type Options struct {
	Dir     string       // required
	FS      vfs.FS       // nil means the real filesystem; tests pass a crashable one
	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void
	Space   *disk.Space  // nil means that the disk is never full
	Quota   int64        // bytes of messages that one queue may hold, 0 means 16 GiB; above it sends are refused

	// Deliver hands a batch to a handler and returns when its promise has settled, or when its fate is known. The error is
	// for the log. It must return soon after ctx is done. The batch and its bodies are its own until it returns. Called from
	// many goroutines at once. Required for Run.
	Deliver func(ctx context.Context, b *Batch) (Outcome, error)

	// Lease is how far ahead a holding process announces that it is alive: after a crash its batches stay out of delivery
	// for at most that long, which also slows down a message that kills the process. 0 means 10 s.
	Lease time.Duration
	// Drain is how long Run lets deliveries finish once it was told to stop, before it cancels them; 0 means 5 s.
	Drain time.Duration
}

func (o Options) complete() (Options, error) {
	var faults []error
	if o.Dir == "" {
		faults = append(faults, errors.New("a store needs Dir"))
	}
	if o.Quota < 0 || o.Lease < 0 || o.Drain < 0 {
		faults = append(faults, errors.New("none of Quota, Lease and Drain is negative"))
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Quota == 0 {
		o.Quota = 16 << 30
	}
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 5 * time.Second
	}
	return o, errors.Join(faults...)
}
