package objects

import (
	"errors"
	"os"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// openFiles returns the door to the real files below root. Drafts have no name at all where the filesystem can do that.
func openFiles(root string) (files, error) {
	named, err := openNamedFiles(vfs.Default, root)
	if err != nil {
		return nil, err
	}
	f := &unnamedFiles{named}
	d, err := f.create()
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return named, nil
	}
	if err != nil {
		return nil, err
	}
	return f, d.Close()
}

// unnamedFiles are files that the kernel drops by itself unless they were linked.
type unnamedFiles struct{ *namedFiles }

func (f *unnamedFiles) create() (draft, error) {
	fd, err := unix.Open(f.root, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: f.root, Err: err}
	}
	return &unnamedDraft{os.NewFile(uintptr(fd), "draft"), f}, nil
}

func (f *unnamedFiles) open(i id) (source, error) { return os.Open(f.path(f.root, i)) }

type unnamedDraft struct {
	*os.File
	of *unnamedFiles
}

func (d *unnamedDraft) early(off, n int64) {
	_ = unix.SyncFileRange(int(d.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE) // sync decides
}

func (d *unnamedDraft) sync() error { return d.Sync() }

func (d *unnamedDraft) link(i id) error {
	from := "/proc/self/fd/" + strconv.Itoa(int(d.Fd()))
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, d.of.path(d.of.root, i), unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: "draft", New: i.String(), Err: err}
	}
	return nil
}
