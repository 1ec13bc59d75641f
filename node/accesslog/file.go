package accesslog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// file is appended to. It belongs to one goroutine.
type file struct {
	path string
	max  int64
	keep int

	f    *os.File // nil while it cannot be opened
	info fs.FileInfo
	size int64
	torn bool // the disk took a part of a line: the next begins with a line feed
}

func openFile(path string, max int64, keep int) (*file, error) {
	f := &file{path: path, max: max, keep: keep}
	return f, f.open()
}

func (f *file) open() error {
	to, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := to.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", f.path)
	}
	if err != nil {
		to.Close()
		return err
	}
	f.f, f.info, f.size = to, info, info.Size()
	return nil
}

// Write appends whole lines, to a new file if the present one would get too large.
func (f *file) Write(p []byte) (int, error) {
	if f.f != nil && f.size > 0 && f.size+int64(len(p)) > f.max {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.torn {
		p = append([]byte{'\n'}, p...)
	}
	n, err := f.f.Write(p)
	f.size += int64(n)
	f.torn = err != nil && (n > 0 || f.torn)
	return n, err
}

// rotate makes PATH PATH.1, PATH.1 PATH.2 and so on, and forgets the last.
func (f *file) rotate() error {
	if err := f.look(); err != nil || f.f == nil || f.size == 0 {
		return err // somebody else did
	}
	for i := f.keep; i > 0; i-- {
		from := f.path
		if i > 1 {
			from = fmt.Sprint(f.path, ".", i-1)
		}
		if err := os.Rename(from, fmt.Sprint(f.path, ".", i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.reopen()
}

func (f *file) reopen() error {
	if f.f != nil {
		_ = f.f.Close() // what was written to it was written
		f.f = nil
	}
	return f.open()
}

// look opens the file again if what stands at its path is another, or nothing: a program that rotates logs has moved it away.
func (f *file) look() error {
	info, err := os.Stat(f.path)
	if f.f != nil && err == nil && os.SameFile(info, f.info) {
		f.size = info.Size() // another process may write too, or have cut it
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.reopen()
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}
