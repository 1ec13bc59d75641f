// Command edged is the edge runtime node and its client.
//
//	main.go      the command tree, exit codes
//	run.go       edged run: flags, environment and file become node.Options
//	config.go    one setting from four places: flag, environment, file, default
//	size.go      byte counts like 128MiB
//	version.go   edged version
//	client.go    what the client commands share; deploy.go, weights.go (rollback too), delete.go, resources.go,
//	             tokens.go, audit.go, secrets.go, cron.go, kv.go, queue.go, sql.go (with sqlshell.go and
//	             sqlview.go), backup.go, status.go: the commands
//	store.go     a data Resource as the command line names it; spec.go, savefile.go: what comes in and goes out
//
// Not here: anything that serves. Package node does that.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

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

func newRootCommand() *cobra.Command {
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
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRunCommand(), newVersionCommand(), newRestoreCommand())
	root.AddCommand(clientCommands()...)
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
	ctx, stop := signalContext()
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
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

// signalContext is done at the first SIGINT or SIGTERM; the second ends the process at once (node-surface §2).
func signalContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { // ends with the process
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}
