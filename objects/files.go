package objects

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files is the room's one door to the files of bodies. Nothing in it decides anything: which step follows which, and what has to
// be durable before, is written in intake.go and garbage.go alone, and is tested over a filesystem that crashes.
type files interface {
	// create makes a file that has no name yet: it is gone with its last handle, or with a crash.
	create() (draft, error)
	// open opens a file for reading.
	open(i id) (source, error)
	// remove takes the name of a file away; what is absent is fine. Open handles keep reading.
	remove(i id) error
	// syncFolder makes the names in the folder of i durable.
	syncFolder(i id) error
	// list calls fn for every file, with the instant of its last change.
	list(fn func(i id, changed time.Time) error) error
	// copyTo gives the file a second name below another root, or copies it where that is another disk.
	copyTo(i id, root string) error
}

// draft is a file on its way. It is not safe for concurrent use.
type draft interface {
	io.Writer
	// early lets the disk begin to write what is there; it promises nothing.
	early(off, n int64)
	sync() error
	// link gives the file its name, which is durable after syncFolder.
	link(i id) error
	io.Closer
}

// source is an open file. Safe for concurrent use.
type source interface {
	io.ReaderAt
	io.Closer
}

// folders makes the 256 folders of bodies below root, durably.
func folders(fs vfs.FS, root string) error {
	if err := fs.MkdirAll(root, 0o700); err != nil {
		return err
	}
	there, err := fs.List(root)
	if err != nil {
		return err
	}
	have := make(map[string]bool, len(there))
	for _, name := range there {
		have[name] = true
	}
	fresh := false
	for n := range 256 {
		var i id
		i[15] = byte(n)
		if !have[i.folder()] {
			fresh = true
			if err := fs.MkdirAll(fs.PathJoin(root, i.folder()), 0o700); err != nil {
				return err
			}
		}
	}
	if !fresh {
		return nil
	}
	return errors.Join(syncDir(fs, root), syncDir(fs, fs.PathDir(root)))
}

func syncDir(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// namedFiles are files over any vfs.FS. A draft has a name in a folder that the next start empties.
type namedFiles struct {
	fs    vfs.FS
	root  string
	temps atomic.Uint64
}

const draftFolder = "draft"

// writeCategory tells Pebble's disk statistics whose writes these are.
const writeCategory vfs.DiskWriteCategory = "objects-body"

func openNamedFiles(fs vfs.FS, root string) (*namedFiles, error) {
	f := &namedFiles{fs: fs, root: root}
	dir := fs.PathJoin(root, draftFolder)
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	left, err := fs.List(dir)
	for _, name := range left {
		err = errors.Join(err, fs.Remove(fs.PathJoin(dir, name)))
	}
	return f, err
}

func (f *namedFiles) path(root string, i id) string {
	return f.fs.PathJoin(root, i.folder(), i.String())
}

func (f *namedFiles) create() (draft, error) {
	name := f.fs.PathJoin(f.root, draftFolder, strconv.FormatUint(f.temps.Add(1), 10))
	file, err := f.fs.Create(name, writeCategory)
	if err != nil {
		return nil, err
	}
	return &namedDraft{file: file, name: name, of: f}, nil
}

func (f *namedFiles) open(i id) (source, error) { return f.fs.Open(f.path(f.root, i)) }

func (f *namedFiles) remove(i id) error {
	if err := f.fs.Remove(f.path(f.root, i)); !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *namedFiles) syncFolder(i id) error {
	return syncDir(f.fs, f.fs.PathJoin(f.root, i.folder()))
}

func (f *namedFiles) list(fn func(i id, changed time.Time) error) error {
	for n := range 256 {
		var i id
		i[15] = byte(n)
		dir := f.fs.PathJoin(f.root, i.folder())
		names, err := f.fs.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			file, ok := parseID(name)
			if !ok || file.folder() != i.folder() {
				continue // not ours: never touched by guessing
			}
			info, err := f.fs.Stat(f.fs.PathJoin(dir, name))
			if errors.Is(err, iofs.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
			if err := fn(file, info.ModTime()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *namedFiles) copyTo(i id, root string) error {
	return vfs.LinkOrCopy(f.fs, f.path(f.root, i), f.path(root, i))
}

// namedDraft is a draft with a temporary name.
type namedDraft struct {
	file vfs.File
	name string // "" once it has that of a body
	of   *namedFiles
}

func (d *namedDraft) Write(p []byte) (int, error) { return d.file.Write(p) }

func (d *namedDraft) early(int64, int64) {}

func (d *namedDraft) sync() error { return d.file.Sync() }

func (d *namedDraft) link(i id) error {
	err := d.of.fs.Rename(d.name, d.of.path(d.of.root, i))
	if err == nil {
		d.name = ""
	}
	return err
}

func (d *namedDraft) Close() error {
	err := d.file.Close()
	if d.name != "" {
		err = errors.Join(err, d.of.fs.Remove(d.name))
	}
	return err
}

// asFile returns the operating system's file behind a source, nil if there is none.
func asFile(s source) *os.File {
	f, _ := s.(*os.File)
	return f
}
