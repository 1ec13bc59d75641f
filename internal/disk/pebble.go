package disk

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/fault"
)

// PebbleOptions says where and how a store's Pebble lives.
type PebbleOptions struct {
	Dir     string        // required
	FS      vfs.FS        // nil means the real filesystem; tests pass a crashable one
	Cache   *pebble.Cache // nil means a private cache of 8 MiB; the caller keeps its own reference
	MemSize uint64        // memtable bytes, 0 means 4 MiB
	Log     *slog.Logger  // nil discards
}

// OpenPebble opens or makes a Pebble store with the node's defaults. The caller closes it.
func OpenPebble(opt PebbleOptions) (*pebble.DB, error) {
	if opt.MemSize == 0 {
		opt.MemSize = 4 << 20
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	po := &pebble.Options{
		FS:                    opt.FS,
		Cache:                 opt.Cache,
		MemTableSize:          opt.MemSize,
		FormatMajorVersion:    pebble.FormatNewest,
		L0CompactionThreshold: 4,
		Logger:                pebbleLog{opt.Log},
	}
	if po.Cache == nil {
		po.Cache = pebble.NewCache(8 << 20)
		defer po.Cache.Unref()
	}
	if po.FS == nil {
		po.FS = vfs.Default
		if err := Prepare(opt.Dir); err != nil {
			return nil, err
		}
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(opt.Dir, po)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "disk.OpenPebble", fmt.Errorf("open store %s: %w", opt.Dir, err))
	}
	return db, nil
}

// pebbleLog sends what Pebble says to the node's log; its routine chatter is debug.
type pebbleLog struct{ log *slog.Logger }

func (l pebbleLog) Infof(format string, args ...any) {
	l.log.Debug("store", "message", fmt.Sprintf(format, args...))
}

func (l pebbleLog) Errorf(format string, args ...any) {
	l.log.Error("store", "message", fmt.Sprintf(format, args...), "do", "see the message; most often it is the disk: free space, and the kernel's log for errors")
}

// Fatalf is Pebble's "cannot go on": a failed commit leaves memory and disk apart, so the process must not.
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.log.Error("store gives up", "message", fmt.Sprintf(format, args...), "do", "the node starts again by itself; if it gives up again, restore the store from a backup")
	panic("disk: " + fmt.Sprintf(format, args...))
}
