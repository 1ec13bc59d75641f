package sqlstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// Names below Options.Dir: format, databases/<uid>/{main.db, epoch, open}, and temporary/ for what is not yet or no longer a
// database. A database appears and disappears by one rename of its folder.
const (
	databasesDir = "databases"
	temporaryDir = "temporary"
	mainFile     = "main.db"
	epochFile    = "epoch"
	openFile     = "open" // there while the database is open: if it is there before, the last holder died
	format       = 1
)

var uidForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

func (s *Store) folder(uid string) (string, error) {
	if !uidForm.MatchString(uid) {
		return "", fault.New(fault.Invalid, "sqlstore", "a database's uid is 1 to 128 letters, digits, - and _")
	}
	return filepath.Join(s.opt.Dir, databasesDir, uid), nil
}

func (s *Store) temporary(uid string) (string, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.opt.Dir, temporaryDir), uid+"-")
	return dir, codecBackend("sqlstore.Store", err)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// prepare makes the folders and empties temporary/.
func (s *Store) prepare() error {
	if err := disk.Prepare(s.opt.Dir); err != nil {
		return err
	}
	if _, err := disk.CheckFormat(s.opt.Dir, "sqlstore", format); err != nil {
		return err
	}
	temp := filepath.Join(s.opt.Dir, temporaryDir)
	if err := os.RemoveAll(temp); err != nil {
		return fault.Wrap(fault.Unavailable, "sqlstore.Open", err)
	}
	for _, dir := range []string{filepath.Join(s.opt.Dir, databasesDir), temp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fault.Wrap(fault.Unavailable, "sqlstore.Open", err)
		}
	}
	return disk.SyncDir(s.opt.Dir)
}

func readEpoch(dir string) (uint64, error) {
	b, err := os.ReadFile(filepath.Join(dir, epochFile))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSuffix(string(b), "\n"), 10, 64)
}

func writeEpoch(dir string, epoch uint64) error {
	return disk.WriteFile(filepath.Join(dir, epochFile), []byte(strconv.FormatUint(epoch, 10)+"\n"), 0o600)
}

// mark notes durably that the database is open. It returns whether the note was there already.
func mark(dir string) (unclean bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, openFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	return false, disk.SyncDir(dir)
}

func unmark(dir string) error { return os.Remove(filepath.Join(dir, openFile)) }

func codecBackend(op string, err error) error {
	if err == nil {
		return nil
	}
	return codec.ErrBackend.Wrap(op, err)
}

func mainPath(dir string) string { return filepath.Join(dir, mainFile) }
