package kv

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/kv/replica"
)

// Options are what a store is made of. Only Dir is required.
type Options struct {
	Dir        string        // the room's own directory
	Node       string        // this node's name, as members know it; "" while it runs alone
	FS         vfs.FS        // nil means the real filesystem; tests pass a crashable one
	Cache      *pebble.Cache // nil means a private cache of 32 MiB; it must be larger than two memtables, whose bytes it gives up
	MemSize    uint64        // memtable bytes, 0 means 16 MiB
	Space      *disk.Space   // asked before a put; nil means there is always room
	QuotaBytes int64         // per namespace: values, keys, metadata and 96 bytes a record; 0 means no quota
	Grace      time.Duration // how long a tombstone is kept at least, 0 means 24 h; the same on all nodes
	BlobGrace  time.Duration // how long a value file that nobody names any more is kept, 0 means 10 min
	Peers      *PeerOptions  // nil means that the node runs alone
	Log        *slog.Logger  // nil discards
	Metrics    *Metrics      // nil counts into the void

	clock func() int64          // Unix milliseconds; nil means the wall clock
	draw  func() replica.Origin // nil draws at random
	rules replica.Rules

	unsynced bool // commits are visible at once and durable when a test says so
}

func (o *Options) fill() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("no directory"))
	}
	if o.QuotaBytes < 0 || o.Grace < 0 || o.BlobGrace < 0 {
		errs = append(errs, errors.New("a quota or time is below zero"))
	}
	if o.MemSize == 0 {
		o.MemSize = 16 << 20
	}
	if o.Grace == 0 {
		o.Grace = 24 * time.Hour
	}
	if o.BlobGrace == 0 {
		o.BlobGrace = 10 * time.Minute
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
	if o.draw == nil {
		o.draw = drawOrigin
	}
	if o.Peers != nil {
		errs = append(errs, o.Peers.fill(o.Node))
	}
	if err := errors.Join(errs...); err != nil {
		return fault.Wrap(fault.Invalid, "kv.Open", err)
	}
	return nil
}
