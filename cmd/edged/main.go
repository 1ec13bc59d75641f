// Command edged is the edge runtime node and its client.
//
//	main.go      the command tree, exit codes
//	run.go       edged run: flags, environment and file become node.Options
//	supervise.go  edged run watches over itself: the parent process; child.go: one it started; watchdog.go decides, supervised.go is
//	             the child's side, link.go what both say, stopper.go counts signals on both, notify.go speaks to a service manager,
//	             sockets.go takes its sockets, child_*.go asks the kernel
//	upgrade.go   one child followed by another without a gap; door.go: where the supervisor is asked for it; upgradecmd.go: edged upgrade
//	drain.go     edged drain, and its other side
//	config.go    one setting from four places: flag, environment, file, default
//	examples.go  what the help of each command shows
//	size.go      byte counts like 128MiB
//	version.go   edged version
//	doctor.go    edged doctor: what stops or endangers a node; package doctor judges
//	client.go    what the client commands share; deploy.go, weights.go (rollback too), delete.go, resources.go,
//	             tokens.go, audit.go, secrets.go, cron.go, kv.go, queue.go, objects.go, sql.go (with sqlshell.go and
//	             sqlview.go), backup.go, backupall.go, fleet.go, status.go (with
//	             statusnight.go): the commands
//	tail.go      edged tail: what a worker does, as it happens; explain.go: why a URL is answered as it is; share.go: 1%
//	selftest.go  edged selftest: a live node against the contract; package selftest checks
//	store.go     a data Resource as the command line names it; spec.go, savefile.go: what comes in and goes out
//
// Not here: anything that serves. Package node does that.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes (node-surface §1).
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError marks an error as wrong usage or configuration: exit code 2.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func newRootCommand(stop *stopper) *cobra.Command {
	root := &cobra.Command{
		Use:           "edged",
		Short:         "edged is the data plane of an edge location: it serves JavaScript workers from sandboxes",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usagef("name a command")
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newRunCommand(stop), newDoctorCommand(stop), newVersionCommand(), newRestoreCommand(), newUpgradeCommand(), newDrainCommand())
	root.AddCommand(clientCommands()...)
	root.InitDefaultCompletionCmd()
	giveExamples(root, nil)
	for _, cmd := range root.Commands() {
		argsAreUsage(cmd)
	}
	return root
}

// argsAreUsage makes wrong arguments of cmd and its children exit with 2.
func argsAreUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usagef("%w (see %s --help)", err, cmd.CommandPath())
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		argsAreUsage(child)
	}
}

func main() {
	stop := newStopper()
	stop.listen()
	err := newRootCommand(stop).ExecuteContext(stop.ctx)
	stop.close()
	if err == nil {
		return
	}
	if code := exitCode(0); errors.As(err, &code) {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "edged:", err)
	if u := (usageError{}); errors.As(err, &u) || isUnknownCommand(err) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

// isUnknownCommand recognises the one usage error that cobra reports without a hook.
func isUnknownCommand(err error) bool {
	return len(err.Error()) > 15 && err.Error()[:15] == "unknown command"
}
