package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// linkPair makes the two ends of a link.
func linkPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link"), nil
}

// aside moves a descriptor out of the way of those that a child is started with: they would take its number before it is used.
func aside(file *os.File) *os.File {
	fd, err := unix.FcntlInt(uintptr(fdOf(file)), unix.F_DUPFD_CLOEXEC, 64)
	if err != nil {
		return file
	}
	defer file.Close()
	return os.NewFile(uintptr(fd), file.Name())
}

// pathOf names an open program so that it can be executed, whatever became of its file.
func pathOf(program *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", fdOf(program)) }

// selfPath is this very program, also when its file was replaced since: both processes speak one language.
func selfPath() string { return "/proc/self/exe" }

// dieWithParent has the kernel kill the child when this thread ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// insistOnParent is dieWithParent from the child's side: a program with file capabilities loses the wish when it is
// executed. gone is called if the parent has died already.
func insistOnParent(gone func()) {
	parent := os.Getppid()
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) // the end of the orders says the same, later
	if os.Getppid() != parent {
		gone()
	}
}
