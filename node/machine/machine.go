// Package machine reads from the kernel how much memory and how many threads this process may use, and how much memory is
// left: of the machine, and of its control group and all above it, of either version of control groups.
//
//	machine.go  Limits, Memory and the files they are in
//
// Invariants: what cannot be read is not there, and never an error: kernels and containers differ. No state, no goroutine.
//
// Not here: what follows from it. The node and its doctor decide.
package machine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// System is where the kernel's files are. The zero value is this machine, a Root another tree with the same files.
type System struct{ Root string }

// Limits is what a process may use. 0 stands for no limit, or one that cannot be read.
type Limits struct {
	Memory int64 // bytes of the machine
	Cgroup int64 // bytes, the least limit of the control group and those above it
	Tasks  int64 // threads, likewise
}

// Usable is the lesser of both memories.
func (l Limits) Usable() int64 { return Lesser(l.Memory, l.Cgroup) }

// Memory is how much memory there is and is left, in bytes, where it is scarcest: in the control group, one above it, or on
// the machine. What files keep in memory and can be dropped counts as left. Limit 0: nothing could be read.
type Memory struct {
	Limit, Available int64
	Own              int64   // resident memory of this process
	Stalled          float64 // per cent of the last ten seconds in which somebody waited for memory, 0 if the kernel does not count it
}

// Limits returns what the process may use; 0 is this process.
func (s System) Limits(pid int) (l Limits) {
	l.Memory, _ = s.meminfo()
	for _, g := range s.groups(pid) {
		switch g.controller {
		case "":
			l.Cgroup = Lesser(l.Cgroup, s.least(g, "memory.max"))
			l.Tasks = Lesser(l.Tasks, s.least(g, "pids.max"))
		case "memory":
			l.Cgroup = Lesser(l.Cgroup, s.least(g, "memory.limit_in_bytes"))
		case "pids":
			l.Tasks = Lesser(l.Tasks, s.least(g, "pids.max"))
		}
	}
	return l
}

// Memory reads what is left now. It reads about ten small files.
func (s System) Memory() (m Memory) {
	m.Limit, m.Available = s.meminfo()
	m.Stalled = s.stalled("/proc/pressure/memory")
	for _, g := range s.groups(0) {
		switch g.controller {
		case "":
			for dir := range g.upwards {
				s.group(&m, dir, "memory.max", "memory.current", "inactive_file ")
			}
			m.Stalled = max(m.Stalled, s.stalled(filepath.Join(g.root, g.path, "memory.pressure")))
		case "memory":
			for dir := range g.upwards {
				s.group(&m, dir, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
			}
		}
	}
	if statm := strings.Fields(s.text("/proc/self/statm")); len(statm) > 1 {
		pages, _ := strconv.ParseInt(statm[1], 10, 64)
		m.Own = pages * int64(os.Getpagesize())
	}
	return m
}

// group lets a control group with a limit count if less is left in it.
func (s System) group(m *Memory, dir, limitFile, usedFile, droppable string) {
	limit := s.number(filepath.Join(dir, limitFile))
	used := s.number(filepath.Join(dir, usedFile))
	if limit == 0 || used == 0 {
		return
	}
	for line := range strings.Lines(s.text(filepath.Join(dir, "memory.stat"))) {
		if n, ok := strings.CutPrefix(line, droppable); ok {
			cached, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			used = max(0, used-cached)
		}
	}
	if left := max(0, limit-used); m.Limit == 0 || left < m.Available {
		m.Limit, m.Available = limit, left
	}
}

// meminfo is the machine's memory in bytes, and what of it is left.
func (s System) meminfo() (total, available int64) {
	for line := range strings.Lines(s.text("/proc/meminfo")) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			total = kb << 10
		case "MemAvailable:":
			available = kb << 10
		}
	}
	return total, available
}

// stalled reads a file of pressure stall information: "some avg10=1.23 …".
func (s System) stalled(file string) float64 {
	_, rest, _ := strings.Cut(s.text(file), "some avg10=")
	number, _, _ := strings.Cut(rest, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return v
}

// group is a control group of a process: of one controller, or of the second version's single tree ("").
type group struct{ controller, root, path string }

// upwards yields the folders of the group and of those above it.
func (g group) upwards(yield func(dir string) bool) {
	for at := path.Clean("/" + g.path); yield(filepath.Join(g.root, at)) && at != "/"; at = path.Dir(at) {
		continue
	}
}

func (s System) groups(pid int) (out []group) {
	file := "/proc/self/cgroup"
	if pid != 0 {
		file = fmt.Sprintf("/proc/%d/cgroup", pid)
	}
	for line := range strings.Lines(s.text(file)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		if part[1] == "" {
			out = append(out, group{"", "/sys/fs/cgroup", part[2]})
		}
		for controller := range strings.SplitSeq(part[1], ",") {
			if controller == "memory" || controller == "pids" {
				out = append(out, group{controller, "/sys/fs/cgroup/" + controller, part[2]})
			}
		}
	}
	return out
}

// least is the smallest limit of a group and those above it; 0 for none.
func (s System) least(g group, file string) (out int64) {
	for dir := range g.upwards {
		out = Lesser(out, s.number(filepath.Join(dir, file)))
	}
	return out
}

// number reads a file that is one number. "max", and the first version's largest number, stand for no limit: 0.
func (s System) number(file string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s.text(file)), 10, 64)
	if err != nil || n < 0 || n >= 1<<60 {
		return 0
	}
	return n
}

// maxText bounds what is read of a file.
const maxText = 64 << 10

func (s System) text(file string) string {
	f, err := os.Open(filepath.Join("/", s.Root, file))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}

// Lesser is the smaller of two limits where 0 is none.
func Lesser(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
