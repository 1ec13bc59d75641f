package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// dataFacts is the data directory.
type dataFacts struct {
	Existing string // it, or the nearest directory above it that is there
	Made     bool   // it is there
	Err      error  // it cannot be read or written
	Mode     fs.FileMode
	Locked   bool
	Free     uint64 // bytes that this user may write
	Inodes   uint64 // files that can be made; meaningful unless TotalInodes is 0
	Total    uint64

	TotalInodes uint64
	Formats     []formatFact
	Key         keyFact
	Controlled  bool // the control room has been there
}

// formatFact is a format file; Room is "" for one that does not say.
type formatFact struct {
	Path    string // below the data directory
	Room    string
	Version int
}

// keyFact is the node key's file.
type keyFact struct {
	Err  error // why it cannot be read; fs.ErrNotExist if it is not there
	Mode fs.FileMode
}

func lookAtData(dir string) (d dataFacts) {
	info, err := os.Stat(dir)
	d.Made = err == nil
	d.Existing = dir
	switch {
	case err == nil && !info.IsDir():
		d.Err = fmt.Errorf("%s is no directory", dir)
		d.Existing = filepath.Dir(dir)
	case err == nil:
		d.Mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		d.Err = err
	default:
		d.Existing = above(dir)
	}
	if d.Err == nil {
		if err := unix.Access(d.Existing, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
			d.Err = fmt.Errorf("%s cannot be read and written: %w", d.Existing, err)
		}
	}
	var st unix.Statfs_t
	if unix.Statfs(d.Existing, &st) == nil {
		block := uint64(st.Bsize)
		d.Free, d.Total, d.Inodes, d.TotalInodes = st.Bavail*block, st.Blocks*block, st.Ffree, st.Files
	}
	if !d.Made {
		return d
	}
	d.Locked = isLocked(filepath.Join(dir, "lock"))
	d.Formats = formatsBelow(dir)
	_, err = os.Stat(filepath.Join(dir, "control", "format"))
	d.Controlled = err == nil
	key, err := os.Stat(filepath.Join(dir, "node.key"))
	if d.Key.Err = err; err == nil {
		d.Key.Mode = key.Mode().Perm()
	}
	return d
}

// above is the nearest directory over dir that is there.
func above(dir string) string {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	for {
		up := filepath.Dir(dir)
		if info, err := os.Stat(up); err == nil && info.IsDir() || up == dir {
			return up
		}
		dir = up
	}
}

// isLocked reports whether a node holds the directory's lock. Trying takes it for an instant; a node that starts in that
// instant tries again.
func isLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// formatDepth is how deep the rooms' format files lie; data lies deeper, and is not walked through.
const formatDepth = 2

// formatsBelow reads every format file.
func formatsBelow(dir string) (out []formatFact) {
	var walk func(at string, depth int)
	walk = func(at string, depth int) {
		if text, err := readSmall(filepath.Join(dir, at, "format")); err == nil {
			f := formatFact{Path: filepath.Join(at, "format")}
			if _, err := fmt.Sscanf(string(text), "%s %d\n", &f.Room, &f.Version); err != nil {
				f.Room, f.Version = "", 0
			}
			out = append(out, f)
		}
		if depth == 0 {
			return
		}
		entries, err := os.ReadDir(filepath.Join(dir, at))
		if err != nil {
			return // the directory's own check says so
		}
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				walk(filepath.Join(at, e.Name()), depth-1)
			}
		}
	}
	walk("", formatDepth)
	return out
}
