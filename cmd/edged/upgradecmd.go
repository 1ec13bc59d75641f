package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// upgradePatience bounds the wait for each line of the supervisor: its own limits are shorter.
const upgradePatience = 15 * time.Minute

func newUpgradeCommand() *cobra.Command {
	var dir, program string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "upgrade", Short: "replace the program of the running node without losing a request", Args: cobra.NoArgs,
		Long: "Replace the program of the node that runs on a data directory, with the flags, file and environment that it was started with (the file\n" +
			"is read again). The new program makes ready what it can; then the old one ends what it began, and clients wait, for less than a second,\n" +
			"until the new one has taken over. If the new one does not start, the old one serves on, or again, and the exit code is 1.",
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data-dir", "./data", "data directory of a node that runs on this machine, started by edged run")
	f.StringVar(&program, "binary", "", "the new program (default: the file that the node was started from, which may have been replaced)")
	f.BoolVar(&asJSON, "json", false, "machine output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := applyConfig(f, "", os.LookupEnv); err != nil {
			return usageError{err}
		}
		if program != "" {
			path, err := filepath.Abs(program)
			if err != nil {
				return err
			}
			program = path
		}
		r, err := askSupervisor(dir, request{Upgrade: true, Binary: program}, func(text string) {
			if !asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), text)
			}
		})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(cmd, r)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "upgraded to %s; process %d serves; clients waited %v\n", r.Version, r.PID, r.Waited.Round(time.Millisecond))
		return err
	}
	return cmd
}

// askSupervisor asks the supervisor of the node on a data directory, and passes on what it says until its last word.
func askSupervisor(dir string, q request, say func(string)) (reply, error) {
	path, done, err := doorPath(dir)
	if err != nil {
		return reply{}, err
	}
	conn, err := net.Dial("unix", path)
	done()
	if err != nil {
		return reply{}, fmt.Errorf("no supervised node serves on %s (%s): a node under --supervise=false or a service manager that watches "+
			"is upgraded by that, see \"Upgrading\" in docs/operating.md", dir, cause(err))
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return reply{}, err
	}
	for in := json.NewDecoder(conn); ; {
		_ = conn.SetReadDeadline(time.Now().Add(upgradePatience)) // the read fails where this does
		var r reply
		switch err := in.Decode(&r); {
		case errors.Is(err, io.EOF):
			return r, errors.New("the supervisor has ended before it answered")
		case err != nil:
			return r, err
		case r.Error != "":
			return r, errors.New(r.Error)
		case r.Done:
			return r, nil
		}
		say(r.Say)
	}
}

// cause is what went wrong in a system call.
func cause(err error) error {
	if op := (*os.SyscallError)(nil); errors.As(err, &op) {
		return op.Err
	}
	if op := (*os.PathError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}
