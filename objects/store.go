package objects

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
)

// formatVersion is the version of everything below the store's directory.
const formatVersion = 1

const roomName = "objects"

// Store holds all buckets of a node. All methods but Close are safe for concurrent use.
type Store struct {
	opt     Options // set by Open, then constant
	fs      vfs.FS
	db      *pebble.DB
	files   files
	garbage *garbage
	cursors cursors
	checked checked

	sweeps atomic.Uint64

	catalog sync.Mutex // makes Create and Delete one after the other; held while they wait for the disk. Taken before a bucket's and mu
	last    uint64     // the last bucket number given out; guarded by catalog

	mu      sync.RWMutex       // guards the fields below; every call takes it, so nobody waits for the disk or a bucket's lock with it
	buckets map[string]*bucket // by uid: those whose making is durable and whose end is not
	dying   map[uint64]bool    // numbers of deleted buckets that still have contents
}

// Open opens or makes the store of a directory. It starts nothing: Run sweeps and scrubs, Close frees. Errors: Conflict for a
// newer format, Invalid for options, Unavailable.
func Open(opt Options) (*Store, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	s := &Store{opt: opt, fs: opt.FS, buckets: map[string]*bucket{}, dying: map[uint64]bool{}}
	if s.fs == nil {
		if err := disk.Prepare(opt.Dir); err != nil {
			return nil, err
		}
		if _, err := disk.CheckFormat(opt.Dir, roomName, formatVersion); err != nil {
			return nil, err
		}
		s.fs = vfs.Default
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, "objects.Open", err), s.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	root := s.fs.PathJoin(s.opt.Dir, "blobs")
	err := s.fs.MkdirAll(s.opt.Dir, 0o700)
	if err == nil {
		err = syncDir(s.fs, s.fs.PathDir(s.opt.Dir)) // what is acknowledged must not vanish with the directory
	}
	if err == nil {
		err = folders(s.fs, root)
	}
	if err != nil {
		return err
	}
	if s.opt.FS == nil {
		s.files, err = openFiles(root)
	} else {
		s.files, err = openNamedFiles(s.fs, root)
	}
	if err != nil {
		return err
	}
	s.db, err = disk.OpenPebble(disk.PebbleOptions{Dir: s.fs.PathJoin(s.opt.Dir, "db"), FS: s.opt.FS,
		MemSize: 16 << 20, Log: s.opt.Log})
	if err != nil {
		return err
	}
	s.garbage = newGarbage(s)
	if err := s.openCursors(); err != nil {
		return err
	}
	return s.load()
}

// load reads which buckets there are and what they hold.
func (s *Store) load() error {
	v, err := s.get(lastNumberKey)
	if err != nil {
		return err
	}
	if len(v) == 8 {
		s.last = binary.BigEndian.Uint64(v)
	}
	err = s.scan([]byte{catalogClass}, []byte{catalogClass + 1}, func(k, v []byte) error {
		c, err := readCatalog(v)
		if err != nil {
			return fmt.Errorf("bucket %q: %w", k[1:], err)
		}
		b := &bucket{s: s, uid: string(k[1:]), num: c.num, epoch: c.epoch, created: c.created}
		u, err := s.get(bucketKey(usageClass, c.num))
		if err != nil {
			return err
		}
		if u != nil {
			if b.usage, err = readUsage(u); err != nil {
				return fmt.Errorf("usage of bucket %q: %w", k[1:], err)
			}
		}
		b.used.Store(b.usage.bytes)
		s.buckets[b.uid] = b
		return nil
	})
	if err != nil {
		return err
	}
	return s.scan([]byte{dyingClass}, []byte{dyingClass + 1}, func(k, _ []byte) error {
		if len(k) != bucketKeyLen {
			return errRecord
		}
		s.dying[binary.BigEndian.Uint64(k[1:])] = true
		return nil
	})
}

// Run sweeps and scrubs until ctx is done. Call it once.
func (s *Store) Run(ctx context.Context) error {
	var scrub sync.WaitGroup
	defer scrub.Wait()
	scrub.Go(func() { s.scrubForever(ctx) })
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.opt.Log.Warn("objects sweep is incomplete", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Close frees what Open took. Call it when Run has returned and no call is in progress; a body that is still open fails.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return fault.Wrap(fault.Unavailable, "objects.Close", err)
}

// get returns a copy of the value of a key, nil if there is none.
func (s *Store) get(key []byte) ([]byte, error) {
	v, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append([]byte{}, v...), nil
}

// scan calls fn for every key from from to before to, until fn fails. The slices are valid during the call only.
func (s *Store) scan(from, to []byte, fn func(k, v []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		var v []byte
		if v, err = it.ValueAndErr(); err == nil {
			err = fn(it.Key(), v)
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}

// find returns a bucket, or backend_unavailable.
func (s *Store) find(op, uid string) (*bucket, error) {
	b := s.bucket(uid)
	if b == nil {
		return nil, missing(op, uid)
	}
	return b, nil
}

// bucket returns a bucket, nil if it is not here.
func (s *Store) bucket(uid string) *bucket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.buckets[uid]
}

// byNumber returns the bucket of a number, nil if it is not here.
func (s *Store) byNumber(num uint64) *bucket {
	for _, b := range s.all() {
		if b.num == num {
			return b
		}
	}
	return nil
}

// sync makes everything that was written before durable: Pebble's log is one sequence.
func (s *Store) sync() error { return s.db.LogData(nil, pebble.Sync) }
