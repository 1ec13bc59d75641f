package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"edged/control/client"
	"edged/internal/disk"
	"edged/internal/fault"
	"edged/node"
)

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "backup", Short: "save what a running node keeps", Args: cobra.NoArgs, RunE: needSubcommand}
	cmd.AddCommand(newBackupControl())
	return cmd
}

func newBackupControl() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "control FILE-or-DIR",
		Short: "save Resources, Operations, tokens, sealed secrets, artifacts and the CA while the node serves",
		Long: "Save everything that the control room keeps, as it is at this instant, while the node serves: Resources, Operations, tokens, sealed\n" +
			"secrets, artifacts and the local CA. A directory gets a file named after the time. What is secret is sealed with the node key\n" +
			"(DATA/node.key), which is not in the backup: keep a copy of it elsewhere, or the backup cannot be restored.",
		Args: cobra.ExactArgs(1),
	}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		path := args[0]
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "control-"+time.Now().UTC().Format("20060102T150405Z")+".tar")
		}
		size, err := saveBackup(cmd, c, path)
		if err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, map[string]any{"file": path, "bytes": size})
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "saved %s, %d bytes; it needs the node key to be restored\n", path, size)
		return err
	}
	return cmd
}

// saveBackup writes the backup beside path and gives it that name once it is whole and durable. A file that has the name
// already is left alone.
func saveBackup(cmd *cobra.Command, c *client.Client, path string) (size int64, err error) {
	if _, err := os.Stat(path); err == nil {
		return 0, fault.Newf(fault.Conflict, "backup", "%s is there already", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	buf := bufio.NewWriterSize(f, 1<<20)
	err = c.Backup(cmd.Context(), buf)
	if err == nil {
		err = errors.Join(buf.Flush(), f.Sync())
	}
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return info.Size(), disk.SyncDir(filepath.Dir(path))
}

func newRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "restore", Short: "make an empty node out of a backup", Args: cobra.NoArgs, RunE: needSubcommand}
	cmd.AddCommand(newRestoreControl())
	return cmd
}

func newRestoreControl() *cobra.Command {
	var dataDir, keyFile string
	cmd := &cobra.Command{
		Use:   "control FILE --node-key KEYFILE",
		Short: "fill an empty data directory from a backup of the control room",
		Long: "Fill the data directory of a node that has never run from a backup, while no node uses it. The node key file (DATA/node.key) of the\n" +
			"node that was saved is needed. What comes back has the same UIDs, Operations, tokens, secrets and addresses.",
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "./data", "data directory to fill; it is made if it is missing")
	cmd.Flags().StringVar(&keyFile, "node-key", "", "copy of the saved node's node.key (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := applyConfig(cmd.Flags(), "", os.LookupEnv); err != nil {
			return usageError{err}
		}
		if keyFile == "" {
			return usagef("--node-key is needed: the backup is sealed with the node key")
		}
		key, err := os.ReadFile(keyFile)
		if err != nil {
			return usageError{err}
		}
		f, err := os.Open(args[0])
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		unix.Umask(0o077) // whatever a library creates below the data directory is this user's alone
		out, err := node.RestoreControl(cmd.Context(), dataDir, bufio.NewReaderSize(f, 1<<20), key, slog.New(slog.DiscardHandler))
		if err != nil {
			return explain(err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %d Resources and %d artifacts as of %s; start the node on %s\n", out.Resources, out.Blobs, out.At, dataDir)
		return err
	}
	return cmd
}
