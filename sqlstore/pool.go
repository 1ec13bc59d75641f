package sqlstore

import (
	"container/list"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// A database is one that is open, or in between: being opened, closed, or held by exclusive. It has one writing connection
// behind a queue that is first come, first served, and up to Options.Readers reading ones.
type database struct {
	uid string
	dir string

	// Guarded by Store.mu.
	refs    int           // calls that use it
	closing bool          // no new call may have it; they wait for gone
	drained chan struct{} // closed when refs reaches 0 while closing; nil when nobody waits
	gone    chan struct{} // closed when the entry left the map, or is open again
	elem    *list.Element // in Store.unused while refs is 0
	used    time.Time

	ready chan struct{} // closed when opening ended, which sets err
	err   error

	epochMu sync.Mutex
	epoch   uint64

	migrate *semaphore.Weighted // 1: one application of migrations at a time, before write
	write   *semaphore.Weighted // 1: first come, first served
	writer  *engine.Conn        // whoever holds write; nil until needed and after a failure
	moved   int                 // frames of the write-ahead log at the last checkpoint; whoever holds write
	marked  bool                // the mark is beside the file; whoever holds write

	read    *semaphore.Weighted
	readMu  sync.Mutex
	readers []*engine.Conn // not in use now, the one used last at the end
	suspect bool           // guarded by readMu: SQLite called the file damaged; keep the mark for the next opening
}

// acquire returns the open database and counts the caller in; release counts it out. It opens the database if it must.
func (s *Store) acquire(ctx context.Context, uid string) (*database, error) {
	const op = "sqlstore.acquire"
	dir, err := s.folder(uid)
	if err != nil {
		return nil, err
	}
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, codec.ErrBackend.New(op, "the node is stopping")
		}
		d := s.open[uid]
		if d == nil {
			d = s.newDatabase(uid, dir)
			d.refs = 1
			s.mu.Unlock()
			d.err = s.start(ctx, d)
			close(d.ready)
			return s.opened(d)
		}
		if d.closing {
			gone := d.gone
			s.mu.Unlock()
			if err := wait(ctx, gone); err != nil {
				return nil, err
			}
			continue
		}
		d.refs++
		if d.elem != nil {
			s.unused.Remove(d.elem)
			d.elem = nil
		}
		s.mu.Unlock()
		if err := wait(ctx, d.ready); err != nil {
			s.release(d)
			return nil, err
		}
		return s.opened(d)
	}
}

func (s *Store) opened(d *database) (*database, error) {
	if d.err != nil {
		s.release(d)
		return nil, d.err
	}
	return d, nil
}

// newDatabase puts an entry into the map. s.mu is held.
func (s *Store) newDatabase(uid, dir string) *database {
	d := &database{uid: uid, dir: dir, ready: make(chan struct{}), gone: make(chan struct{}),
		migrate: semaphore.NewWeighted(1), write: semaphore.NewWeighted(1), read: semaphore.NewWeighted(int64(s.opt.Readers))}
	s.open[uid] = d
	return d
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.CodeOf(ctx.Err()), "sqlstore.wait", ctx.Err())
	}
}

// start looks at the files; connections are opened when they are needed. After a writer that died it reads the whole database
// first, and refuses a damaged one.
func (s *Store) start(ctx context.Context, d *database) error {
	const op = "sqlstore.start"
	if there, err := exists(mainPath(d.dir)); err != nil || !there {
		return codec.ErrBackend.Wrap(op, errors.Join(err, errors.New("there is no such database")))
	}
	epoch, err := readEpoch(d.dir)
	if err != nil {
		return codecBackend(op, err)
	}
	d.epoch = epoch
	if d.marked, err = exists(filepath.Join(d.dir, openFile)); err != nil {
		return codecBackend(op, err)
	}
	if d.marked {
		if err := s.check(ctx, d); err != nil {
			return err
		}
	}
	s.opt.Metrics.opened.Inc()
	s.opt.Metrics.open.Inc()
	return nil
}

// check reads the whole database, because the last process that wrote to it died. The mark stays until an orderly end.
func (s *Store) check(ctx context.Context, d *database) error {
	s.opt.Metrics.checked.Inc()
	c, err := s.connect(d, false)
	if err != nil {
		return err
	}
	whole := limited{context.WithoutCancel(ctx), time.Now().Add(checkTime)} // others wait for it too
	if err := c.Check(whole, s.large(d)); err != nil {
		s.damaged(d, err)
		s.closeQuietly(d, c)
		return err
	}
	d.writer = c
	return nil
}

// writing returns the writing connection. Before the first one the database is marked. The caller holds write.
func (s *Store) writing(d *database) (*engine.Conn, error) {
	if d.writer != nil {
		return d.writer, nil
	}
	err := s.mark(d)
	if err == nil {
		d.writer, err = s.connect(d, false)
	}
	return d.writer, err
}

