//go:build faultpoints

package faultpoint

import (
	"os"
	"strings"
	"syscall"
)

// Hit ends the process without a trace (SIGKILL) if EDGED_FAULTPOINT is the name, and blocks for ever if it is the name
// and "!pause".
func Hit(name string) {
	chosen, how, _ := strings.Cut(os.Getenv("EDGED_FAULTPOINT"), "!")
	if chosen != name {
		return
	}
	if how != "pause" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing after it runs
	}
	select {}
}
