package node

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"edged/control"
	"edged/internal/disk"
)

// backupFiles are the files of the data directory that a backup of the control room holds besides what that room keeps.
var backupFiles = []string{"tls/ca.pem", "tls/ca.key"}

// RestoreControl makes the data directory of an empty node out of a backup of the control room and the node key file of
// the node that the backup is of. The node that starts on it has an identity of its own. The errors are those of
// control.Restore, and Conflict for a directory that a node is using. log nil discards.
func RestoreControl(ctx context.Context, dataDir string, backup io.Reader, nodeKey []byte, log *slog.Logger) (out *control.Restored, err error) {
	if err := disk.Prepare(dataDir); err != nil {
		return nil, err
	}
	lock, err := disk.Lock(dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if _, err := disk.CheckFormat(dataDir, "node", formatVersion); err != nil {
		return nil, err
	}
	id, err := nodeID(dataDir)
	if err != nil {
		return nil, err
	}
	return control.Restore(ctx, control.RestoreOptions{Dir: dataDir, NodeID: id, NodeKey: nodeKey, Log: log}, backup)
}
