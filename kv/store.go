package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/kv/gossip"
	"edged/kv/replica"
)

const formatVersion = 1

const (
	ownCache     = 32 << 20 // of blocks, when the caller brings no cache
	maxMemtables = 2        // one is filled while another is flushed; Pebble takes their bytes out of the cache's
)

// Store is the node's KV: all namespaces in one durable store. All methods are safe for concurrent use.
type Store struct {
	opt     Options
	db      *pebble.DB
	ledger  *ledger
	commits *committer
	blobs   *blobs
	cursors cursors

	members    atomic.Pointer[[]Member] // the others; replaced whole
	restoredMs atomic.Int64             // what a restored backup had caught up to; 0 when that does not matter (any more)

	kicked    chan struct{} // capacity 1: the members changed
	doorbells atomic.Pointer[map[replica.Origin]chan struct{}]
	fetches   chan struct{} // capacity maxFetches
	seen      watch
	bell      atomic.Pointer[gossip.Bell]
	refusals  refusals
	serving   atomic.Int64 // requests of peers in progress

	coverMu  sync.Mutex // guards coverage; taken after ledger.mu where both are held
	coverage *replica.Coverage
}

// Open opens or makes the store of a directory. It starts nothing: Run sweeps (and replicates), Close frees. A directory that a
// backup was restored into gets a new epoch. Errors: Conflict for a newer format, Invalid for options, Unavailable.
func Open(opt Options) (*Store, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	if opt.FS == nil {
		if err := disk.Prepare(opt.Dir); err != nil {
			return nil, err
		}
		if _, err := disk.CheckFormat(opt.Dir, "kv", formatVersion); err != nil {
			return nil, err
		}
		opt.FS = vfs.Default
	}
	s := &Store{opt: opt, kicked: make(chan struct{}, 1), fetches: make(chan struct{}, maxFetches), coverage: replica.NewCoverage(opt.rules),
		seen: watch{level: map[replica.Origin]time.Time{}, heads: map[replica.Origin]gossip.Head{}}}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	fs := s.opt.FS
	err := fs.MkdirAll(s.opt.Dir, 0o700)
	if err == nil {
		err = syncDir(fs, fs.PathDir(s.opt.Dir)) // what is acknowledged must not vanish with the directory
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, "kv.Open", err)
	}
	if s.opt.Cache == nil {
		s.opt.Cache = pebble.NewCache(ownCache + maxMemtables*int64(s.opt.MemSize))
		defer s.opt.Cache.Unref()
	}
	s.db, err = disk.OpenPebble(disk.PebbleOptions{Dir: fs.PathJoin(s.opt.Dir, "db"), FS: fs, Cache: s.opt.Cache,
		MemSize: s.opt.MemSize, Log: s.opt.Log})
	if err != nil {
		return err
	}
	if s.ledger, err = openLedger(s.db, s.opt.clock, s.opt.draw, s.opt.QuotaBytes, s.opt.rules); err == nil {
		s.commits = newCommitter(s.ledger)
		s.commits.unsynced = s.opt.unsynced
		s.blobs, err = openBlobs(fs, fs.PathJoin(s.opt.Dir, "blobs"))
	}
	if err == nil {
		s.ledger.onOrphans = func(staged uint64, ds []digest) { s.blobs.orphaned(staged, ds, s.opt.clock()) }
		err = s.openCursors()
	}
	if err == nil {
		err = s.takeRestored()
	}
	if err == nil {
		err = s.loadFence()
	}
	return fault.Wrap(fault.Unavailable, "kv.Open", err)
}

// openCursors makes the cursor secret once and keeps it.
func (s *Store) openCursors() error {
	key := []byte{prefixMeta, 'c'}
	v, err := get(s.db, key)
	if err != nil {
		return err
	}
	if v == nil {
		v = make([]byte, 32)
		rand.Read(v) // never fails: the runtime ends the process instead
		err = s.db.Set(key, v, pebble.Sync)
	}
	s.cursors.secret = v
	return err
}