// mark marks the database unless it is. The caller holds write.
func (s *Store) mark(d *database) error {
	if d.marked {
		return nil
	}
	if err := mark(d.dir); err != nil {
		return codecBackend("sqlstore.mark", err)
	}
	d.marked = true
	return nil
}

// checkTime is how long the check after an unclean end may take.
const checkTime = 10 * time.Minute

// large reports whether a complete check would take long: it reads 256 MiB in a few seconds.
func (s *Store) large(d *database) bool {
	info, err := os.Stat(mainPath(d.dir))
	return err == nil && info.Size() > 256<<20
}

func (s *Store) damaged(d *database, err error) {
	if errors.Is(err, engine.ErrDamaged) {
		s.opt.Metrics.damaged.Inc()
		s.opt.Log.Error("a database file is damaged", "database", d.uid, "err", err, "do", "restore it from a backup")
	}
}

func (s *Store) connect(d *database, reader bool) (*engine.Conn, error) {
	return engine.Open(engine.Options{Path: mainPath(d.dir), Reader: reader,
		MaxMemory: s.opt.MaxMemory, MaxBytes: s.opt.MaxBytes, Grow: s.opt.Space.Check})
}

// release counts a caller out. A database that failed to open, or that is one too many, is closed.
func (s *Store) release(d *database) {
	s.mu.Lock()
	d.refs--
	d.used = time.Now()
	switch {
	case d.refs > 0:
	case d.closing:
		if d.drained != nil {
			close(d.drained)
			d.drained = nil
		}
	case d.err != nil:
		d.closing = true
		s.mu.Unlock()
		s.leave(d)
		return
	default:
		d.elem = s.unused.PushFront(d)
	}
	over := s.unused.Len() > s.opt.MaxOpen
	s.mu.Unlock()
	if over {
		s.evict(s.opt.MaxOpen, time.Time{})
	}
}

// evict closes unused databases, the one used longest ago first: those beyond keep, and those not used since before.
func (s *Store) evict(keep int, before time.Time) {
	for {
		s.mu.Lock()
		last := s.unused.Back()
		if last == nil || !before.IsZero() && last.Value.(*database).used.After(before) || before.IsZero() && s.unused.Len() <= keep {
			s.mu.Unlock()
			return
		}
		d := s.unused.Remove(last).(*database)
		d.elem = nil
		d.closing = true
		s.mu.Unlock()
		s.stop(d)
		s.leave(d)
	}
}

// leave takes a closed entry out of the map and lets those who wait for it go on.
func (s *Store) leave(d *database) {
	s.mu.Lock()
	delete(s.open, d.uid)
	s.mu.Unlock()
	close(d.gone)
}

// stop closes the connections of a database that nobody uses. The mark stays when anything was wrong.
func (s *Store) stop(d *database) {
	if d.err != nil {
		return
	}
	var errs []error
	for _, c := range d.readers {
		errs = append(errs, c.Close())
	}
	if d.suspect {
		errs = append(errs, s.mark(d))
	} else if d.marked && d.writer == nil { // a failure closed it: its log may wait to be moved
		var err error
		if d.writer, err = s.connect(d, false); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, d.writer.Close())
	d.readers, d.writer = nil, nil
	s.opt.Metrics.open.Dec()
	err := errors.Join(errs...)
	if err == nil && d.marked && !d.suspect {
		err = unmark(d.dir)
	}
	if err != nil {
		s.opt.Log.Warn("a database was not closed in order; it will be checked when it is opened", "database", d.uid, "err", err)
	}
}

// exclusive runs fn on the folder of a database while nobody has it open. It waits for running calls to end; later calls
// wait for fn.
func (s *Store) exclusive(ctx context.Context, uid string, fn func(dir string) error) error {
	dir, err := s.folder(uid)
	if err != nil {
		return err
	}
	for {
		s.mu.Lock()
		d := s.open[uid]
		if d == nil {
			d = s.newDatabase(uid, dir)
			d.closing = true
			s.mu.Unlock()
			defer s.leave(d)
			return fn(dir)
		}
		if d.closing {
			gone := d.gone
			s.mu.Unlock()
			if err := wait(ctx, gone); err != nil {
				return err
			}
			continue
		}
		d.closing = true
		if d.elem != nil {
			s.unused.Remove(d.elem)
			d.elem = nil
		}
		drained := make(chan struct{})
		if d.refs == 0 {
			close(drained)
		} else {
			d.drained = drained
		}
		s.mu.Unlock()
		if err := wait(ctx, drained); err != nil {
			s.reopen(d)
			return err
		}
		s.stop(d)
		defer s.leave(d)
		return fn(dir)
	}
}

// reopen takes back that a database is closing, because whoever wanted it gave up.
func (s *Store) reopen(d *database) {
	s.mu.Lock()
	gone := d.gone
	d.closing, d.drained = false, nil
	d.gone = make(chan struct{})
	if d.refs == 0 {
		d.elem = s.unused.PushFront(d)
	}
	s.mu.Unlock()
	close(gone)
}
