package sandbox

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longSlice marks the calling thread, to which it ties the goroutine until shortSlice, as one that asks for few and long turns on the
// processor. It gets as much of it as before, but whoever wakes up with something short to do, another of our threads or another process,
// runs before it. Without that the kernel lets a computing guest finish its turn first, at each step on the way of somebody else's request.
// A hint: kernels before 6.12 ignore it.
func longSlice() {
	runtime.LockOSThread()
	setSlice(100_000_000) // the most that there is
}

// shortSlice takes the mark away and unties the goroutine.
func shortSlice() {
	setSlice(0)
	runtime.UnlockOSThread()
}

// schedAttr is the kernel's struct sched_attr in its first size.
type schedAttr struct {
	size, policy              uint32
	flags                     uint64
	nice                      int32
	priority                  uint32
	runtime, deadline, period uint64
}

// ordinary is how the process's threads are scheduled, nil if that is not the ordinary way and none of our business.
var ordinary = sync.OnceValue(func() *schedAttr {
	var a schedAttr
	size := unsafe.Sizeof(a)
	_, _, errno := unix.RawSyscall6(unix.SYS_SCHED_GETATTR, 0, uintptr(unsafe.Pointer(&a)), size, 0, 0, 0)
	if errno != 0 || a.policy != unix.SCHED_NORMAL {
		return nil
	}
	return &schedAttr{size: uint32(size), nice: a.nice}
})

// setSlice sets the length of the calling thread's turns in nanoseconds; 0 is the default.
func setSlice(ns uint64) {
	if usual := ordinary(); usual != nil {
		a := *usual
		a.runtime = ns
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(&a)), 0)
	}
}
