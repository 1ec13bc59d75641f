package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the measurement.
const (
	fsyncRounds = 100
	fsyncBytes  = 4 << 10
	fsyncTime   = 2 * time.Second
)

// fsyncFacts is what durable writes on the data directory's filesystem cost and rest upon.
type fsyncFacts struct {
	Err         error // nothing could be measured
	Rounds      int   // of a block written and made durable
	Median, P99 time.Duration
	Type        string // of the filesystem, "" if it is not known
	Options     string // its mount options
	WriteCache  string // the device's as the kernel sees it: "write back", "write through" or ""
	BlockDevice bool   // a block device lies below it
}

// measureFsync writes blocks to a file without a name in dir, each made durable before the next, as the stores' logs do.
// Whatever ends the program, nothing of it stays.
func measureFsync(ctx context.Context, dir string) (f fsyncFacts) {
	f.Type, f.Options, f.WriteCache, f.BlockDevice = filesystemOf(dir)
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		f.Err = err
		return f
	}
	defer file.Close()
	if f.Err = os.Remove(file.Name()); f.Err != nil {
		return f
	}
	block := make([]byte, fsyncBytes)
	var took []time.Duration
	for end := time.Now().Add(fsyncTime); len(took) < fsyncRounds && ctx.Err() == nil && time.Now().Before(end); {
		start := time.Now()
		if _, f.Err = file.Write(block); f.Err == nil {
			f.Err = unix.Fdatasync(int(file.Fd()))
		}
		if f.Err != nil {
			return f
		}
		took = append(took, time.Since(start))
	}
	if len(took) == 0 {
		f.Err = ctx.Err()
		return f
	}
	slices.Sort(took)
	f.Rounds, f.Median, f.P99 = len(took), took[len(took)/2], took[len(took)*99/100]
	return f
}

// filesystemOf finds the mount that dir is on; what it cannot tell stays empty.
func filesystemOf(dir string) (kind, options, writeCache string, device bool) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	text, err := readSmall("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		// 27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
		mount, super, ok := strings.Cut(strings.TrimSpace(line), " - ")
		m, s := strings.Fields(mount), strings.Fields(super)
		if ok && len(m) > 5 && len(s) > 2 && m[2] == number {
			kind, options = s[0], m[5]+","+s[2]
		}
	}
	base := "/sys/dev/block/" + number
	if _, err := os.Stat(base); err != nil {
		return
	}
	for _, queue := range []string{"queue", "../queue"} { // a partition has that of its disk
		real, err := filepath.EvalSymlinks(base)
		if err != nil {
			break
		}
		if text, err := readSmall(filepath.Join(real, queue, "write_cache")); err == nil {
			return kind, options, strings.TrimSpace(string(text)), true
		}
	}
	return kind, options, "", true
}
