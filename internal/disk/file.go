package disk

import (
	"io/fs"
	"os"
	"path/filepath"

	"edged/internal/fault"
)

// WriteFile replaces the file at path with data so that a crash leaves either the old file or the whole new one, and
// returns when the new one is durable.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".tmp-"+filepath.Base(path)+"-*")
	if err != nil {
		return fault.Wrap(fault.Unavailable, "disk.WriteFile", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fault.Wrap(fault.Unavailable, "disk.WriteFile", err)
	}
	return SyncDir(dir)
}

// SyncDir makes the names in dir durable: a file made or renamed there stays after a crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, "disk.SyncDir", err)
	}
	defer d.Close()
	return fault.Wrap(fault.Unavailable, "disk.SyncDir", d.Sync())
}
