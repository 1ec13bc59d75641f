package sqlstore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/faultpoint"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// A Store holds the databases of one node, one file each. All methods are safe for concurrent use.
type Store struct {
	opt  Options
	slow slowLog

	mu     sync.Mutex           // guards the fields below and the fields of each database that say so; never held during I/O
	open   map[string]*database // open, being opened, being closed, or held by exclusive
	unused list.List            // of *database that nobody uses, the one used last in front
	closed bool
}

// Open makes or opens the store's folder. It opens no database and starts nothing. The caller has locked the data directory
// against other processes.
func Open(opt Options) (*Store, error) {
	if err := opt.fill(); err != nil {
		return nil, fault.Wrap(fault.Invalid, "sqlstore.Open", err)
	}
	s := &Store{opt: opt, open: map[string]*database{}}
	return s, s.prepare()
}

// Run closes databases that nobody used for a while, until ctx is done.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(max(s.opt.IdleTime/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			s.evict(0, now.Add(-s.opt.IdleTime))
		}
	}
}

// Close closes every database in order. Calls that are still running end first; later ones get ErrBackend.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var errs []error
	for {
		s.mu.Lock()
		var uid string
		for uid = range s.open {
			break
		}
		s.mu.Unlock()
		if uid == "" {
			return errors.Join(errs...)
		}
		errs = append(errs, s.exclusive(context.Background(), uid, func(string) error { return nil }))
	}
}

// Create makes an empty database with an empty ledger (sql §1). It is durable when Create returns nil. Creating one that is
// there already changes nothing: a uid is never given twice, so it is the same Resource. epoch is the home's; a database
// that was opened under a newer one refuses.
func (s *Store) Create(ctx context.Context, uid string, epoch uint64) (err error) {
	const op = "sqlstore.Create"
	defer func(start time.Time) { s.opt.Metrics.done(opCreate, start, err) }(time.Now())
	return s.exclusive(ctx, uid, func(dir string) error {
		if there, err := exists(dir); err != nil {
			return codecBackend(op, err)
		} else if there {
			have, err := readEpoch(dir)
			if err != nil {
				return codecBackend(op, err)
			}
			if have > epoch {
				return errMoved(op, have)
			}
			return nil
		}
		if err := s.opt.Space.Check(); err != nil {
			return codec.ErrBackend.Wrap(op, err)
		}
		temp, err := s.temporary(uid)
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp) // gone when it was renamed
		if err := s.build(ctx, temp); err != nil {
			return err
		}
		return s.install(temp, dir, epoch)
	})
}

// build makes an empty database with its ledger in dir.
func (s *Store) build(ctx context.Context, dir string) error {
	c, err := engine.Open(engine.Options{Path: mainPath(dir), Create: true})
	if err != nil {
		return err
	}
	err = c.Scan(ctx, engine.Host, createLedger, nil, func([]codec.Value) error { return nil })
	return errors.Join(err, c.Close())
}

// install makes the folder temp the database of dir, durably. dir must not exist.
func (s *Store) install(temp, dir string, epoch uint64) error {
	if err := writeEpoch(temp, epoch); err != nil { // syncs the folder too
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return codecBackend("sqlstore.install", err)
	}
	faultpoint.Hit("sqlstore.installed")
	return disk.SyncDir(filepath.Dir(dir))
}

// Delete removes a database with its schema, ledger and rows. Calls that are running end first. Deleting one that is not there
// is done already.
func (s *Store) Delete(ctx context.Context, uid string) (err error) {
	const op = "sqlstore.Delete"
	defer func(start time.Time) { s.opt.Metrics.done(opDelete, start, err) }(time.Now())
	return s.exclusive(ctx, uid, func(dir string) error {
		if there, err := exists(dir); err != nil || !there {
			return codecBackend(op, err)
		}
		return s.discard(uid, dir)
	})
}

// discard takes the folder of a database away: durably first, then its bytes.
func (s *Store) discard(uid, dir string) error {
	temp, err := s.temporary(uid)
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(temp, "gone")); err != nil {
		return codecBackend("sqlstore.discard", err)
	}
	if err := disk.SyncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	faultpoint.Hit("sqlstore.discarded")
	return codecBackend("sqlstore.discard", os.RemoveAll(temp))
}

// Exists reports whether the database is there; it does not open it.
func (s *Store) Exists(uid string) (bool, error) {
	dir, err := s.folder(uid)
	if err != nil {
		return false, err
	}
	there, err := exists(mainPath(dir))
	return there, codecBackend("sqlstore.Exists", err)
}

// List returns the uids of all databases, in no order.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.opt.Dir, databasesDir))
	if err != nil {
		return nil, codecBackend("sqlstore.List", err)
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

// Database returns the door to one database under its home's epoch (1 on a single node). It does no I/O: a database that
// is not there, or that was opened under a newer epoch, answers every call with ErrBackend.
func (s *Store) Database(uid string, epoch uint64) *Database {
	return &Database{store: s, uid: uid, epoch: epoch}
}

func errMoved(op string, have uint64) error {
	return codec.ErrBackend.Wrap(op, fmt.Errorf("the database was opened under the newer epoch %d", have))
}
