package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"edged/internal/fault"
)

// Prepare makes dir (mode 0700, with parents) if it is missing and checks that this process can write to it. The
// error names the directory and what to do.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Newf(fault.Unavailable, "disk.Prepare", "cannot make directory %s: %v", dir, unwrapPath(err))
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fault.Newf(fault.Unavailable, "disk.Prepare", "directory %s is not writable: %v", dir, unwrapPath(err))
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// unwrapPath takes the path out of an error that is about to be told with its own path.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// A Locked directory belongs to this process until Release.
type Locked struct{ file *os.File }

// Lock takes dir for this process alone. A second process gets a Conflict that names the directory and the holder. The
// kernel drops the lock when the process ends, however it ends.
func Lock(dir string) (*Locked, error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Newf(fault.Unavailable, "disk.Lock", "cannot open %s: %v", name, unwrapPath(err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 20)
		n, _ := f.ReadAt(holder, 0)
		f.Close()
		return nil, fault.Newf(fault.Conflict, "disk.Lock",
			"data directory %s is in use by process %s; stop that one or name another directory", dir, orUnknown(holder[:n]))
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		if err != nil {
			f.Close()
			return nil, fault.Wrap(fault.Unavailable, "disk.Lock", err)
		}
	}
	return &Locked{file: f}, nil
}

func orUnknown(pid []byte) string {
	if s := strings.TrimSpace(string(pid)); s != "" {
		return s
	}
	return "(unknown)"
}

// Release gives the directory up.
func (l *Locked) Release() error { return l.file.Close() }

// CheckFormat makes dir's format file say version, or checks that what it says is at most version. It returns the version
// found, so that a room can migrate an older one, and version itself for a fresh directory. A newer format is refused, as
// is an unreadable one: nothing is ever repaired by guessing.
func CheckFormat(dir, room string, version int) (int, error) {
	name := filepath.Join(dir, "format")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return version, WriteFile(name, []byte(room+" "+strconv.Itoa(version)+"\n"), 0o600)
	}
	if err != nil {
		return 0, fault.Wrap(fault.Unavailable, "disk.CheckFormat", err)
	}
	var gotRoom string
	var got int
	if _, err := fmt.Sscanf(string(b), "%s %d\n", &gotRoom, &got); err != nil || gotRoom != room || got < 1 {
		return 0, fault.Newf(fault.Conflict, "disk.CheckFormat", "%s does not say which format of %s it has: %.40q", name, room, b)
	}
	if got > version {
		return 0, fault.Newf(fault.Conflict, "disk.CheckFormat",
			"%s has format %d of %s, this program knows up to %d: run the newer program that wrote it", dir, got, room, version)
	}
	return got, nil
}
