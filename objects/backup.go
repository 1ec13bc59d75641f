package objects

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
)

// Backup writes all buckets as of one moment into dest, which must not exist, while the store goes on. Everything that was
// acknowledged before the call is in it. Where dest is on the same disk, files are linked: that takes little time and space, and
// damage to a file is then damage to both. Errors: Conflict if dest exists, backend_unavailable, the context's; a directory that
// an error left has no format file and is no backup.
func (s *Store) Backup(ctx context.Context, dest string) error {
	const op = "objects.Backup"
	if _, err := s.fs.Stat(dest); !errors.Is(err, iofs.ErrNotExist) {
		return fault.Newf(fault.Conflict, op, "%s exists", dest)
	}
	if err := s.fs.MkdirAll(dest, 0o700); err != nil {
		return unavailable(op, err)
	}
	s.garbage.hold() // files that the copy of the metadata names stay until they were copied
	defer s.garbage.unhold()
	if err := s.db.Checkpoint(s.fs.PathJoin(dest, "db"), pebble.WithFlushedWAL()); err != nil {
		return unavailable(op, err)
	}
	if err := s.copyFiles(ctx, s.fs.PathJoin(dest, "blobs")); err != nil {
		return unavailable(op, err)
	}
	if s.opt.FS != nil { // the format file stands on the real filesystem only
		return nil
	}
	_, err := disk.CheckFormat(dest, roomName, formatVersion) // last: a directory without it is no backup
	return err
}

// copyFiles copies every file there is: under hold that is at least what a checkpoint made before names.
func (s *Store) copyFiles(ctx context.Context, root string) error {
	if err := folders(s.fs, root); err != nil {
		return err
	}
	err := s.files.list(func(i id, _ time.Time) error {
		err := s.files.copyTo(i, root)
		if errors.Is(err, iofs.ErrNotExist) {
			err = nil // of a put that failed, so no metadata names it
		}
		return errors.Join(err, ctx.Err())
	})
	for n := range 256 {
		var i id
		i[15] = byte(n)
		err = errors.Join(err, syncDir(s.fs, s.fs.PathJoin(root, i.folder())))
	}
	return err
}

// Restore makes the store's directory dir from a backup while no store is open in it; the backup stays as it is and shares no
// file with the store. A directory that holds a store is refused with a Conflict. Uploads that were open are open again.
func Restore(ctx context.Context, backup, dir string) error {
	const op = "objects.Restore"
	if _, err := os.Stat(filepath.Join(backup, "format")); err != nil {
		return fault.Newf(fault.Invalid, op, "%s is not a backup of objects, or not a whole one", backup)
	}
	if _, err := disk.CheckFormat(backup, roomName, formatVersion); err != nil {
		return err
	}
	if err := disk.Prepare(dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db")); !errors.Is(err, iofs.ErrNotExist) {
		return fault.Newf(fault.Conflict, op, "%s holds objects already", dir)
	}
	// The database comes last, under its name at once: without it the directory holds no store, and Restore may be repeated.
	partial := filepath.Join(dir, "db.restoring")
	err := errors.Join(os.RemoveAll(partial), os.RemoveAll(filepath.Join(dir, "blobs")))
	for _, c := range [][2]string{{"blobs", "blobs"}, {"db", "db.restoring"}} {
		if err == nil {
			err = copyTree(ctx, filepath.Join(backup, c[0]), filepath.Join(dir, c[1]))
		}
	}
	if err == nil {
		_, err = disk.CheckFormat(dir, roomName, formatVersion)
	}
	if err == nil {
		err = os.Rename(partial, filepath.Join(dir, "db"))
	}
	if err == nil {
		err = disk.SyncDir(dir)
	}
	return unavailable(op, err)
}

// copyTree copies a folder with all that is in it, durably.
func copyTree(ctx context.Context, from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		in, out := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			err = copyTree(ctx, in, out)
		} else {
			err = vfs.Copy(vfs.Default, in, out) // syncs
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return disk.SyncDir(to)
}
