package objects

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
)

// Options are what a store is made of. Only Dir is required.
type Options struct {
	Dir        string        // the room's own directory
	FS         vfs.FS        // nil means the real filesystem; tests pass a crashable one, for Pebble and bodies alike
	Space      *disk.Space   // asked before a body grows the disk; nil means there is always room
	QuotaBytes int64         // per bucket: bodies, keys and 128 bytes per object, upload and part; 0 means no quota
	Grace      time.Duration // how long the file of a replaced or deleted body is kept, 0 means 10 min
	OrphanAge  time.Duration // how old a file that nothing names has to be before it is removed, 0 means 1 h
	Log        *slog.Logger  // nil discards
	Metrics    *Metrics      // nil counts into the void

	clock func() int64 // Unix milliseconds; nil means the wall clock
}

func (o *Options) fill() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("no directory"))
	}
	if o.QuotaBytes < 0 || o.Grace < 0 || o.OrphanAge < 0 {
		errs = append(errs, errors.New("a quota or time is below zero"))
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Minute
	}
	if o.OrphanAge == 0 {
		o.OrphanAge = time.Hour
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.clock == nil {
		o.clock = func() int64 { return time.Now().UnixMilli() }
	}
	if err := errors.Join(errs...); err != nil {
		return fault.New(fault.Invalid, "objects.Open", err.Error())
	}
	return nil
}
