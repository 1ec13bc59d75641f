package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"edged/internal/disk"
	"edged/internal/fault"
)

// saveFile writes a file beside path and gives it that name once it is whole and durable. A file that has the name already is
// left alone.
func saveFile(path string, write func(io.Writer) error) (size int64, err error) {
	if _, err := os.Stat(path); err == nil {
		return 0, fault.Newf(fault.Conflict, "save", "%s is there already", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	buf := bufio.NewWriterSize(f, 1<<20)
	err = write(buf)
	if err == nil {
		err = errors.Join(buf.Flush(), f.Sync())
	}
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return info.Size(), disk.SyncDir(filepath.Dir(path))
}
