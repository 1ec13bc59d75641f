package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"edged/node"
)

// backupText is what the help of a room's backup says.
var backupText = []struct{ room, short, long string }{
	{"control", "save Resources, Operations, tokens, sealed secrets, artifacts and the CA while the node serves",
		"Save everything that the control room keeps, as it is at this instant, while the node serves: Resources, Operations, tokens, sealed\n" +
			"secrets, artifacts and the local CA. A directory gets a file named after the time. What is secret is sealed with the node key\n" +
			"(DATA/node.key), which is not in the backup: keep a copy of it elsewhere, or the backup cannot be restored.\n\n" +
			"What workers keep is saved room by room: edged backup kv, sql, queue and objects. Save the control room first: data that has no Resource is\n" +
			"only unused, a Resource whose data is missing is broken."},
	{"kv", "save all key-value namespaces while the node serves",
		"Save all key-value namespaces as they are at one instant, while the node serves. Restored, the store is a new member with a new epoch."},
	{"sql", "save all databases while the node serves",
		"Save all databases while the node serves. Each is saved as it is at one instant, one after the other: what a worker writes to two\n" +
			"databases may be in one and not in the other."},
	{"queue", "save all queues while the node serves",
		"Save all queues as they are at one instant, while the node serves. Messages that are settled afterwards come again after a restore."},
	{"objects", "save all object buckets while the node serves",
		"Save all object buckets as they are at one instant, while the node serves. Uploads that are open then are open after a restore."},
}

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "backup", Short: "save what a running node keeps", Args: cobra.NoArgs, RunE: needSubcommand,
		Long: "Save what a running node keeps, room by room, into a file of this machine. It needs an operator of the whole node."}
	cmd.AddCommand(newBackupAll())
	for _, b := range backupText {
		cmd.AddCommand(newBackup(b.room, b.short, b.long))
	}
	return cmd
}

func newBackup(room, short, long string) *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: room + " FILE-or-DIR", Short: short, Long: long, Args: cobra.ExactArgs(1)}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		path := args[0]
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, room+"-"+time.Now().UTC().Format("20060102T150405Z")+".tar")
		}
		size, err := saveFile(path, func(w io.Writer) error { return c.Backup(cmd.Context(), room, w) })
		if err != nil {
			return explain(err)
		}
		needs := ""
		if room == "control" {
			needs = "; it needs the node key to be restored"
		}
		return t.say(cmd, map[string]any{"file": path, "bytes": size}, "saved %s, %d bytes%s", path, size, needs)
	}
	return cmd
}

func newRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "restore", Short: "put what was saved into the data directory of a node that does not run", Args: cobra.NoArgs, RunE: needSubcommand,
		Long: "Put backups into the data directory of a node that does not run: all of one, or room by room, first the control room, then what workers\n" +
			"keep, then start the node. A room that has data already is refused, never replaced."}
	cmd.AddCommand(newRestoreAll(), newRestoreControl())
	for _, room := range node.StoreRooms {
		cmd.AddCommand(newRestoreStore(room))
	}
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
	restoreFlags(cmd, &dataDir, &keyFile)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key, err := readKey(cmd, &keyFile)
		if err != nil {
			return err
		}
		if err := restoreControl(cmd, dataDir, args[0], key); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "start the node on %s\n", dataDir)
		return err
	}
	return cmd
}

func restoreFlags(cmd *cobra.Command, dataDir, keyFile *string) {
	cmd.Flags().StringVar(dataDir, "data-dir", "./data", "data directory to fill; it is made if it is missing")
	cmd.Flags().StringVar(keyFile, "node-key", "", "copy of the saved node's node.key (required)")
}

// readKey fills flags from the environment and reads the node key.
func readKey(cmd *cobra.Command, file *string) ([]byte, error) {
	if err := applyConfig(cmd.Flags(), "", os.LookupEnv); err != nil {
		return nil, usageError{err}
	}
	if *file == "" {
		return nil, usagef("--node-key is needed: the backup is sealed with the node key")
	}
	key, err := os.ReadFile(*file)
	if err != nil {
		return nil, usageError{err}
	}
	return key, nil
}

func restoreControl(cmd *cobra.Command, dataDir, path string, key []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	unix.Umask(0o077) // whatever a library creates below the data directory is this user's alone
	out, err := node.RestoreControl(cmd.Context(), dataDir, bufio.NewReaderSize(f, 1<<20), key, slog.New(slog.DiscardHandler))
	if err != nil {
		return explain(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %d Resources and %d artifacts as of %s\n", out.Resources, out.Blobs, out.At)
	return err
}

func restoreStore(cmd *cobra.Command, dataDir, room, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	unix.Umask(0o077) // whatever a library creates below the data directory is this user's alone
	if err := node.RestoreStore(cmd.Context(), dataDir, room, bufio.NewReaderSize(f, 1<<20), nil); err != nil {
		return explain(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %s into %s\n", room, dataDir)
	return err
}

func newRestoreStore(room string) *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   room + " FILE",
		Short: "put back what edged backup " + room + " saved",
		Long: "Put back what edged backup " + room + " saved, while no node uses the data directory. Restore the control room before, or the data has no\n" +
			"Resources. DATA/" + room + " must not be there.",
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "./data", "data directory of the node; it is made if it is missing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := applyConfig(cmd.Flags(), "", os.LookupEnv); err != nil {
			return usageError{err}
		}
		return restoreStore(cmd, dataDir, room, args[0])
	}
	return cmd
}
