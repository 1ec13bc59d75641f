package disk

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"edged/internal/fault"
)

// ErrFull is in the error of Space.Check.
var ErrFull = fault.Name(fault.Unavailable, "disk_full", 16)

// SpaceOptions says which disk is watched and how much of it stays free.
type SpaceOptions struct {
	Dir     string
	Reserve uint64        // writes are refused below this many free bytes, 0 means 256 MiB; allowed again above 1.25 times that
	Every   time.Duration // between looks, 0 means 2 s
	// Free returns the free bytes of the disk of dir; nil asks the kernel.
	Free func(dir string) (uint64, error)
}

// Space tells the stores whether they may write. All methods are safe for concurrent use.
type Space struct {
	opt  SpaceOptions
	full atomic.Bool
	free atomic.Uint64
}

// NewSpace looks once and returns the watcher; Run keeps it current.
func NewSpace(opt SpaceOptions) *Space {
	if opt.Reserve == 0 {
		opt.Reserve = 256 << 20
	}
	if opt.Every == 0 {
		opt.Every = 2 * time.Second
	}
	if opt.Free == nil {
		opt.Free = freeBytes
	}
	s := &Space{opt: opt}
	s.look()
	return s
}

// Run looks again and again until ctx is done.
func (s *Space) Run(ctx context.Context) error {
	tick := time.NewTicker(s.opt.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.look()
		}
	}
}

// Check returns nil while there is room, else an Unavailable named disk_full. Stores ask before a write that grows them;
// reads and deletes go on.
func (s *Space) Check() error {
	if s == nil || !s.full.Load() {
		return nil
	}
	return ErrFull.Newf("disk.Check", "less than %d MiB are free on the node's disk", s.opt.Reserve>>20)
}

// Free returns the free bytes that the last look found.
func (s *Space) Free() uint64 { return s.free.Load() }

func (s *Space) look() {
	free, err := s.opt.Free(s.opt.Dir)
	if err != nil {
		return // the last answer stands: a failing statfs says nothing about space
	}
	s.free.Store(free)
	limit := s.opt.Reserve
	if s.full.Load() {
		limit += limit / 4
	}
	s.full.Store(free < limit)
}

func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
