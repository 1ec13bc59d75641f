package raftlog

import (
	"io"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"edged/internal/disk"
)

// Snapshots is raft's snapshot store of files, whose readers can say which entry of the log their snapshot stands for.
type Snapshots struct{ *raft.FileSnapshotStore }

// OpenSnapshots opens the store below dir, which keeps the newest retain snapshots. dir is made private (0700) first, because raft
// makes what is inside it readable for everyone. log nil discards.
func OpenSnapshots(dir string, retain int, log hclog.Logger) (*Snapshots, error) {
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
	return &Snapshots{store}, nil
}

// Open opens a snapshot for reading.
func (s *Snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.FileSnapshotStore.Open(id)
	if err != nil {
		return nil, nil, err
	}
	return meta, &opened{r, meta.Index}, nil
}

// opened is a snapshot that is being read.
type opened struct {
	io.ReadCloser
	index uint64
}

// IndexOf returns the index of the last log entry that a snapshot holds, from the reader that raft hands to FSM.Restore; 0 if it was
// not opened by a Snapshots.
func IndexOf(r io.ReadCloser) uint64 {
	for {
		switch x := r.(type) {
		case *opened:
			return x.index
		case raft.ReadCloserWrapper:
			r = x.WrappedReadCloser()
		default:
			return 0
		}
	}
}
