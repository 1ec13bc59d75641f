package node

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/objects"
	"edged/queue"
	"edged/sqlstore"
)

// StoreRooms are the rooms whose backups RestoreStore takes.
var StoreRooms = []string{"kv", "sql", "queue", "objects"}

// RestoreStore puts what a room of workers' data keeps back from a backup, while no node uses the data directory. The room's
// folder must not be there: what a node keeps is never replaced in silence. The Resources come with the control room's own
// backup; a store whose Resource is gone is never found by anybody. Errors: Invalid for a backup that is not whole or is of
// another room, Conflict for a directory that is in use or a folder that is there. log nil discards.
func RestoreStore(ctx context.Context, dataDir, room string, backup io.Reader, log *slog.Logger) (err error) {
	const op = "node.RestoreStore"
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := disk.Prepare(dataDir); err != nil {
		return err
	}
	lock, err := disk.Lock(dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if _, err := disk.CheckFormat(dataDir, "node", formatVersion); err != nil {
		return err
	}
	final := filepath.Join(dataDir, room)
	if _, err := os.Stat(final); !errors.Is(err, fs.ErrNotExist) {
		return fault.Newf(fault.Conflict, op, "%s is there: a node has run on this directory; move that folder away first", final)
	}
	temp := filepath.Join(dataDir, outgoing, "restore-"+room)
	if err := errors.Join(os.RemoveAll(temp), disk.Prepare(filepath.Dir(temp)), os.Mkdir(temp, 0o700)); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	defer os.RemoveAll(temp)
	archive, made := filepath.Join(temp, "archive"), filepath.Join(temp, "made")
	if err := unpack(ctx, backup, room, archive); err != nil {
		return err
	}
	switch room {
	case "kv":
		made = archive // the store takes a new epoch when it finds its own marker
	case "queue":
		err = queue.Restore(ctx, archive, made)
	case "objects":
		err = objects.Restore(ctx, archive, made)
	case "sql":
		err = restoreDatabases(ctx, archive, made, log)
	default:
		err = fault.Newf(fault.Invalid, op, "there is no room %q", room)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(made, final); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	return disk.SyncDir(dataDir)
}

// restoreDatabases makes a store of the database files in a directory; each is checked as a whole.
func restoreDatabases(ctx context.Context, files, dir string, log *slog.Logger) (err error) {
	s, err := sqlstore.Open(sqlstore.Options{Dir: dir, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	list, err := os.ReadDir(files)
	if err != nil {
		return fault.Wrap(fault.Unavailable, "node.RestoreStore", err)
	}
	for _, f := range list {
		uid, ok := strings.CutSuffix(f.Name(), ".db")
		if !ok {
			return fault.Newf(fault.Invalid, "node.RestoreStore", "%.200q is no database", f.Name())
		}
		if err := s.Database(uid, homeEpoch).Restore(ctx, filepath.Join(files, f.Name())); err != nil {
			return err
		}
	}
	return nil
}
