//go:build linux && (amd64 || arm64)

package engine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Asking the kernel for the written pages costs a good part of a reset, and a guest that serves one kind of request writes
// the same pages each time. A page can only become private by a page fault of the thread that writes it, and the kernel
// counts those per thread: if an invocation ran on one thread from its begin to its reset and that thread had no fault,
// the pages that the last scan found are all there are.

// watching is one invocation under watch. The zero value is none.
type watching struct {
	on     bool
	faults int64 // of the thread when the watch began
}

// Watch begins an invocation that the caller will run on this goroutine up to Reset: the goroutine keeps its thread until
// then, and Reset may know what was written without asking the kernel. Whoever lets the guest run on another goroutine, or
// waits, calls Unwatch before, on this one: Reset would look at the faults of the wrong thread. Without a Watch Reset
// works just as well, only slower.
func (in *Instance) Watch() {
	if in.mem.scanner == nil || !in.mem.scanner.complete || in.watch.on {
		return // the next scan has to look anyway
	}
	runtime.LockOSThread()
	in.watch = watching{on: true, faults: in.mem.scanner.faults()}
}

// Unwatch ends a watch: what is written from now on is found by a scan. It is called by the goroutine that called Watch.
func (in *Instance) Unwatch() {
	in.endWatch()
	in.unseen()
}

func (in *Instance) endWatch() {
	if in.watch.on {
		in.watch.on = false
		runtime.UnlockOSThread()
	}
}

// unseen says that the guest's memory may have been written without a watch.
func (in *Instance) unseen() {
	if in.mem.scanner != nil {
		in.mem.scanner.complete = false
	}
}

// private lists the pages that differ from the image, or may: those of the last scan if a watch saw that no other came.
func (in *Instance) private(e *Engine) ([]span, error) {
	s := in.mem.scanner
	if in.watch.on && s.complete && s.faults() == in.watch.faults {
		return s.found, nil
	}
	in.stats.Scans++
	return in.mem.written(&e.table, e.reset)
}

// faults counts the page faults that this thread ever had; negative, and different each time, if the kernel does not say.
func (s *scanner) faults() int64 {
	const self = 1 // RUSAGE_THREAD
	if _, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, self, uintptr(unsafe.Pointer(&s.usage)), 0); errno != 0 {
		s.unknown--
		return s.unknown
	}
	return s.usage.Minflt + s.usage.Majflt
}
