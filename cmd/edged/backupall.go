package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"edged/control/client"
	"edged/internal/disk"
	"edged/internal/fault"
	"edged/node"
)

// listName is the file that lists a whole backup. It is written last: a directory without it is no whole backup.
const listName = "backup.json"

// listFormat is the version of that list.
const listFormat = 1

// backupList is what a whole backup consists of, in the order in which it was saved.
type backupList struct {
	Format  int          `json:"format"`
	Began   time.Time    `json:"began"`
	Ended   time.Time    `json:"ended"`
	Program string       `json:"program"`
	Files   []backupFile `json:"files"`
}

type backupFile struct {
	Room   string `json:"room"`
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// backupRooms are all rooms, that of the Resources first: data that has no Resource is only unused.
func backupRooms() []string { return append([]string{"control"}, node.StoreRooms...) }

func newBackupAll() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "all DIR", Short: "save every room and control while the node serves", Args: cobra.ExactArgs(1),
		Long: "Save everything while the node serves: a folder named after the time is made in DIR, with a file for each room and a list with their\n" +
			"checksums, which is written last. edged restore all takes the folder back. What a room's own backup promises holds for its file;\n" +
			"the rooms are saved one after the other, control first, each as it is at its own instant.\n\n" +
			"The node key (DATA/node.key) is not in it: keep a copy of it elsewhere, or the backup cannot be restored."}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		began := time.Now().UTC().Truncate(time.Second)
		dir := filepath.Join(args[0], "edged-"+began.Format("20060102T150405Z"))
		if err := os.MkdirAll(args[0], 0o700); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o700); err != nil { // one that is there is another backup
			return err
		}
		list, err := saveAll(cmd.Context(), c, dir, began)
		if err != nil {
			return errors.Join(explain(err), os.RemoveAll(dir))
		}
		bytes := int64(0)
		for _, f := range list.Files {
			bytes += f.Bytes
		}
		return t.say(cmd, map[string]any{"dir": dir, "bytes": bytes, "files": list.Files}, "saved %s: %d rooms, %d bytes; it needs the node key to be restored",
			dir, len(list.Files), bytes)
	}
	return cmd
}

// saveAll saves every room into dir, and the list when all of them are durable.
func saveAll(ctx context.Context, c *client.Client, dir string, began time.Time) (*backupList, error) {
	list := &backupList{Format: listFormat, Began: began, Program: version}
	for _, room := range backupRooms() {
		sum := sha256.New()
		file := room + ".tar"
		size, err := saveFile(filepath.Join(dir, file), func(w io.Writer) error { return c.Backup(ctx, room, io.MultiWriter(w, sum)) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", room, err)
		}
		list.Files = append(list.Files, backupFile{room, file, size, hex.EncodeToString(sum.Sum(nil))})
	}
	list.Ended = time.Now().UTC().Truncate(time.Second)
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := disk.WriteFile(filepath.Join(dir, listName), append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return list, disk.SyncDir(filepath.Dir(dir))
}

func newRestoreAll() *cobra.Command {
	var dataDir, keyFile string
	cmd := &cobra.Command{
		Use:   "all DIR --node-key KEYFILE",
		Short: "fill an empty data directory from what edged backup all saved",
		Long: "Fill the data directory of a node that has never run from a folder that edged backup all made. Every file is checked against the list\n" +
			"before anything is restored. If it is interrupted, empty the data directory and begin again. The node key file (DATA/node.key) of\n" +
			"the node that was saved is needed.",
		Args: cobra.ExactArgs(1),
	}
	restoreFlags(cmd, &dataDir, &keyFile)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key, err := readKey(cmd, &keyFile)
		if err != nil {
			return err
		}
		list, err := checkBackup(args[0])
		if err != nil {
			return explain(err)
		}
		for _, room := range node.StoreRooms {
			if _, err := os.Stat(filepath.Join(dataDir, room)); !errors.Is(err, fs.ErrNotExist) {
				return fault.Newf(fault.Conflict, "restore", "%s has %s already: restore into an empty directory", dataDir, room)
			}
		}
		for _, f := range list.Files {
			path := filepath.Join(args[0], f.File)
			if f.Room == "control" {
				err = restoreControl(cmd, dataDir, path, key)
			} else {
				err = restoreStore(cmd, dataDir, f.Room, path)
			}
			if err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "all of the backup that began at %s is restored; start the node on %s\n", list.Began.Format(time.RFC3339), dataDir)
		return err
	}
	return cmd
}

// checkBackup reads the list of a whole backup and holds every file to it.
func checkBackup(dir string) (*backupList, error) {
	const op = "restore"
	text, err := os.ReadFile(filepath.Join(dir, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Newf(fault.Invalid, op, "%s has no %s: it is no whole backup of edged backup all", dir, listName)
	} else if err != nil {
		return nil, err
	}
	list := new(backupList)
	if err := json.Unmarshal(text, list); err != nil || list.Format < 1 {
		return nil, fault.Newf(fault.Invalid, op, "%s cannot be read", filepath.Join(dir, listName))
	}
	if list.Format > listFormat {
		return nil, fault.Newf(fault.Conflict, op, "the backup has format %d, this program knows up to %d: restore with the newer program", list.Format, listFormat)
	}
	rooms := backupRooms()
	if len(list.Files) != len(rooms) {
		return nil, fault.Newf(fault.Invalid, op, "the backup has %d rooms, not %d", len(list.Files), len(rooms))
	}
	for i, f := range list.Files {
		if f.Room != rooms[i] || f.File != rooms[i]+".tar" {
			return nil, fault.Newf(fault.Invalid, op, "the backup lists %.80q where %s is expected", f.File, rooms[i])
		}
		if err := checkFile(filepath.Join(dir, f.File), f); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func checkFile(path string, want backupFile) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if size != want.Bytes || hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return fault.Newf(fault.Invalid, "restore", "%s is not what was saved: it is damaged or of another backup", path)
	}
	return nil
}
