package main

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

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
