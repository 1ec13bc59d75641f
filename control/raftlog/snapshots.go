package raftlog

import (
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"edged/internal/disk"
)

// OpenSnapshots opens raft's snapshot store of files below dir, which keeps the newest retain snapshots. dir is made
// private (0700) first, because raft makes what is inside it readable for everyone. log nil discards.
func OpenSnapshots(dir string, retain int, log hclog.Logger) (*raft.FileSnapshotStore, error) {
	if err := disk.Prepare(dir); err != nil {
		return nil, err
	}
	if log == nil {
		log = hclog.NewNullLogger()
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, retain, log)
	if err != nil {
		return nil, wrap("raftlog.OpenSnapshots", err)
	}
	return store, nil
}
