package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// Backup copies the database as it is now into a new file at path, while it is read and written. The copy is a complete SQLite
// database with its ledger, and durable when Backup returns nil; else no file is left. path must not exist.
func (d *Database) Backup(ctx context.Context, path string) error {
	const op = "sqlstore.Backup"
	path, err := filepath.Abs(path)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Newf(fault.Conflict, op, "cannot make %s: %v", path, errors.Unwrap(err))
	}
	f.Close()
	err = d.reading(ctx, opBackup, func(ctx context.Context, c *engine.Conn) error { return c.Backup(ctx, path) })
	if err == nil {
		err = syncFile(path)
	}
	if err != nil {
		os.Remove(path)
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return codecBackend("sqlstore.sync", err)
	}
	defer f.Close()
	return codecBackend("sqlstore.sync", f.Sync())
}

// Restore makes the database what the file at path is: a backup, or any SQLite database of UTF-8 text. The whole file is
// checked first; one without a ledger gets an empty one. What the database held before is gone, or all there if Restore
// fails. Running calls end first and later ones wait. The database is made if it is not there.
func (d *Database) Restore(ctx context.Context, path string) (err error) {
	s := d.store
	defer func(start time.Time) { s.count(opLoad, start, err) }(time.Now())
	return s.replace(ctx, d.uid, d.epoch, func(temp string) error {
		if err := copyFile(ctx, mainPath(temp), path); err != nil {
			return err
		}
		return s.adopt(ctx, temp)
	})
}

// adopt checks a copied file and gives it a ledger if it has none.
func (s *Store) adopt(ctx context.Context, temp string) error {
	c, err := s.openNew(temp)
	if err != nil {
		return fault.Newf(fault.Invalid, "sqlstore.Restore", "the file is no SQLite database that can be served: %v", err)
	}
	err = c.Check(ctx, false)
	if err == nil {
		err = c.Transact(ctx, func() error { return finishLedger(ctx, c) })
	}
	return errors.Join(err, c.Close())
}

// openNew opens the file of a database that is being made.
func (s *Store) openNew(temp string) (*engine.Conn, error) {
	return engine.Open(engine.Options{Path: mainPath(temp), Create: true, Scripts: true, MaxMemory: migrateMemory, MaxBytes: s.opt.MaxBytes})
}

// finishLedger makes the ledger of a database that came from outside if it has none, and checks it and the foreign keys.
func finishLedger(ctx context.Context, c *engine.Conn) error {
	const op = "sqlstore.Load"
	sql := ""
	note := func(row []codec.Value) error {
		sql += row[0].Bytes()
		return nil
	}
	err := c.Scan(ctx, engine.Host, "SELECT sql FROM sqlite_schema WHERE tbl_name='"+engine.Ledger+"' COLLATE NOCASE", nil, note)
	if err == nil && sql == "" {
		sql = createLedger
		err = c.Scan(ctx, engine.Host, createLedger, nil, note)
	}
	if err == nil && sql != createLedger {
		err = ErrHistory.New(op, "the ledger of the file is not one of this program")
	}
	if err == nil {
		_, err = scanLedger(ctx, c)
	}
	if err == nil {
		err = c.CheckForeignKeys(ctx)
	}
	return err
}

// replace builds a database in a temporary folder and puts it in the place of uid's.
func (s *Store) replace(ctx context.Context, uid string, epoch uint64, build func(temp string) error) error {
	const op = "sqlstore.replace"
	if err := s.opt.Space.Check(); err != nil {
		return codec.ErrBackend.Wrap(op, err)
	}
	if _, err := s.folder(uid); err != nil {
		return err
	}
	temp, err := s.temporary(uid)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := build(temp); err != nil {
		return err
	}
	return s.exclusive(ctx, uid, func(dir string) error {
		there, err := exists(dir)
		if err != nil {
			return codecBackend(op, err)
		}
		if !there {
			return s.install(temp, dir, epoch)
		}
		have, err := readEpoch(dir)
		if err != nil {
			return codecBackend(op, err)
		}
		if have > epoch {
			return errMoved(op, have)
		}
		if err := writeEpoch(temp, epoch); err != nil {
			return err
		}
		return s.exchange(temp, dir)
	})
}

// exchange swaps two folders in one step, so that a crash leaves one database or the other.
func (s *Store) exchange(temp, dir string) error {
	if err := renameExchange(temp, dir); err != nil {
		return codecBackend("sqlstore.exchange", fmt.Errorf("swap in the new database: %w", err))
	}
	return errors.Join(disk.SyncDir(filepath.Dir(dir)), disk.SyncDir(filepath.Dir(temp)))
}

func copyFile(ctx context.Context, to, from string) error {
	const op = "sqlstore.Restore"
	in, err := os.Open(from)
	if err != nil {
		return fault.Newf(fault.Invalid, op, "cannot open %s: %v", from, errors.Unwrap(err))
	}
	defer in.Close()
	for _, log := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(from + log); err == nil && info.Size() > 0 {
			return fault.Newf(fault.Conflict, op, "%s%s is there: the file is in use or was not closed in order; copy it with a backup", from, log)
		}
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return codecBackend(op, err)
	}
	_, err = io.Copy(out, contextReader{ctx, in})
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if ctx.Err() != nil {
		return fault.Wrap(fault.CodeOf(ctx.Err()), op, ctx.Err())
	}
	return codecBackend(op, err)
}

// contextReader ends a long copy when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read returns the context's error once it is done.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