// Run sweeps, and replicates when the store has peers, until ctx is done. Call it once. It returns early only when gossip
// cannot start: a key file that is not one, a port that is taken.
func (s *Store) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	defer parts.Wait()
	if s.opt.Peers != nil {
		pulls := &pullers{s: s, running: map[replica.Origin]*pulling{}, fails: map[replica.Origin]int{}}
		parts.Go(func() { pulls.run(ctx) })
		parts.Go(func() { s.runWatch(ctx) })
		if s.opt.Peers.Gossip != nil {
			bell, err := s.openGossip()
			if err != nil {
				cancel()
				return err
			}
			parts.Go(func() { s.runGossip(ctx, bell) })
		}
	}
	s.runSweeps(ctx)
	return nil
}

// Close frees what Open took. Call it when Run has returned and no call is in progress.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return fault.Wrap(fault.Unavailable, "kv.Close", err)
}

// Epoch returns the origin of this store: what members of a fleet know it by. It changes when the disk is new or restored.
func (s *Store) Epoch() replica.Origin { return s.ledger.epoch }

// Namespace returns the door to a namespace, which need not exist.
func (s *Store) Namespace(uid string) *Namespace { return &Namespace{s: s, uid: uid} }

// Create makes an empty namespace, durably. epoch is that of its home (1 on a single node). Calling it again with the same or a
// greater epoch is no error. Conflict: the namespace was deleted, or epoch is older than the one known.
func (s *Store) Create(ctx context.Context, uid string, epoch uint64) error {
	if err := errors.Join(CheckUID(uid), ctx.Err()); err != nil {
		return err
	}
	return s.admin("kv.Create", func(t *tx) error { return t.createSpace(uid, epoch) })
}

// Delete deletes a namespace with all its data, durably: once it returns, nothing of it is visible and records of it that peers
// still send are dropped. Space is freed by the sweep, which goes on after a crash. Deleting what is not here is no error and
// has the same effect.
func (s *Store) Delete(ctx context.Context, uid string) error {
	if err := errors.Join(CheckUID(uid), ctx.Err()); err != nil {
		return err
	}
	return s.admin("kv.Delete", func(t *tx) error { return t.deleteSpace(uid) })
}

func (s *Store) admin(op string, fn func(*tx) error) error {
	err := s.commits.do(256, fn)
	if fault.CodeOf(err) == fault.Conflict {
		return err
	}
	return fault.Wrap(fault.Unavailable, op, err)
}

// Namespaces returns the UIDs of the namespaces that were made here and not deleted, in any order.
func (s *Store) Namespaces() (uids []string) {
	s.ledger.spaces.Range(func(uid, x any) bool {
		if x.(*space).is() == stateLive {
			uids = append(uids, uid.(string))
		}
		return true
	})
	return uids
}

// Exists reports whether a namespace is here and not deleted.
func (s *Store) Exists(uid string) bool {
	sp := s.ledger.space(uid)
	return sp != nil && sp.is() == stateLive
}

// SetNamespaces makes the namespaces of live exist and those of dead deleted, durably. Namespaces in neither list stay as they
// are: nothing is deleted because a list is short. A name in both is deleted.
func (s *Store) SetNamespaces(ctx context.Context, live map[string]uint64, dead []string) error {
	var errs []error
	for _, uid := range dead {
		if sp := s.ledger.space(uid); sp == nil || !sp.dead() {
			errs = append(errs, s.Delete(ctx, uid))
		}
	}
	for uid, epoch := range live {
		if sp := s.ledger.space(uid); sp == nil || !sp.dead() && (sp.is() != stateLive || sp.epoch.Load() < epoch) {
			if err := s.Create(ctx, uid, epoch); err != nil {
				errs = append(errs, fmt.Errorf("namespace %s: %w", uid, err))
			}
		}
	}
	return errors.Join(errs...)
}

// coveredLocked reports whether nobody can need a tombstone. This store is one of those who must cover it: a tombstone that came in a
// session which broke off before its live mark is all that stands for older writes that the vector claims. A node that is alone and never took a record from anybody needs
// no list of members to know.
func (s *Store) coveredLocked(v replica.Version) bool {
	if s.opt.Peers == nil && len(s.ledger.vector) <= 1 {
		return true
	}
	own := s.ledger.vector.Covers(v.Origin, v.Seq) || s.opt.rules.NoCoverage || s.opt.rules.NoOwnCoverage
	return own && s.coverage.Covered(v)
}
