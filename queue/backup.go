package queue

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/disk"
	"edged/internal/fault"
)

// Backup writes all queues as of one moment into dest, which must not exist. It holds up nobody, and where dest is on the same
// disk it takes little time and space: files are linked. Messages that are settled afterwards come again after a restore.
func (s *Store) Backup(ctx context.Context, dest string) error {
	const op = "queue.Backup"
	if err := ctx.Err(); err != nil {
		return err
	}
	fsys := s.opt.FS
	if fsys == nil {
		if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
			return fault.Newf(fault.Conflict, op, "%s exists", dest)
		}
		if err := disk.Prepare(dest); err != nil {
			return err
		}
	} else if err := fsys.MkdirAll(dest, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	if err := s.db.Checkpoint(filepath.Join(dest, "store"), pebble.WithFlushedWAL()); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	if fsys == nil { // last: a directory without it is no backup
		_, err := disk.CheckFormat(dest, "queue", format)
		return err
	}
	return nil
}

// Restore makes the store directory dir from a backup while no store is open in it. A directory that holds a store is refused
// with a Conflict. What was in delivery when the backup was made is owed again.
func Restore(ctx context.Context, backup, dir string) error {
	const op = "queue.Restore"
	if _, err := os.Stat(filepath.Join(backup, "format")); err != nil {
		return fault.Newf(fault.Invalid, op, "%s is not a backup of queues, or not a whole one", backup)
	}
	if _, err := disk.CheckFormat(backup, "queue", format); err != nil {
		return err
	}
	if err := disk.Prepare(dir); err != nil {
		return err
	}
	store := filepath.Join(dir, "store")
	if _, err := os.Stat(store); !errors.Is(err, fs.ErrNotExist) {
		return fault.Newf(fault.Conflict, op, "%s holds queues already", dir)
	}
	partial := store + ".restoring"
	if err := errors.Join(os.RemoveAll(partial), copyTree(ctx, filepath.Join(backup, "store"), partial)); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	if _, err := disk.CheckFormat(dir, "queue", format); err != nil {
		return err
	}
	if err := os.Rename(partial, store); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	return disk.SyncDir(dir)
}

// copyTree copies the files of one directory, durably. A store has no folders in it.
func copyTree(ctx context.Context, from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyFile(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return err
		}
	}
	return disk.SyncDir(to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
