//go:build linux

package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	wantEnv   = "EDGED_TEST_NET"    // set to 1, such tests run
	insideEnv = "EDGED_NETNS_APART" // set in the process that Apart started
)

// Apart tells whether this process is in namespaces of its own. If not, it runs the calling test again in some, with env besides, and
// reports how that went; the caller then only returns. It skips the test where EDGED_TEST_NET is not 1, or the machine does not allow it.
func Apart(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		return true
	}
	Wanted(t)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(append(os.Environ(), insideEnv+"=1"), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	err := cmd.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("skipped: namespaces are not allowed here: %v", err)
	}
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// Wanted skips the test, with the reason, where nobody asked for such tests or a tool for them is missing.
func Wanted(t *testing.T) {
	t.Helper()
	if os.Getenv(wantEnv) != "1" {
		t.Skipf("make test-net runs this (%s=1)", wantEnv)
	}
	for _, tool := range []string{"ip", "nft", "tc", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("skipped: %s is not installed", tool)
		}
	}
}

// Run runs a command to its end; the error holds what it printed.
func Run(stdin, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(b))
	}
	return nil
}

// Must is Run, with the arguments in one string, of what a test cannot do without.
func Must(t *testing.T, name, args string) {
	t.Helper()
	if err := Run("", name, strings.Fields(args)...); err != nil {
		t.Fatal(err)
	}
}

// Filter replaces what the bridges of this network drop on the way between their ports; rules are nft's, of a forward chain.
func Filter(t *testing.T, rules ...string) {
	t.Helper()
	script := "flush ruleset\ntable bridge cuts {\nchain forwards {\ntype filter hook forward priority 0;\n" + strings.Join(rules, "\n") + "\n}\n}\n"
	if err := Run(script, "nft", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// Namespace is a network that lives as long as this process.
type Namespace struct{ ns, home *os.File }

// New makes an empty network.
func New() (*Namespace, error) {
	n := &Namespace{}
	runtime.LockOSThread() // given back only where the thread is at home again
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	n.home = home
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	n.ns, err = os.Open("/proc/thread-self/ns/net")
	if err := errors.Join(err, n.leave()); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Namespace) leave() error {
	err := unix.Setns(int(n.home.Fd()), unix.CLONE_NEWNET)
	if err == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// In calls f on a thread that is in the network: what it starts is too.
func (n *Namespace) In(f func() error) error {
	runtime.LockOSThread()
	if err := unix.Setns(int(n.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	return errors.Join(f(), n.leave())
}

// Path is a file that names the network to ip: `ip link … netns PATH`.
func (n *Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.ns.Fd()) }
