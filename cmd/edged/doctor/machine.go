package doctor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"edged/node/machine"
)

// kernelFacts is what the sandboxes use of the kernel.
type kernelFacts struct {
	Release string
	Scan    error // of asking for written pages (PAGEMAP_SCAN)
	Table   error // of opening the page table
	Memfd   error // of making and sealing a memory file
}

// ioctlPagemapScan is the kernel's number of PAGEMAP_SCAN.
const ioctlPagemapScan = 0xc0606610

func lookAtKernel() (k kernelFacts) {
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		k.Release = unix.ByteSliceToString(u.Release[:])
	}
	table, err := os.Open("/proc/self/pagemap")
	if err != nil {
		k.Table, k.Scan = err, err
	} else {
		// A kernel that knows the call complains about the missing argument, any other about the call.
		if err := unix.IoctlSetInt(int(table.Fd()), ioctlPagemapScan, 0); !errors.Is(err, unix.EFAULT) {
			k.Scan = fmt.Errorf("the kernel does not know it: %w", err)
		}
		table.Close()
	}
	fd, err := unix.MemfdCreate("edged-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		k.Memfd = err
		return k
	}
	defer unix.Close(fd)
	_, k.Memfd = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	return k
}

// clockFacts is what the kernel knows about its clock.
type clockFacts struct {
	Err      error         // the kernel does not say
	Synced   bool          // something disciplines the clock
	MaxError time.Duration // how far off it may be
}

func lookAtClock() clockFacts {
	var t unix.Timex // no modes: reads only
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return clockFacts{Err: err}
	}
	return clockFacts{Synced: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, MaxError: time.Duration(t.Maxerror) * time.Microsecond}
}

// limitFacts is what the process may use; 0 stands for no limit, or one that cannot be read.
type limitFacts struct {
	Files     uint64 // open files of the node that runs, else of one that this user starts
	Memory    int64  // of the machine
	Cgroup    int64  // the least memory limit of the cgroup and those above it
	Tasks     int64  // likewise, threads
	AddressAS uint64 // RLIMIT_AS: the sandboxes' address space
}

func lookAtLimits(pid int) (l limitFacts) {
	var files, space unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &files) == nil {
		l.Files = files.Max // the Go runtime raises the soft limit to the hard one
		if pid != 0 {
			l.Files = files.Cur
		}
	}
	if unix.Prlimit(pid, unix.RLIMIT_AS, nil, &space) == nil && space.Cur != unix.RLIM_INFINITY {
		l.AddressAS = space.Cur
	}
	kernel := machine.System{}.Limits(pid)
	l.Memory, l.Cgroup, l.Tasks = kernel.Memory, kernel.Cgroup, kernel.Tasks
	return l
}

func cores() int { return runtime.GOMAXPROCS(0) }

// procFile is a file that the kernel has about a process; pid 0 is this one.
func procFile(pid int, name string) string {
	if pid == 0 {
		return "/proc/self/" + name
	}
	return fmt.Sprintf("/proc/%d/%s", pid, name)
}
