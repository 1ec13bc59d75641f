package objects

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
)

// Options are what a store is made of. Only Dir is required.
type Options struct {
	Dir        string        // the room's own directory
	FS         vfs.FS        // nil means the real filesystem; tests pass a crashable one, for Pebble and bodies alike
	Cache      *pebble.Cache // nil means a private cache of 8 MiB
	MemSize    uint64        // memtable bytes, 0 means 16 MiB
	Space      *disk.Space   // asked before a body grows the disk; nil means there is always room
	QuotaBytes int64         // per bucket: bodies, keys and 128 bytes per object, upload and part; 0 means no quota
	CursorKey  []byte        // at least 16 bytes; nil means a secret of this store, kept in it
	Grace      time.Duration // how long the file of a replaced or deleted body is kept, 0 means 10 min
	OrphanAge  time.Duration // how old a file that nothing names has to be before it is removed, 0 means 1 h
	UploadIdle time.Duration // uploads without a new part for so long are aborted, 0 means 7 days
	Sweep      time.Duration // between sweeps, 0 means 30 s
	ScrubRate  int64         // bytes per second of the background scrub, 0 means 8 MiB, below 0 turns it off
	Log        *slog.Logger  // nil discards
	Metrics    *Metrics      // nil counts into the void

	clock func() int64 // Unix milliseconds; nil means the wall clock
}

func (o *Options) fill() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("no directory"))
	}
	if o.CursorKey != nil && len(o.CursorKey) < 16 {
		errs = append(errs, errors.New("the cursor key has under 16 bytes"))
	}
	if o.QuotaBytes < 0 || o.Grace < 0 || o.OrphanAge < 0 || o.UploadIdle < 0 || o.Sweep < 0 {
		errs = append(errs, errors.New("a quota or time is below zero"))
	}
	if o.MemSize == 0 {
		o.MemSize = 16 << 20
	}
	for _, d := range []struct {
		field *time.Duration
		zero  time.Duration
	}{{&o.Grace, 10 * time.Minute}, {&o.OrphanAge, time.Hour}, {&o.UploadIdle, 7 * 24 * time.Hour}, {&o.Sweep, 30 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.zero
		}
	}
	if o.ScrubRate == 0 {
		o.ScrubRate = 8 << 20
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
