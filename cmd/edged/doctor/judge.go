package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Judge says what the facts mean. It looks at nothing else, and finds the same in the same facts.
func Judge(f Facts) *Report {
	r := &Report{Healthy: true, Running: f.Node.PID != 0}
	for _, subject := range []func(Facts) []Finding{program, kernel, directory, formats, durable, clock, limits, doors, certificates, running} {
		for _, one := range subject(f) {
			r.Findings = append(r.Findings, one)
			r.Healthy = r.Healthy && one.Level != Danger && one.Level != Stops
		}
	}
	return r
}

func fine(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: Fine, Found: fmt.Sprintf(format, args...)}
}

// program judges what runs here.
func program(f Facts) []Finding {
	if f.Options.Engine == "" {
		return []Finding{{"program", Stops, "edged " + f.Options.Version + " was built without its JavaScript engine", "the node refuses to start",
			"build with make build, which fetches the engine"}}
	}
	return []Finding{fine("program", "edged %s, engine %s", f.Options.Version, f.Options.Engine)}
}

// kernel judges what the sandboxes need.
func kernel(f Facts) []Finding {
	var out []Finding
	switch k := f.Kernel; {
	case k.Table != nil:
		out = append(out, Finding{"kernel.pagemap", Note, fmt.Sprintf("the page table cannot be read: %v", k.Table),
			"every invocation copies its whole image back: requests cost several times as much CPU",
			"mount /proc so that the node may open /proc/self/pagemap"})
	case k.Scan != nil:
		out = append(out, Finding{"kernel.pagemap", Note, fmt.Sprintf("PAGEMAP_SCAN does not work on kernel %s: %v", k.Release, k.Scan),
			"written pages are found by reading the page table: each reset of a sandbox takes longer",
			"run Linux 6.7 or newer, and let a seccomp profile pass the ioctl"})
	default:
		out = append(out, fine("kernel.pagemap", "PAGEMAP_SCAN works on kernel %s", k.Release))
	}
	if err := f.Kernel.Memfd; err != nil {
		return append(out, Finding{"kernel.memfd", Danger, fmt.Sprintf("sealed memory files cannot be made: %v", err),
			"versions whose image has no file on disk do not load", "let a seccomp profile pass memfd_create"})
	}
	return append(out, fine("kernel.memfd", "sealed memory files work"))
}

// Free space of the data directory's disk: below the reserve the node refuses writes (internal/disk).
const (
	reserve    = 256 << 20
	littleFree = 1 << 30
	fewInodes  = 10_000
)

// directory judges the data directory and its disk.
func directory(f Facts) []Finding {
	d := f.Data
	if d.Err != nil {
		return []Finding{{"data.directory", Stops, d.Err.Error(), "the node does not start", "name another --data-dir, or give this user the directory"}}
	}
	var out []Finding
	switch {
	case !d.Made:
		out = append(out, fine("data.directory", "%s is not there; the first start makes it", f.Options.DataDir))
	case d.Mode&0o077 != 0:
		out = append(out, Finding{"data.directory", Danger, fmt.Sprintf("%s has mode %04o", f.Options.DataDir, d.Mode),
			"other users of this machine can see, or change, what is in it", "chmod 700 " + f.Options.DataDir})
	default:
		out = append(out, fine("data.directory", "%s, mode %04o", f.Options.DataDir, d.Mode))
	}
	free := fmt.Sprintf("%s of %s are free", size(d.Free), size(d.Total))
	switch {
	case d.Free < reserve:
		out = append(out, Finding{"data.space", Danger, free, "the node refuses uploads and writes, and is not ready", "make room: 256 MiB have to be free"})
	case d.Free < littleFree:
		out = append(out, Finding{"data.space", Danger, free, "below 256 MiB the node refuses writes, and a backup needs room too", "make room, or give the node a larger disk"})
	default:
		out = append(out, fine("data.space", "%s", free))
	}
	if d.TotalInodes > 0 && d.Inodes < fewInodes {
		out = append(out, Finding{"data.files", Danger, fmt.Sprintf("the disk has room for only %d more files", d.Inodes),
			"objects, large values and artifacts are files: writes fail while there is space", "remove small files, or make a filesystem with more inodes"})
	}
	return append(out, nodeKey(f)...)
}

// nodeKey judges the file that secrets are sealed with.
func nodeKey(f Facts) []Finding {
	key, missing := f.Data.Key, errors.Is(f.Data.Key.Err, fs.ErrNotExist)
	path := f.Options.DataDir + "/node.key"
	switch {
	case !f.Data.Made || missing && !f.Data.Controlled:
		return nil // the first start makes it
	case missing:
		return []Finding{{"data.nodekey", Danger, path + " is not there", "versions with secrets are not ready and do not run",
			"put the copy of node.key back and start again"}}
	case key.Err != nil:
		return []Finding{{"data.nodekey", Stops, key.Err.Error(), "the node does not start", "let the node's user read " + path}}
	case key.Mode&0o077 != 0:
		return []Finding{{"data.nodekey", Danger, fmt.Sprintf("%s has mode %04o", path, key.Mode), "other users of this machine can open the secrets of workers",
			"chmod 600 " + path + ", then edged secrets rotate"}}
	}
	return []Finding{fine("data.nodekey", "%s is there; is a copy of it kept elsewhere?", path)}
}

// known are the rooms' formats that this program reads.
var known = map[string]int{"node": 1, "control": 1, "raftlog": 1, "plan": 1, "artifact": 1, "kv": 1, "sqlstore": 1, "queue": 1, "objects": 1}

// formats judges the format files.
func formats(f Facts) []Finding {
	var newer, unread, told []string
	for _, one := range f.Data.Formats {
		switch up := known[one.Room]; {
		case one.Room == "" || one.Version < 1:
			unread = append(unread, one.Path)
		case one.Version > up:
			newer = append(newer, fmt.Sprintf("%s %d (%s)", one.Room, one.Version, one.Path))
		default:
			told = append(told, fmt.Sprintf("%s %d", one.Room, one.Version))
		}
	}
	var out []Finding
	if len(newer) > 0 {
		out = append(out, Finding{"data.format", Stops, "this program does not know " + strings.Join(newer, ", "),
			"the node refuses to start, and leaves the data as it is", "run the newer program that wrote it"})
	}
	if len(unread) > 0 {
		out = append(out, Finding{"data.format.unread", Stops, strings.Join(unread, ", ") + " cannot be read", "the node refuses to start",
			"restore from a backup; a format is never guessed"})
	}
	if len(out) == 0 && len(told) > 0 {
		out = append(out, fine("data.format", "%s", strings.Join(told, ", ")))
	}
	return out
}

// running judges what the node on the directory says.
func running(f Facts) []Finding {
	n := f.Node
	switch {
	case n.Locked && n.PID == 0:
		return []Finding{{"node", Note, "the data directory is in use, and no node serves on it", "it starts, stops, or is being restored",
			"look again in a moment; edged run says which process holds it"}}
	case n.PID == 0:
		return nil
	case !n.Ready:
		return []Finding{{"node", Stops, "the node is not ready: " + n.Reasons, "a load balancer sends it nothing", "mend what it names; edged status shows the rest"}}
	case n.Stale:
		return []Finding{{"node", Note, fmt.Sprintf("process %d runs a program that was replaced on disk", n.PID), "what the new one mends does not hold yet",
			"restart the node"}}
	}
	return []Finding{fine("node", "process %d serves and is ready", n.PID)}
}

// size is a count of bytes for people.
func size(n uint64) string {
	for _, u := range []struct {
		bytes uint64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func short(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}
