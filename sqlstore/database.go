package sqlstore

import (
	"context"
	"errors"
	"time"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// A Database is the door to one database. Its methods may be called by many goroutines: readers run in parallel, writers one
// after the other in the order in which they came. Every call is serialisable, and a failed one leaves nothing behind.
//
// Errors carry the names of sql §2: codec.ErrType, ErrSQL, ErrRange, ErrBusy and ErrBackend. Only ErrBusy is worth a retry.
// A caller that leaves (its context is cancelled) gets fault.Canceled, and a statement that outlasts its time ErrSQL; in
// both cases it was interrupted and rolled back, unless the commit had begun, which is always waited for.
type Database struct {
	store *Store
	uid   string
	epoch uint64
}

// limited is a context that also ends at an instant. It has no timer: the engine asks Err while it runs.
type limited struct {
	context.Context
	until time.Time
}

// Err returns the parent's error, or DeadlineExceeded after the instant.
func (l limited) Err() error {
	if err := l.Context.Err(); err != nil {
		return err
	}
	if time.Now().After(l.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// Execute runs one statement and commits it when its whole result is within the limits of sql §6.
func (d *Database) Execute(ctx context.Context, st codec.Statement) (codec.Result, error) {
	if err := st.Check(); err != nil {
		return codec.Result{}, d.store.count(opExecute, time.Now(), err)
	}
	one := [1]codec.Statement{st}
	results, err := d.change(ctx, opExecute, engine.Write, one[:], &codec.Meter{})
	if err != nil {
		return codec.Result{}, err
	}
	return results[0], nil
}

// Transaction runs 1 to 100 statements, all or none, and returns one result each.
func (d *Database) Transaction(ctx context.Context, statements []codec.Statement) ([]codec.Result, error) {
	if err := codec.CheckTransaction(statements); err != nil {
		return nil, d.store.count(opTransaction, time.Now(), err)
	}
	return d.change(ctx, opTransaction, engine.Write, statements, codec.NewTransactionMeter())
}

// Query runs one reading statement. A statement that can write is refused.
func (d *Database) Query(ctx context.Context, st codec.Statement) (codec.Result, error) {
	if err := st.Check(); err != nil {
		return codec.Result{}, d.store.count(opQuery, time.Now(), err)
	}
	return d.look(ctx, opQuery, engine.Read, st)
}

func (s *Store) count(o op, start time.Time, err error) error {
	s.opt.Metrics.done(o, start, err)
	return err
}

// use acquires the database under the handle's epoch. The caller releases it.
func (d *Database) use(ctx context.Context) (*database, error) {
	db, err := d.store.acquire(ctx, d.uid)
	if err != nil {
		return nil, err
	}
	if err := db.enter(d.epoch); err != nil {
		d.store.release(db)
		return nil, err
	}
	return db, nil
}

// enter checks the epoch of a call. A newer one than any before is noted durably first.
func (db *database) enter(epoch uint64) error {
	db.epochMu.Lock()
	defer db.epochMu.Unlock()
	if epoch < db.epoch {
		return errMoved("sqlstore.enter", db.epoch)
	}
	if epoch > db.epoch {
		if err := writeEpoch(db.dir, epoch); err != nil {
			return codecBackend("sqlstore.enter", err)
		}
		db.epoch = epoch
	}
	return nil
}

// change runs statements on the writing connection.
func (d *Database) change(ctx context.Context, o op, mode engine.Mode, statements []codec.Statement, meter *codec.Meter) (results []codec.Result, err error) {
	s, start := d.store, time.Now()
	defer func() { s.count(o, start, err) }()
	db, err := d.use(ctx)
	if err != nil {
		return nil, err
	}
	defer s.release(db)
	if err := s.turn(ctx, db); err != nil {
		return nil, err
	}
	defer db.write.Release(1)
	if db.writer == nil {
		if db.writer, err = s.connect(db, false); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	results, err = db.writer.Execute(limited{ctx, began.Add(s.opt.MaxTime)}, mode, statements, meter)
	s.noteSlow(db, db.writer, o, statements, time.Since(began))
	s.afterWrite(db, err)
	return results, err
}

// turn waits until the caller is the one writer.
func (s *Store) turn(ctx context.Context, db *database) error {
	if db.write.TryAcquire(1) {
		return nil
	}
	start := time.Now()
	defer func() { s.opt.Metrics.waited.Observe(time.Since(start).Seconds()) }()
	return take(ctx, db.write.Acquire, 1, s.opt.WriteWait, codec.ErrBusy)
}

// take waits at most for a place in a queue; then it returns busy.
func take(ctx context.Context, acquire func(context.Context, int64) error, n int64, atMost time.Duration, busy *fault.Named) error {
	limit, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	if acquire(limit, n) == nil {
		return nil
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return fault.Wrap(fault.Canceled, "sqlstore.wait", err)
	}
	return busy.Newf("sqlstore.wait", "others used the database for more than %v", atMost)
}

// checkpointPages of the write-ahead log are gathered before they are moved into the database.
const checkpointPages = 1000

// afterWrite moves the write-ahead log when it has grown, and gives up a connection that is broken or whose disk failed. The
// caller holds write.
func (s *Store) afterWrite(db *database, err error) {
	if err == nil {
		pages := db.writer.Pages()
		if pages < db.moved {
			db.moved = 0 // the log began anew
		}
		if pages-db.moved >= checkpointPages {
			s.opt.Metrics.checkpoints.Inc()
			db.moved = pages
			err = db.writer.Checkpoint()
		}
	}
	if s.failed(db, db.writer, err) {
		db.writer = nil
	}
}

// failed closes a connection that must not be used again, or that has taken much memory, and reports whether it did.
func (s *Store) failed(db *database, c *engine.Conn, err error) bool {
	if c.Large() && !c.Broken() {
		s.closeQuietly(db, c)
		return true
	}
	if !c.Broken() {
		return false
	}
	s.opt.Metrics.broken.Inc()
	if errors.Is(err, engine.ErrDamaged) {
		db.readMu.Lock()
		db.suspect = true
		db.readMu.Unlock()
		s.damaged(db, err)
	}
	s.closeQuietly(db, c)
	return true
}

// closeQuietly closes a connection whose end changes nothing for the caller.
func (s *Store) closeQuietly(db *database, c *engine.Conn) {
	if err := c.Close(); err != nil {
		s.opt.Log.Warn("closing a connection", "database", db.uid, "err", err)
	}
}

// look runs one reading statement on a reading connection.
func (d *Database) look(ctx context.Context, o op, mode engine.Mode, st codec.Statement) (r codec.Result, err error) {
	s, start := d.store, time.Now()
	defer func() { s.count(o, start, err) }()
	db, err := d.use(ctx)
	if err != nil {
		return r, err
	}
	defer s.release(db)
	c, err := s.reader(ctx, db)
	if err != nil {
		return r, err
	}
	began := time.Now()
	r, err = c.Query(limited{ctx, began.Add(s.opt.MaxTime)}, mode, st, &codec.Meter{})
	if took := time.Since(began); took > s.opt.Slow {
		one := [1]codec.Statement{st}
		s.noteSlow(db, c, o, one[:], took)
	}
	s.giveBack(db, c, err)
	return r, err
}

// reader takes a reading connection; giveBack must follow. It waits like a writer when all are in use.
func (s *Store) reader(ctx context.Context, db *database) (*engine.Conn, error) {
	if !db.read.TryAcquire(1) {
		if err := take(ctx, db.read.Acquire, 1, s.opt.WriteWait, codec.ErrBusy); err != nil {
			return nil, err
		}
	}
	db.readMu.Lock()
	if n := len(db.readers); n > 0 {
		c := db.readers[n-1]
		db.readers = db.readers[:n-1]
		db.readMu.Unlock()
		return c, nil
	}
	db.readMu.Unlock()
	c, err := s.connect(db, true)
	if err != nil {
		db.read.Release(1)
	}
	return c, err
}

func (s *Store) giveBack(db *database, c *engine.Conn, err error) {
	if !s.failed(db, c, err) {
		db.readMu.Lock()
		db.readers = append(db.readers, c)
		db.readMu.Unlock()
	}
	db.read.Release(1)
}
